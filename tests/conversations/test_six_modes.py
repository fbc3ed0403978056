"""Both clients in each of their modes, in front of both kinds of server on each transport: one list, one outcome."""

from typing import Any

import pytest
from mcp import MCPError
from mcp_types import PromptReference

from tests.support.features import FEATURES
from tests.support.gateways import UPSTREAM, Gateways
from tests.support.peers import LegacyServers, stdio_command, ts_client
from tests.support.person import plan_answers
from tests.support.python_client import PythonClient

Json = dict[str, Any]
Outcomes = dict[str, object]

PYTHON_MODES = ("auto", "2026-07-28", "legacy")
TYPESCRIPT_MODES = ("auto", "pin", "legacy")
"""The last is what its client does if it is told nothing."""
PAIRS = [
    (kind, transport) for kind in ("py-1.30", "ts-1.32") for transport in ("streamable-http", "sse", "stdio")
]

CONVERSATIONS = [
    feature
    for feature in FEATURES
    if feature.id
    in {"plain", "form", "address", "sampling", "roots", "parallel", "serial", "prompt", "resource"}
]
FAILURES: dict[str, tuple[str, Json]] = {
    "refused": ("tools/call", {"name": "protocol_error", "arguments": {}}),
    "unknown tool": ("tools/call", {"name": "nonesuch", "arguments": {}}),
    "not found": ("resources/read", {"uri": "test://nowhere"}),
}
PROGRESS: Json = {"name": "progress", "arguments": {"steps": 3}}
LOGS: Json = {"name": "logs", "arguments": {"levels": ["warning", "error"]}}
FAIL: Json = {"name": "fail", "arguments": {}}
COMPLETION: Json = {
    "ref": {"type": "ref/prompt", "name": "simple"},
    "argument": {"name": "topic", "value": "ri"},
}

_NOT_FOUND = -32002
"""Of the revisions before; this one says -32602."""

OUTCOMES: Outcomes = {
    "failed": True,
    "refused": -32050,
    "unknown tool": -32602,
    "not found": -32602,
    "progress": [(1, 3), (2, 3), (3, 3)],
    "logs": ["warning", "error"],
    "completion": ["river"],
}


@pytest.mark.parametrize("mode", PYTHON_MODES)
@pytest.mark.parametrize(("kind", "transport"), PAIRS)
async def test_the_python_client_has_the_same_outcomes_in_every_mode(
    kind: str, transport: str, mode: str, legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Issue: real clients in `auto`, pinned and default modes pass the same scenarios."""
    url = await _served(kind, transport, legacy_servers, gateway)
    runs = {feature.id: (feature.method, *feature.fresh()) for feature in CONVERSATIONS}
    found: Outcomes = {}

    level = (
        None if mode == "legacy" else "debug"
    )  # there it is a request of its own, and all is said without it
    async with PythonClient(url, mode=mode, log_level=level) as client:
        for name, (method, params, _) in runs.items():
            found[name] = await client.carry_out(method, params)
        found["failed"] = (await client.tool("fail")).is_error
        for name, (method, params) in FAILURES.items():
            with pytest.raises(MCPError) as refused:
                await client.carry_out(method, params)
            found[name] = _code({"code": refused.value.error.code, "data": refused.value.error.data})
        client.progress.clear()
        await client.tool(PROGRESS["name"], PROGRESS["arguments"])
        found["progress"] = client.progress
        await client.tool(LOGS["name"], LOGS["arguments"])
        found["logs"] = [record.level for record in client.logs]
        completed = await client.client.complete(
            PromptReference.model_validate(COMPLETION["ref"]), COMPLETION["argument"]
        )
        found["completion"] = completed.completion.values
        assert client.client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")

    assert found == {**{name: said for name, (*_, said) in runs.items()}, **OUTCOMES}


@pytest.mark.parametrize("mode", TYPESCRIPT_MODES)
@pytest.mark.parametrize(("kind", "transport"), PAIRS)
async def test_the_typescript_client_has_the_same_outcomes_in_every_mode(
    kind: str, transport: str, mode: str, legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Issue: real clients in `auto`, pinned and default modes pass the same scenarios."""
    url = await _served(kind, transport, legacy_servers, gateway)
    runs = {feature.id: (feature.method, *feature.fresh()) for feature in CONVERSATIONS}
    level = {} if mode == "legacy" else {"logLevel": "debug"}
    calls: dict[str, Json] = {
        **{name: {"method": method, "params": params} for name, (method, params, _) in runs.items()},
        "failed": {"method": "tools/call", "params": FAIL},
        **{name: {"method": method, "params": params} for name, (method, params) in FAILURES.items()},
        "progress": {"method": "tools/call", "params": PROGRESS},
        "logs": {"method": "tools/call", **LOGS, **level},
        "completion": {"method": "completion/complete", "params": COMPLETION},
    }

    report = await ts_client(
        {"url": url, "mode": mode, "answers": plan_answers(), "calls": list(calls.values())}, 60
    )

    assert report["version"] == ("2025-11-25" if mode == "legacy" else "2026-07-28")
    found: Outcomes = dict(zip(calls, map(_outcome, report["results"]), strict=True))
    at = list(calls).index("progress")
    found["progress"] = [
        (step["progress"], step["total"]) for step in report["progress"] if step["call"] == at
    ]
    found["logs"] = [record["level"] for record in report["logs"]]
    assert found == {**{name: said for name, (*_, said) in runs.items()}, **OUTCOMES}


async def _served(kind: str, transport: str, legacy_servers: LegacyServers, gateway: Gateways) -> str:
    if transport == "stdio":
        own = {"command": stdio_command(kind), "sessions": {"mode": "pooled"}, "settle": "200ms"}
        return (await gateway.start({"listen": "127.0.0.1:0", "upstreams": {UPSTREAM: own}})).url
    options = {} if transport == "streamable-http" else {"transport": transport}
    return (await gateway(legacy_servers.get(kind, **options).url, settle="200ms")).url


def _outcome(entry: Json) -> object:
    if "error" in entry:
        return _code(entry["error"])
    result = entry["result"]
    if "completion" in result:
        return result["completion"]["values"]
    if result.get("isError"):
        return True
    if "messages" in result:
        return result["messages"][0]["content"]["text"]
    return result["content" if "content" in result else "contents"][0]["text"]


def _code(error: Json) -> int:
    """What the server said, in the words of this revision."""
    data = error.get("data")
    code: int = error["code"]
    if isinstance(data, dict):
        code = data.get("upstreamCode", code)
    return -32602 if code == _NOT_FOUND else code
