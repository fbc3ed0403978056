"""Legacy servers over HTTP+SSE (2024-11-05): everything that works over Streamable HTTP works there too.

Nothing in the gateway's settings says which transport it is: it finds out.
"""

import asyncio
import json
from typing import Any

import pytest

from tests.support.everything import RELEASES, Release, Visitor
from tests.support.gateways import Gateways
from tests.support.matrix import SETTLE, shortcomings
from tests.support.peers import FIXTURE_KINDS, LegacyServers, Running, start_legacy, ts_client
from tests.support.person import plan_answers
from tests.support.python_client import PythonClient, text_of
from tests.support.seen import happened, seen_by, unique
from tests.support.waiting import until
from tests.support.wire import Wire, abandoned, accept

NEWEST = ("py-1.30", "ts-1.32")


@pytest.fixture(params=FIXTURE_KINDS)
def server(request: pytest.FixtureRequest, legacy_servers: LegacyServers) -> Running:
    return legacy_servers.get(request.param, transport="sse")


@pytest.fixture(params=NEWEST)
def newest(request: pytest.FixtureRequest, legacy_servers: LegacyServers) -> Running:
    return legacy_servers.get(request.param, transport="sse")


# --- the bridge --------------------------------------------------------------------------------


@pytest.mark.timeout(120)
async def test_every_conversation_goes_as_with_a_modern_server(server: Running, gateway: Gateways) -> None:
    """Issue: the whole bridge matrix over HTTP+SSE."""
    served = await gateway(server.url, settle=SETTLE)
    assert await shortcomings(served.url, server.kind) == {}


async def test_three_kinds_of_question_come_in_one_round(server: Running, gateway: Gateways) -> None:
    served = await gateway(server.url, settle="200ms")

    async with PythonClient(served.url) as client:
        heard = await client.carry_out("tools/call", {"name": "mixed_three", "arguments": {}})

    assert json.loads(heard) == {"name": "Ann", "sampled": "Paris", "roots": ["file:///one", "file:///two"]}
    assert client.results("tools/call") == ["input_required", "complete"]


async def test_the_typescript_client_works_as_well(newest: Running, gateway: Gateways) -> None:
    served = await gateway(newest.url)
    calls: list[dict[str, Any]] = [
        {"method": "tools/call", "name": name, "arguments": {}} for name in ("ask_name", "sample", "roots")
    ]

    report = await ts_client({"url": served.url, "answers": plan_answers(), "calls": calls})

    said = [entry["result"]["content"][0]["text"] for entry in report["results"]]
    assert said == ["Hello Ann", "Paris", "file:///one file:///two"]


async def test_progress_and_logs_come_in_order_before_the_result(server: Running, gateway: Gateways) -> None:
    """On one stream nothing overtakes: also releases that lose progress over Streamable HTTP keep it here."""
    served = await gateway(server.url)

    async with PythonClient(served.url, log_level="warning") as client:
        await client.tool("progress", {"steps": 3})
        first, client.progress = client.progress, []
        await client.tool("ask_then_progress", {"steps": 3})
        await client.tool("logs", {"levels": ["debug", "warning", "error"]})
        await client.tool("logs_get", {"levels": ["info", "critical"]})

    assert first == client.progress == [(1, 3), (2, 3), (3, 3)]
    assert [record.level for record in client.logs] == ["warning", "error", "critical"]


async def test_lists_completion_and_failures_pass(server: Running, gateway: Gateways) -> None:
    served = await gateway(server.url)

    async with Wire(served.url) as wire:
        tools = await wire.request("tools/list")
        prompts = await wire.request("prompts/list")
        resources = await wire.request("resources/list")
        reference = {"type": "ref/prompt", "name": "simple"}
        completed = await wire.request(
            "completion/complete", {"ref": reference, "argument": {"name": "topic", "value": "r"}}
        )
        failed = await wire.tool("fail")
        refused = await wire.tool("protocol_error")
        large = await wire.tool("big", {"characters": 3_000_000})

    assert {tool["name"] for tool in tools.result["tools"]} > {"add", "ask_name"}
    assert len(prompts.result["prompts"]) == 2
    assert resources.result["resources"]
    assert completed.result["completion"]["values"] == ["rain", "river", "rust"]
    assert failed.result["isError"] is True
    assert "refused by the tool" in refused.error["message"]
    assert len(large.text) == 3_000_000


async def test_a_client_that_leaves_cancels_the_running_call(server: Running, gateway: Gateways) -> None:
    served = await gateway(server.url)
    tag = unique("leave")

    async with Wire(served.url) as wire:
        running = asyncio.ensure_future(wire.tool("slow", {"seconds": 30, "tag": tag}))
        await happened(server, f"slow:started:{tag}")
        await abandoned(running)
        await happened(server, f"slow:cancelled:{tag}")


# --- sessions ----------------------------------------------------------------------------------


async def test_anonymous_callers_get_a_session_per_call_and_authenticated_ones_keep_theirs(
    newest: Running, gateway: Gateways
) -> None:
    """The session is in the endpoint's address: there is one, though no header names it."""
    served = await gateway(newest.url, auth={"mode": "passthrough"})

    async with Wire(served.url) as nobody, Wire(served.url, authorization="Bearer sse") as somebody:
        await nobody.tool("remember", {"value": "x"})
        await somebody.tool("remember", {"value": "y"})
        assert (await nobody.tool("recall")).text == "nothing"
        assert (await somebody.tool("recall")).text == "y"
        who = json.loads((await somebody.tool("whoami")).text)

    assert who["authorization"] == "Bearer sse"
    assert (who["session"], who["version"]) == (None, None), "this transport has no headers for them"


async def test_a_stopped_gateway_leaves_no_session_behind(newest: Running, gateway: Gateways) -> None:
    served = await gateway(newest.url)
    async with Wire(served.url) as wire:
        await wire.tool("ask_name")
        assert (await seen_by(newest)).sessions > 0
        await gateway.stop()

    async def none_left() -> bool:
        return (await seen_by(newest)).sessions == 0

    await until(none_left)


# --- what goes wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NEWEST)
async def test_a_dropped_stream_loses_the_call_and_the_next_one_finds_a_new_session(
    gateway: Gateways, kind: str
) -> None:
    """Issue: a dropped stream is a lost session."""
    async with start_legacy(kind, transport="sse") as first:
        served = await gateway(first.url, sessions={"mode": "pooled"})
        async with Wire(served.url) as wire:
            tag = unique("drop")
            running = asyncio.ensure_future(wire.tool("slow", {"seconds": 30, "tag": tag}))
            held = await wire.tool("ask_name")
            await happened(first, f"slow:started:{tag}")
            await asyncio.to_thread(first.kill)
            lost = await running
            gone = await wire.retry(held, {"name": accept(name="Ann")})
            async with start_legacy(kind, transport="sse", port=first.port):
                again = await wire.tool("echo", {"text": "back"})

    assert lost.error["code"] == -32603
    assert "may have run" in lost.error["message"]
    assert "error" in gone.message
    assert again.text == "back"


async def test_a_server_that_forgot_its_sessions_did_not_run_the_call(
    newest: Running, gateway: Gateways
) -> None:
    """LEGACY-WIRE 4: 404 from Python, 400 from TypeScript; the call is sent once more, on a new session."""
    served = await gateway(newest.url, sessions={"mode": "pooled"})
    async with Wire(served.url) as wire:
        before = int((await wire.tool("count")).text)
        await newest.forget_sessions()
        assert int((await wire.tool("count")).text) == before + 1


# --- servers as published ----------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.kind)
async def test_everything_asks_over_its_one_stream(
    release: Release, legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    served = await gateway(legacy_servers.get(release.kind, transport="sse").url)

    async with PythonClient(served.url, person=Visitor(release.form)) as client:
        elicited = await client.tool(release.elicit)
        drawn = await client.tool(release.sample, {"prompt": "Capital?", "maxTokens": 20})
        rooted = await client.tool(release.roots)
        total = await client.tool(release.sum, {"a": 1, "b": 2})

    assert release.told in "\n".join(getattr(block, "text", "") for block in elicited.content)
    assert "Paris" in text_of(drawn)
    assert "file:///one" in text_of(rooted)
    assert "3" in text_of(total)
