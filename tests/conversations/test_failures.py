"""What users meet when the legacy server, or the way to it, fails: always a precise answer, never a hang."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from gateway.relay import outbox
from gateway.upstreams import session
from tests.faults.relay import FaultRelay, How, Where
from tests.support.gateways import Gateways, Served
from tests.support.scripted import Scripted, Turn, ask, asking, notice, text_result
from tests.support.waiting import until
from tests.support.wire import Answer, Wire, accept

Script = Callable[[Turn], Awaitable[None]]

PLAIN = {"warm": 0}
UNREACHABLE = "The upstream server cannot be reached"
NEVER_OPENED = "The upstream server went away while a session was being opened; the call was not sent"
LOST = "The upstream server closed the connection before it answered; the call may have run"
LATE = "The upstream server did not answer in time"
NONSENSE = "The upstream server sent an answer that is not valid MCP"
REFUSED = "The upstream server refused the request"


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted() as scripted:
        yield scripted


@pytest.fixture
async def relay(server: Scripted) -> AsyncIterator[FaultRelay]:
    async with FaultRelay(server.port) as between:
        yield between


def failed(answer: Answer, message: str) -> Answer:
    """It is an upstream's failure: HTTP 200, -32603, in these words."""
    assert (answer.status, answer.error["code"], answer.error["message"]) == (200, -32603, message)
    return answer


async def passed(seconds: float) -> None:
    """Time itself is what is waited for."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds

    async def look() -> bool:
        return loop.time() >= end

    await until(look)


# --- the connection ----------------------------------------------------------------------------


async def test_a_server_that_is_not_there(gateway: Gateways, server: Scripted) -> None:
    await server.stop()
    served = await gateway(server.url, sessions=PLAIN)
    async with Wire(served.url) as client:
        failed(await client.tool("echo"), UNREACHABLE)
        failed(await client.request("tools/list"), UNREACHABLE)
        await server.start()
        assert (await client.tool("echo")).text == "done"


@pytest.mark.parametrize("where", Where)
@pytest.mark.parametrize("how", [How.RESET, How.FIN])
async def test_a_connection_that_breaks_off_fails_the_call_once_and_runs_it_at_most_once(
    gateway: Gateways, server: Scripted, relay: FaultRelay, how: How, where: Where
) -> None:
    """ECOSYSTEM 3: only a failed connect proves that nothing was sent, so nothing is sent again."""
    served = await gateway(relay.url, sessions=PLAIN)
    async with Wire(served.url) as client:
        relay.arm(how, where)
        failed(await client.tool("echo"), LOST)
        assert len(server.seen("tools/call")) == (0 if where is Where.REQUEST else 1)
        assert (await client.tool("echo")).text == "done"


@pytest.mark.parametrize("where", [Where.HEADERS, Where.BODY])
async def test_a_list_that_breaks_off_fails_too_and_the_next_is_whole(
    gateway: Gateways, server: Scripted, relay: FaultRelay, where: Where
) -> None:
    served = await gateway(relay.url, sessions=PLAIN)
    async with Wire(served.url) as client:
        relay.arm(How.RESET, where, b"tools/list")
        failed(await client.request("tools/list"), LOST)
        assert (await client.request("tools/list")).result["tools"][0]["name"] == "echo"


@pytest.mark.parametrize("method", ["initialize", "notifications/initialized"])
async def test_a_handshake_that_breaks_off_is_told_as_what_it_is(
    gateway: Gateways, server: Scripted, relay: FaultRelay, method: str
) -> None:
    served = await gateway(relay.url, sessions=PLAIN)
    await server.wait("notifications/initialized")
    async with Wire(served.url) as client:
        relay.arm(How.RESET, Where.HEADERS, method.encode())
        failed(await client.request("tools/list"), NEVER_OPENED)
        assert server.seen("tools/list") == []
        assert (await client.request("tools/list")).result["tools"]


async def test_an_answer_in_single_bytes_is_an_answer(
    gateway: Gateways, server: Scripted, relay: FaultRelay
) -> None:
    server.on["tools/call"] = asking
    served = await gateway(relay.url, sessions=PLAIN)
    async with Wire(served.url) as client:
        relay.arm(How.DRIP, Where.RESPONSE)
        asked = await client.tool("echo")
        assert (await client.retry(asked, {"name": accept(name="Ann")})).text == "Hello Ann"


@pytest.mark.parametrize("where", Where)
async def test_a_server_that_falls_silent_is_given_up_after_call_timeout_and_told_so(
    gateway: Gateways, server: Scripted, relay: FaultRelay, where: Where
) -> None:
    served = await gateway(relay.url, sessions=PLAIN, call_timeout="200ms")
    async with Wire(served.url) as client:
        relay.arm(How.STALL, where)
        failed(await client.tool("echo"), LATE)
        cancelled = await server.wait("notifications/cancelled")
        if where is not Where.REQUEST:
            assert cancelled.message["params"]["requestId"] == server.seen("tools/call")[0].id
        assert (await client.tool("echo")).text == "done"


@pytest.mark.parametrize("method", ["tools/list", "initialize"])
async def test_silence_elsewhere_is_bounded_too(
    gateway: Gateways, server: Scripted, relay: FaultRelay, method: str
) -> None:
    served = await gateway(relay.url, sessions=PLAIN, call_timeout="200ms")
    await server.wait("notifications/initialized")
    async with Wire(served.url) as client:
        relay.arm(How.STALL, Where.HEADERS, method.encode())
        failed(await client.request("tools/list"), LATE)
        assert (await client.request("tools/list")).result["tools"]


async def test_a_server_that_hangs_over_everything_leaves_no_connection_behind(
    gateway: Gateways, server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: also what it is told of a request that nobody waits for any more is not told for ever."""
    monkeypatch.setattr(session, "_TAKE_SECONDS", 0.1)
    server.on["tools/list"] = server.on["notifications/cancelled"] = Turn.until_left
    served = await gateway(server.url, sessions=PLAIN, call_timeout="100ms")
    async with Wire(served.url) as client:
        for _ in range(3):
            failed(await client.request("tools/list"), LATE)
        await server.wait("notifications/cancelled", 3)
        told = server.seen("notifications/cancelled")
        await server.wait_until(lambda: all(turn.has_left for turn in told))


# --- the clock ---------------------------------------------------------------------------------


async def test_the_work_clock_stands_still_while_the_user_thinks(gateway: Gateways, server: Scripted) -> None:
    """A hold of more than `call_timeout`, and the call still has its time."""
    server.on["tools/call"] = asking
    served = await gateway(server.url, sessions=PLAIN, call_timeout="250ms")
    async with Wire(served.url) as client:
        asked = await client.tool("echo")
        await passed(0.6)
        assert (await client.retry(asked, {"name": accept(name="Ann")})).text == "Hello Ann"
        assert server.seen("notifications/cancelled") == []


async def test_a_call_that_tells_of_its_progress_has_its_time_again(
    gateway: Gateways, server: Scripted
) -> None:
    """Ours, as the legacy spec allows (basic/lifecycle, "Timeouts"): without a gateway no Python client gives up."""

    async def script(turn: Turn) -> None:
        await turn.stream()
        for step in range(5):
            await passed(0.2)
            await turn.event(notice("notifications/progress", progressToken=turn.id, progress=step))
        await turn.event(turn.answer(text_result("done")))
        await turn.finish()

    server.on["tools/call"] = script
    served = await gateway(server.url, sessions=PLAIN, call_timeout="500ms")
    async with Wire(served.url) as client:
        assert (await client.tool("echo", {"text": "x"})).text == "done"


async def test_the_work_clock_goes_on_after_the_answer(gateway: Gateways, server: Scripted) -> None:
    async def script(turn: Turn) -> None:
        await turn.stream()
        await turn.event(ask(1))
        await turn.until_left()

    server.on["tools/call"] = script
    served = await gateway(server.url, sessions=PLAIN, call_timeout="250ms")
    async with Wire(served.url) as client:
        asked = await client.tool("echo")
        failed(await client.retry(asked, {"name": accept(name="Ann")}), LATE)
        await server.wait("notifications/cancelled")


# --- what is not MCP -----------------------------------------------------------------------------


async def _garbage(turn: Turn) -> None:
    await turn.stream()
    await turn.event('{"jsonrpc": "2.0", "id": 1, "result": <<<garbage>>>}')
    await turn.until_left()


async def _half(turn: Turn) -> None:
    await turn.reply(200, '{"jsonrpc":', {"Content-Type": "application/json"})


async def _page(turn: Turn) -> None:
    await turn.reply(200, "<html>Please log in</html>", {"Content-Type": "text/html"})


async def _accepted(turn: Turn) -> None:
    await turn.reply(202)


async def _no_stream(turn: Turn) -> None:
    await turn.reply(405)


async def _too_large(turn: Turn) -> None:
    await turn.stream()
    await turn.event(turn.answer(text_result("x" * 200_000)))
    await turn.until_left()


async def _too_large_json(turn: Turn) -> None:
    await turn.result(text_result("x" * 200_000))


@pytest.mark.parametrize("script", [_garbage, _half, _page, _accepted, _too_large, _too_large_json])
async def test_an_answer_that_is_not_mcp(gateway: Gateways, server: Scripted, script: Script) -> None:
    served = await gateway(server.url, sessions=PLAIN, settings={"limits": {"event": "64KiB"}})
    server.on |= {"tools/call": script, "GET": _no_stream}
    async with Wire(served.url) as client:
        failed(await client.tool("echo"), NONSENSE)
        del server.on["tools/call"]
        assert (await client.tool("echo")).text == "done"


async def test_an_answer_that_was_promised_for_another_stream_is_waited_for(
    gateway: Gateways, server: Scripted
) -> None:
    """Ours: 202 to a call may mean that the answer comes on the GET stream; the work clock says for how long."""
    served = await gateway(server.url, sessions=PLAIN, call_timeout="250ms")
    server.on["tools/call"] = _accepted
    async with Wire(served.url) as client:
        failed(await client.tool("echo"), LATE)


@pytest.mark.parametrize("result", [None, 7, [], "done"])
async def test_a_result_that_is_none(gateway: Gateways, server: Scripted, result: Any) -> None:
    async def script(turn: Turn) -> None:
        await turn.json({"jsonrpc": "2.0", "id": turn.id, "result": result})

    served = await gateway(server.url, sessions=PLAIN)
    server.on["tools/call"] = script
    async with Wire(served.url) as client:
        failed(await client.tool("echo"), NONSENSE)


@pytest.mark.parametrize("status", [400, 404, 413, 429, 500, 502, 503])
@pytest.mark.parametrize("body", ["", "Internal Server Error", "<html><h1>Bad gateway</h1></html>"])
async def test_a_refusal_is_told_with_its_status_and_not_with_its_page(
    gateway: Gateways, server: Scripted, status: int, body: str
) -> None:
    async def script(turn: Turn) -> None:
        await turn.reply(status, body, {"Content-Type": "text/html"})

    server.on["initialize"] = script
    served = await gateway(server.url, sessions=PLAIN)
    async with Wire(served.url) as client:
        answer = failed(await client.tool("echo"), REFUSED)
        assert answer.told == {"upstreamStatus": status}


async def test_a_stream_that_ends_without_an_answer(gateway: Gateways, server: Scripted) -> None:
    async def script(turn: Turn) -> None:
        await turn.stream()
        await turn.chunk(b": nothing to say\n\n")
        await turn.finish()

    server.on["tools/call"] = script
    served = await gateway(server.url, sessions=PLAIN)
    async with Wire(served.url) as client:
        failed(await client.tool("echo"), LOST)
        assert len(server.seen("tools/call")) == 1


# --- while held ----------------------------------------------------------------------------------


async def held(served: Served, client: Wire, server: Scripted) -> Answer:
    server.on["tools/call"] = asking
    return await client.tool("echo")


@pytest.mark.parametrize("how", [How.RESET, How.FIN])
async def test_a_connection_that_breaks_while_held_is_told_on_the_retry(
    gateway: Gateways, server: Scripted, relay: FaultRelay, how: How
) -> None:
    served = await gateway(relay.url, sessions=PLAIN)
    async with Wire(served.url) as client:
        asked = await held(served, client, server)
        relay.end_all(how)
        failed(await client.retry(asked, {"name": accept(name="Ann")}), LOST)
        again = await client.retry(asked, {"name": accept(name="Ann")})
        failed(again, LOST)
        assert len(server.seen("tools/call")) == 1


async def test_a_server_that_takes_no_answer_fails_the_call(
    gateway: Gateways, server: Scripted, relay: FaultRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_SEND_SECONDS", 0.2)
    served = await gateway(relay.url, sessions=PLAIN, call_timeout="3s")
    async with Wire(served.url) as client:
        asked = await held(served, client, server)
        relay.arm(How.STALL, Where.REQUEST, b'"accept"')
        failed(await client.retry(asked, {"name": accept(name="Ann")}), LATE)


@pytest.mark.parametrize("status", [404, 400, 500])
async def test_a_server_that_refuses_the_answer_fails_the_call(
    gateway: Gateways, server: Scripted, status: int
) -> None:
    async def script(turn: Turn) -> None:
        await turn.reply(status, "no such session")

    served = await gateway(server.url, sessions=PLAIN)
    async with Wire(served.url) as client:
        asked = await held(served, client, server)
        server.on["answer"] = script
        answer = await client.retry(asked, {"name": accept(name="Ann")})
        assert (answer.status, answer.error["code"]) == (200, -32603)
        assert len(server.seen("tools/call")) == 1


async def test_an_answer_that_comes_after_the_hold_has_expired(gateway: Gateways, server: Scripted) -> None:
    """The server hears `cancel` for its question, then that the call is cancelled; the user hears why."""
    served = await gateway(server.url, sessions=PLAIN, holds={"ttl": "50ms"})
    async with Wire(served.url) as client:
        asked = await held(served, client, server)
        cancelled = await server.wait("notifications/cancelled")
        answers = [turn for turn in server.turns if turn.method == "answer"]
        assert [turn.message["result"] for turn in answers] == [{"action": "cancel"}]
        assert server.turns.index(answers[0]) < server.turns.index(cancelled)
        late = await client.retry(asked, {"name": accept(name="Ann")})
        assert (late.status, late.error["code"]) == (200, -31001)
        assert late.error["data"]["reason"] == "hold_expired"
        assert late.error["data"]["canStartAgain"] is True
        await server.wait("DELETE")


async def test_an_outcome_that_came_while_held_waits_for_the_retry(
    gateway: Gateways, server: Scripted
) -> None:
    finish = asyncio.Event()

    async def script(turn: Turn) -> None:
        await turn.stream()
        await turn.event(ask(1))
        await finish.wait()
        await turn.event(turn.answer(text_result("changed my mind")))
        await turn.finish()

    server.on["tools/call"] = script
    served = await gateway(server.url, sessions=PLAIN)
    async with Wire(served.url) as client:
        asked = await client.tool("echo")
        finish.set()
        await server.wait_until(lambda: server.seen("tools/call")[0].is_finished)
        assert (await client.retry(asked, {"name": accept(name="Ann")})).text == "changed my mind"
