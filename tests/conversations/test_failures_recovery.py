"""Servers that come back, are not there yet, or die for good; and what the gateway itself has no room for."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.relay import introductions
from gateway.relay.era import PATIENCE_SECONDS
from tests.support.gateways import Gateways
from tests.support.peers import start_legacy
from tests.support.scripted import Scripted, Turn, asking, text_result
from tests.support.seen import happened, seen_by, unique
from tests.support.waiting import until
from tests.support.wire import Answer, Wire, abandoned, accept

LOST = "The upstream server closed the connection before it answered; the call may have run"
UNREACHABLE = "The upstream server cannot be reached"
REAL = ["py-1.30", "ts-1.32"]


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted() as scripted:
        yield scripted


def lost(answer: Answer, message: str = LOST) -> None:
    assert (answer.status, answer.error["code"], answer.error["message"]) == (200, -32603, message)


# --- killed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", REAL)
async def test_a_server_killed_while_a_call_is_held_is_told_on_the_retry(
    gateway: Gateways, kind: str
) -> None:
    async with start_legacy(kind) as legacy:
        served = await gateway(legacy.url)
        async with Wire(served.url) as client:
            asked = await client.tool("ask_name")
            legacy.kill()
            async with asyncio.timeout(5):
                lost(await client.retry(asked, {"name": accept(name="Ann")}))
                lost(await client.tool("ask_name"), UNREACHABLE)


@pytest.mark.parametrize("kind", REAL)
async def test_a_server_killed_while_it_works_fails_the_call_at_once(gateway: Gateways, kind: str) -> None:
    async with start_legacy(kind) as legacy:
        served = await gateway(legacy.url)
        async with Wire(served.url) as client:
            tag = unique()
            calling = asyncio.ensure_future(client.tool("slow", {"seconds": 60, "tag": tag}))
            await happened(legacy, f"slow:started:{tag}")
            legacy.kill()
            async with asyncio.timeout(5):
                lost(await calling)


@pytest.mark.parametrize("kind", REAL)
async def test_a_server_that_crashes_over_a_call_is_not_sent_it_again(gateway: Gateways, kind: str) -> None:
    async with start_legacy(kind) as legacy:
        served = await gateway(legacy.url)
        async with Wire(served.url) as client, asyncio.timeout(5):
            lost(await client.tool("crash_process"))
        legacy.process.wait(5)


@pytest.mark.parametrize("kind", REAL)
async def test_a_restart_on_the_same_port_is_not_noticed_by_clients(gateway: Gateways, kind: str) -> None:
    async with start_legacy(kind) as first:
        served = await gateway(first.url, sessions={"mode": "pooled"})
        async with Wire(served.url) as client:
            await asyncio.gather(*(client.tool("add", {"a": 1, "b": 2}) for _ in range(3)))
            port = first.port
            await asyncio.to_thread(first.kill)
            async with start_legacy(kind, port=port) as second:
                assert (await client.tool("add", {"a": 1, "b": 2})).text == "3"
                assert (await client.request("tools/list")).result["tools"]
                assert (await client.tool("add", {"a": 2, "b": 2})).text == "4"
                assert (await seen_by(second)).events.count("call:add") == 2


@pytest.mark.parametrize("kind", REAL)
async def test_forgotten_sessions_cost_nobody_a_call_nor_a_second_run(gateway: Gateways, kind: str) -> None:
    async with start_legacy(kind) as legacy:
        served = await gateway(legacy.url, sessions={"mode": "pooled"})
        async with Wire(served.url) as client:
            assert (await client.tool("count")).text == "1"
            await legacy.forget_sessions()
            assert (await client.tool("count")).text == "2"
            await legacy.forget_sessions()
            assert (await client.request("tools/list")).result["tools"]


async def test_a_session_may_be_lost_before_a_call_and_again_before_it_is_sent_anew(
    gateway: Gateways, server: Scripted
) -> None:
    """Ours: between the two the server answered; and while a page is open in a browser sessions are forgotten."""

    async def wants_a_page(turn: Turn) -> None:
        if len([call for call in server.seen("tools/call") if call.was_known]) > 1:
            await turn.result(text_result("done"))
            return
        page = {"mode": "url", "message": "?", "url": "https://bank.example/", "elicitationId": "e"}
        error = {"code": -32042, "message": "URL required", "data": {"elicitations": [page]}}
        await turn.json({"jsonrpc": "2.0", "id": turn.id, "error": error})

    server.on["tools/call"] = wants_a_page
    served = await gateway(server.url, sessions={"mode": "pooled"})
    async with Wire(served.url) as client:
        await client.request("tools/list")
        server.known.clear()
        asked = await client.tool("echo")
        server.known.clear()
        done = await client.retry(asked, {key: {"action": "accept"} for key in asked.asked})

    assert done.text == "done"
    assert [call.was_known for call in server.seen("tools/call")] == [False, True, False, True]


# --- lost sessions, as different servers tell it ---------------------------------------------------


async def _unknown_404(turn: Turn) -> None:
    await turn.reply(404, "Not Found")


async def _unknown_400_text(turn: Turn) -> None:
    await turn.reply(400, "Bad Request: No valid session ID provided")


async def _unknown_400_own_id(turn: Turn) -> None:
    error = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
    await turn.json({"jsonrpc": "2.0", "id": turn.id, "error": error}, 400)


@pytest.mark.parametrize("refusal", [_unknown_404, _unknown_400_text, _unknown_400_own_id])
@pytest.mark.parametrize("mode", ["pooled", "fresh", "affinity", "auto"])
@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
async def test_a_restart_forgets_every_idle_session_and_the_next_request_still_works(
    gateway: Gateways, server: Scripted, refusal: Any, mode: str, method: str
) -> None:
    server.unknown_session = refusal
    served = await gateway(server.url, sessions={"mode": mode, "warm": 2})
    async with Wire(served.url) as client:
        await asyncio.gather(*(client.tool("echo") for _ in range(3)))
        await server.stop()
        await server.start()
        before = len(server.seen(method))
        params = {"name": "echo", "arguments": {}} if method == "tools/call" else {}
        assert (await client.request(method, params)).result
        assert len([turn for turn in server.seen(method)[before:] if turn.was_known]) == 1


async def test_a_session_that_is_lost_again_at_once_fails_the_call(
    gateway: Gateways, server: Scripted
) -> None:
    server.on["tools/call"] = _unknown_404
    served = await gateway(server.url, sessions={"warm": 0})
    async with Wire(served.url) as client:
        answer = await client.tool("echo")
        lost(
            answer,
            "The upstream server does not know the session any more; a call that had begun may have run",
        )
        assert len(server.seen("tools/call")) == 2


# --- discovery ---------------------------------------------------------------------------------


async def quick(client: Wire) -> Any:
    async with asyncio.timeout(2):
        return (await client.request("server/discover")).result


async def test_discovery_before_first_contact_is_minimal_and_true(
    gateway: Gateways, server: Scripted
) -> None:
    await server.stop()
    served = await gateway(server.url)
    async with Wire(served.url) as client:
        found = await quick(client)
        assert found["supportedVersions"] == ["2026-07-28"]
        assert found["ttlMs"] == 0
        assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "holdfast"
        await server.start()
        assert (await client.request("tools/list")).result
        assert (await quick(client))["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "scripted"


async def test_discovery_after_first_contact_tells_what_was_known_last(
    gateway: Gateways, server: Scripted
) -> None:
    served = await gateway(server.url)
    async with Wire(served.url) as client:
        before = await quick(client)
        await server.stop()
        assert await quick(client) == before
        assert "tools" in before["capabilities"]


async def test_discovery_does_not_wait_long_for_a_silent_server(
    gateway: Gateways, server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MODERN-WIRE 1.4: clients fall back to the old handshake after ten seconds."""
    assert introductions._PATIENCE_SECONDS < introductions._FIRST_PATIENCE_SECONDS
    assert PATIENCE_SECONDS + introductions._FIRST_PATIENCE_SECONDS <= 8
    monkeypatch.setattr(introductions, "_FIRST_PATIENCE_SECONDS", 0.1)
    server.on["initialize"] = Turn.until_left
    served = await gateway(server.url)
    async with Wire(served.url) as client:
        found = await asyncio.gather(*(quick(client) for _ in range(5)))
        assert all(each["supportedVersions"] == ["2026-07-28"] for each in found)
        assert len(server.seen("initialize")) == 1, "one introduction at a time"


# --- the gateway's own limits ------------------------------------------------------------------


async def test_one_hold_too_many_is_refused_and_its_call_cancelled_upstream(
    gateway: Gateways, server: Scripted
) -> None:
    server.on["tools/call"] = asking
    served = await gateway(server.url, holds={"max": 1}, sessions={"warm": 0})
    async with Wire(served.url) as client:
        first = await client.tool("echo")
        second = await client.tool("echo")
        assert (second.status, second.error["code"]) == (503, -32603)
        assert int(second.headers["Retry-After"]) >= 1
        cancelled = await server.wait("notifications/cancelled")
        assert cancelled.message["params"]["requestId"] == server.seen("tools/call")[1].id
        assert server.answers(2)[0]["result"] == {"action": "cancel"}
        await server.wait("DELETE")
        assert (await client.retry(first, {"name": accept(name="Ann")})).text == "Hello Ann"
        assert (await client.tool("echo")).asked, "there is room again"


async def test_one_session_too_many_waits_and_then_works(gateway: Gateways, server: Scripted) -> None:
    release = asyncio.Event()

    async def script(turn: Turn) -> None:
        await release.wait()
        await turn.result(text_result("done"))

    server.on["tools/call"] = script
    served = await gateway(server.url, sessions={"mode": "pooled", "max": 1, "warm": 0})
    async with Wire(served.url) as client:
        calls = [asyncio.ensure_future(client.tool("echo")) for _ in range(5)]
        await server.wait("tools/call")
        release.set()
        async with asyncio.timeout(5):
            assert [answer.text for answer in await asyncio.gather(*calls)] == ["done"] * 5
        assert len({turn.session for turn in server.seen("tools/call")}) == 1, "no handshake per call"


async def test_one_session_too_many_for_too_long_is_shed(gateway: Gateways, server: Scripted) -> None:
    server.on["tools/call"] = Turn.until_left
    served = await gateway(server.url, sessions={"max": 1, "warm": 0, "wait": "50ms"})
    async with Wire(served.url) as client:
        busy = asyncio.ensure_future(client.tool("echo"))
        await server.wait("tools/call")
        for shed in (await client.tool("echo"), await client.request("tools/list")):
            assert (shed.status, shed.error["code"]) == (503, -32603)
            assert shed.headers["Retry-After"]
        await abandoned(busy)
        await server.wait("notifications/cancelled")
        del server.on["tools/call"]

        async def look() -> bool:
            return (await client.tool("echo")).status == 200

        await until(look)


async def test_held_calls_do_not_use_up_the_sessions(gateway: Gateways, server: Scripted) -> None:
    server.on["tools/call"] = asking
    served = await gateway(server.url, sessions={"max": 2, "warm": 0, "wait": "50ms"}, settle="5ms")
    async with Wire(served.url) as client:
        asked = [await client.tool("echo") for _ in range(6)]
        answers = await asyncio.gather(
            *(client.retry(each, {"name": accept(name=str(number))}) for number, each in enumerate(asked))
        )
        assert [answer.text for answer in answers] == [f"Hello {number}" for number in range(6)]
