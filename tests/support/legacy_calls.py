"""What a legacy client is put through with the gateway and without it, and what it saw; no verdict."""

import asyncio
import json
from typing import Any
from uuid import uuid4

from tests.support.legacy_peers import legacy_client

Json = dict[str, Any]


def tool(name: str, **arguments: Any) -> Json:
    """A call in a plan."""
    return {"method": "tools/call", "name": name, "arguments": arguments}


TAG = "a-tag-of-this-run"
"""Stands for a word of each run's own: one tool remembers those that it has seen."""

CALLS: list[Json] = [
    {"method": "tools/list"},
    {"method": "prompts/list"},
    {"method": "resources/list"},
    {"method": "resources/read", "uri": "test://static/hello"},
    {"method": "prompts/get", "name": "simple"},
    {"method": "ping"},
    tool("add", a=1, b=2),
    tool("big", characters=200_000),
    tool("ask_name"),
    tool("ask_name_get"),
    tool("ask_two_serial"),
    tool("sample"),
    tool("sample_get"),
    tool("roots"),
    tool("ask_url"),
    tool("url_required", key=TAG),
    tool("progress", steps=3),
    tool("logs", levels=["info", "error"]),
    tool("fail"),
    tool("protocol_error"),
    tool("no_such_tool"),
    {"method": "resources/read", "uri": "test://no/such"},
    {"method": "logging/setLevel", "level": "warning"},
]
"""Every way in which the two eras differ, and some in which they do not."""

STEPS = [[step, 3] for step in (1, 2, 3)]


async def report_of(client: str, url: str, run: str, transport: str = "http") -> Json:
    """What the client saw, without what is a matter of chance."""
    calls = json.loads(json.dumps(CALLS).replace(TAG, run))
    report: Json = json.loads(
        json.dumps(await legacy_client(client, url, calls, transport=transport)).replace(run, TAG)
    )
    if client == "ts-1.32":
        # It forgets who wanted to hear of progress the moment the answer is read, also for what was read before.
        steps = [[step["progress"], step["total"]] for step in report.pop("progress")]
        assert steps == STEPS[: len(steps)]
    return report


async def both(
    client: str, direct: str, through: str, how: tuple[str, str] = ("http", "http")
) -> tuple[Json, Json]:
    """What the client saw without the gateway and with it."""
    one, other = uuid4().hex, uuid4().hex
    return await asyncio.gather(
        report_of(client, direct, one, how[0]), report_of(client, through, other, how[1])
    )
