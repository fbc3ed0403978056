"""A server that was upgraded: recognised, handed everything as it is, and nobody notices the change."""

import asyncio
import json
import urllib.request
from typing import Any

import aiohttp
import pytest
from mcp import Client

from tests.support.gateways import Gateways
from tests.support.peers import MODERN_KIND, LegacyServers, Running, start_legacy, ts_client
from tests.support.python_client import text_of
from tests.support.verdicts import MODERN
from tests.support.waiting import until
from tests.support.wire import Wire, accept

Json = dict[str, Any]


def _observed(server: Running) -> list[Json]:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/_observed", timeout=5) as response:
        seen: list[Json] = json.load(response)
        return seen


async def seen_by(server: Running) -> list[Json]:
    return await asyncio.to_thread(_observed, server)


def answers(asked: Any, name: str) -> Json:
    return {key: accept(name=name) for key in asked.result["inputRequests"]}


async def is_theirs(wire: Wire) -> bool:
    """Does the server itself answer, and not the bridge? What it says in between is right either way."""
    asked = await wire.tool("ask_name")
    assert asked.result["resultType"] == "input_required"
    return asked.state.startswith("v1.")


async def test_a_modern_server_is_proxied_as_it_is_with_its_own_request_state(gateway: Gateways) -> None:
    async with start_legacy(MODERN_KIND, arguments=["--modern-only"]) as server:
        served = await gateway(server.url)
        async with Wire(served.url) as through, Wire(server.url) as direct:
            listed, same = await through.request("tools/list"), await direct.request("tools/list")
            asked = await through.tool("ask_name")
            done = await through.retry(asked, answers(asked, "Ada"))
        seen = await seen_by(server)

    assert listed.message == same.message
    assert done.text == "Hello Ada, says the modern one"
    assert [turn["state"] for turn in seen if turn["state"]] == [asked.state]
    assert [turn["method"] for turn in seen].count("server/discover") == 1, "asked once, not per request"
    assert "initialize" not in [turn["method"] for turn in seen]


async def test_both_modern_clients_use_a_modern_server_through_the_gateway(gateway: Gateways) -> None:
    async with start_legacy(MODERN_KIND) as server:
        served = await gateway(server.url)
        steps: list[tuple[float, float | None]] = []

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            steps.append((progress, total))

        async with Client(served.url) as client:
            result = await client.call_tool("progress", {"steps": 2}, progress_callback=progressed)
        answer = {"elicitation": [{"content": {"name": "Ada"}}]}
        call = {"method": "tools/call", "name": "ask_name", "arguments": {}}
        report = await ts_client({"url": served.url, "answers": answer, "calls": [call]})

    assert text_of(result) == "done"
    assert steps == [(1.0, 2.0), (2.0, 2.0)]
    assert report["results"][0]["result"]["content"][0]["text"] == "Hello Ada, says the modern one"


async def test_tools_that_still_call_back_are_bridged_where_their_server_counts_as_legacy(
    gateway: Gateways,
) -> None:
    """Those on mcp 2.x and fastmcp 4 speak both eras, but `ctx.elicit` reaches legacy clients only."""
    async with start_legacy(MODERN_KIND) as server:
        served = await gateway(server.url)
        async with Wire(served.url) as wire:
            assert "no back-channel" in (await wire.tool("call_back")).error["message"], "its own words"

        served = await gateway(server.url, era="legacy")
        async with Wire(served.url) as wire:
            asked = await wire.tool("call_back")
            assert (await wire.retry(asked, answers(asked, "Ada"))).text == "Hello Ada"


async def test_a_legacy_client_of_a_server_of_both_eras_passes_too(gateway: Gateways) -> None:
    from tests.support.legacy_peers import legacy_client  # noqa: PLC0415

    async with start_legacy(MODERN_KIND) as server:
        served = await gateway(server.url)
        calls = [{"method": "tools/call", "name": "ask_name", "arguments": {}}]
        report = await legacy_client("py-1.30", served.url, calls)

    assert report["results"][0]["result"]["content"][0]["text"] == "Hello Name, says the modern one"


@pytest.mark.parametrize("only", [[], ["--modern-only"]], ids=["of both eras", "modern only"])
@pytest.mark.parametrize("mode", ["fresh", "pooled"])
async def test_a_legacy_server_is_replaced_by_a_modern_one_and_no_call_fails(
    gateway: Gateways, mode: str, only: list[str]
) -> None:
    async with start_legacy("py-1.30") as old:
        served = await gateway(old.url, sessions={"mode": mode})
        async with Wire(served.url) as wire:
            before = await wire.tool("add", {"a": 1, "b": 2})
            held = await wire.tool("side_effect_then_ask", {"id": "one"})
            await asyncio.to_thread(old.kill)
            async with start_legacy(MODERN_KIND, port=old.port, arguments=only) as new:
                after = [await wire.tool("add", {"a": 1, "b": 2}) for _ in range(3)]
                await until(lambda: is_theirs(wire))
                asked = await wire.tool("ask_name")
                done = await wire.retry(asked, answers(asked, "Ada"))
                lost = await wire.retry(
                    held, {key: {"action": "decline"} for key in held.result["inputRequests"]}
                )
                discovered = await wire.request("server/discover")
                seen = await seen_by(new)

    assert before.text == "3"
    assert {answer.text for answer in after} == {"3 says the modern one"}
    assert done.text == "Hello Ada, says the modern one"
    assert [turn["state"] for turn in seen if turn["state"]] == [asked.state], "ours was not handed on"
    assert "error" in lost.message, "the ladder's verdict"
    assert MODERN in discovered.result["supportedVersions"]


async def test_a_modern_server_is_rolled_back_to_a_legacy_one_and_no_call_fails(gateway: Gateways) -> None:
    async with start_legacy(MODERN_KIND, arguments=["--modern-only"]) as new:
        served = await gateway(new.url)
        async with Wire(served.url) as wire:
            before = await wire.tool("add", {"a": 1, "b": 2})
            await asyncio.to_thread(new.kill)
            async with start_legacy("py-1.30", port=new.port):
                after = [await wire.tool("add", {"a": 1, "b": 2}) for _ in range(3)]

    assert before.text == "3 says the modern one"
    assert {answer.text for answer in after} == {"3"}


async def test_what_a_modern_server_serves_is_its_own_to_say(gateway: Gateways) -> None:
    """A method that the bridge does not have reaches a server that may have it."""
    async with start_legacy(MODERN_KIND) as server:
        served = await gateway(server.url, era="modern")
        async with Wire(served.url) as wire, aiohttp.ClientSession() as http:
            refused = await wire.request("vendor/method")
            listening = await http.get(served.url, headers={"MCP-Protocol-Version": MODERN})
        seen = await seen_by(server)

    assert (refused.status, refused.message["error"]["code"]) == (404, -32601)
    assert "vendor/method" in [turn["method"] for turn in seen]
    assert listening.status == 405


async def test_a_legacy_server_is_asked_for_its_era_once(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    async with start_legacy("ts-1.32") as server:
        served = await gateway(server.url)
        async with Wire(served.url) as wire:
            for _ in range(5):
                await wire.tool("add", {"a": 1, "b": 2})
        http = (await server.observed())["http"]

    assert len([turn for turn in http if "server/discover" in json.dumps(turn)]) <= 1
