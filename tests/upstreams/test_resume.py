"""Reading a call's stream on after it broke off (SEP-1699 and accidents), against a scripted server."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gateway.errors import UpstreamLost
from gateway.upstreams import streamable_http
from gateway.upstreams.streamable_http import StreamableHttp
from gateway.wire.jsonrpc import Failure, Message, Result
from tests.support.calling import CALL, call, words
from tests.support.scripted import Scripted, Turn, ask, notice, text_result

Script = Callable[[Turn], Awaitable[None]]
Ending = Callable[[Turn], Awaitable[None]]


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same pace, faster."""
    monkeypatch.setattr(streamable_http, "_REPOLL_SECONDS", (0.5, 0.5, 0.5, 0.5))
    monkeypatch.setattr(streamable_http, "_RECONNECT_SECONDS", (0.001, 0.001, 0.001, 0.001))
    monkeypatch.setattr(streamable_http, "_ASKED_SECONDS", 0.001)


@pytest.fixture
def quick(channel: StreamableHttp) -> StreamableHttp:
    channel._retry_seconds = 0.001
    return channel


async def end(turn: Turn) -> None:
    await turn.finish()


async def reset(turn: Turn) -> None:
    turn.reset()


async def hang_up(turn: Turn) -> None:
    turn.hang_up()


def begins(ending: Ending = end, retry: int | None = None) -> Script:
    """A call whose stream primes, asks, and is over."""

    async def script(turn: Turn) -> None:
        await turn.stream()
        await turn.event("", event=None, id="e1", retry=retry)
        await turn.event(ask(0), id="e2")
        await ending(turn)

    return script


async def begins_quietly(turn: Turn) -> None:
    """A call whose stream primes, and is over."""
    await turn.stream()
    await turn.event("", event=None, id="e1")
    await turn.finish()


def goes_on(*parts: Script) -> Script:
    """What each GET brings, one after the other; the last for all further ones."""
    left = list(parts)

    async def script(turn: Turn) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(turn)

    return script


def says(*texts: str, first_id: int = 3, ending: Ending = end) -> Script:
    async def script(turn: Turn) -> None:
        await turn.stream()
        for number, text in enumerate(texts, first_id):
            if text == "result":
                message = {"jsonrpc": "2.0", "id": CALL, "result": text_result("read on")}
            else:
                message = notice("notifications/message", level="info", data=text)
            await turn.event(message, id=f"e{number}")
        await ending(turn)

    return script


async def silent(turn: Turn) -> None:
    await turn.stream()
    await turn.until_left()


def asked_for(server: Scripted) -> list[str]:
    return [turn.headers["last-event-id"] for turn in server.seen("GET")]


# --- when ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [end, reset, hang_up], ids=["end", "reset", "hang-up"])
async def test_a_stream_that_is_over_before_the_answer_is_read_on_from_its_last_event(
    server: Scripted, quick: StreamableHttp, ending: Ending
) -> None:
    server.on = {"tools/call": begins(ending), "GET": says("result")}
    assert words(await call(quick)) == ["elicitation/create", "read on"]
    assert asked_for(server) == ["e2"]
    (turn,) = server.seen("GET")
    assert turn.headers["accept"] == "text/event-stream"
    assert turn.headers["authorization"] == "Bearer t"
    assert "content-type" not in turn.headers
    assert len(server.seen("tools/call")) == 1, "never sent again"


async def test_a_priming_event_that_a_store_tells_again_as_an_empty_object_says_nothing(
    server: Scripted, quick: StreamableHttp
) -> None:
    """server-everything 2026.8.31, whose store has the priming events of all streams: the call failed of it."""

    async def told_again(turn: Turn) -> None:
        await turn.stream()
        await turn.event({}, id="p1")
        await turn.event({"jsonrpc": "2.0", "id": CALL, "result": text_result("read on")}, id="e3")
        await turn.finish()

    server.on = {"tools/call": begins(), "GET": told_again}
    assert words(await call(quick)) == ["elicitation/create", "read on"]


async def test_a_stream_without_event_ids_is_not_read_on(server: Scripted, quick: StreamableHttp) -> None:
    async def script(turn: Turn) -> None:
        await turn.stream()
        await turn.event(ask(0))
        await turn.finish()

    server.on["tools/call"] = script
    assert words(await call(quick)) == ["elicitation/create"]
    assert server.seen("GET") == []


@pytest.mark.parametrize("is_resumed", [False, True])
async def test_an_empty_event_id_leads_nowhere(
    server: Scripted, quick: StreamableHttp, *, is_resumed: bool
) -> None:
    """HTML, "Server-sent events": it resets the last event id. Asked for, it was taken for the standing stream."""

    async def forgets(turn: Turn) -> None:
        await turn.stream()
        await turn.event(ask(0), id="")
        await turn.finish()

    server.on = {"tools/call": begins() if is_resumed else forgets, "GET": forgets}
    async with asyncio.timeout(5):
        if is_resumed:
            with pytest.raises(UpstreamLost):
                await call(quick)
        else:
            assert words(await call(quick)) == ["elicitation/create"]
    assert len(server.seen("GET")) == is_resumed


async def test_an_event_id_of_the_call_before_is_not_this_call_s(
    server: Scripted, quick: StreamableHttp
) -> None:
    async def script(turn: Turn) -> None:
        await turn.stream()
        await turn.finish()

    server.on = {"tools/call": begins(), "GET": says("result")}
    await call(quick)
    server.on["tools/call"] = script
    assert words(await call(quick)) == []
    assert len(server.seen("GET")) == 1


# --- how -------------------------------------------------------------------------------------------


async def test_each_part_is_asked_for_from_the_end_of_the_one_before(
    server: Scripted, quick: StreamableHttp
) -> None:
    parts = goes_on(says("a"), says("b", first_id=4, ending=reset), says("result", first_id=5))
    server.on = {"tools/call": begins(), "GET": parts}
    said = ["elicitation/create", "notifications/message", "notifications/message", "read on"]
    assert words(await call(quick)) == said
    assert asked_for(server) == ["e2", "e3", "e4"]


async def test_a_stream_that_stays_open_after_the_answer_is_not_read_further(
    server: Scripted, quick: StreamableHttp
) -> None:
    """Python always leaves a replayed stream open."""
    server.on = {"tools/call": begins(), "GET": says("result", ending=Turn.until_left)}
    assert words(await call(quick))[-1] == "read on"


@pytest.mark.parametrize(("given", "waited"), [(0, 0.0), (40, 0.04), (3_600_000, 10.0)])
async def test_the_pace_is_the_server_s_within_reason(
    server: Scripted, quick: StreamableHttp, monkeypatch: pytest.MonkeyPatch, given: int, waited: float
) -> None:
    """`retry` in milliseconds; an hour is not waited."""
    paused: list[float] = []

    async def pause(seconds: float) -> None:
        paused.append(seconds)

    server.on = {"tools/call": begins(retry=given), "GET": goes_on(says("a"), says("result", first_id=4))}
    monkeypatch.setattr(asyncio, "sleep", pause)
    assert words(await call(quick))[-1] == "read on"
    assert paused == [waited, waited]


async def test_silence_is_answered_by_asking_again(server: Scripted, quick: StreamableHttp) -> None:
    """The server everything 2026.8.31 registers the wrong stream: only a second GET brings the result."""
    server.on = {"tools/call": begins(), "GET": goes_on(silent, silent, says("result"))}
    assert words(await call(quick))[-1] == "read on"
    assert asked_for(server) == ["e2", "e2", "e2"]


@pytest.mark.parametrize("status", [409, 429, 500, 503])
async def test_not_now_is_not_never(server: Scripted, quick: StreamableHttp, status: int) -> None:
    """409: the server has not noticed yet that the stream before is over."""

    async def refuse(turn: Turn) -> None:
        await turn.reply(status, "later")

    server.on = {"tools/call": begins(), "GET": goes_on(refuse, refuse, says("result"))}
    assert words(await call(quick))[-1] == "read on"


async def test_whoever_knows_the_session_can_read_on(server: Scripted, quick: StreamableHttp) -> None:
    heard: list[Message] = []

    def deliver(message: Message) -> bool:
        heard.append(message)
        return isinstance(message, Result | Failure)

    server.on["GET"] = says("a", "result")
    quick.adopt("session-of-old", "2025-11-25")
    async with asyncio.timeout(5):
        await quick.resume("e9", deliver)
    assert words(heard) == ["notifications/message", "read on"]
    (turn,) = server.seen("GET")
    assert turn.headers["last-event-id"] == "e9"
    assert turn.session == "session-of-old"
    assert turn.headers["mcp-protocol-version"] == "2025-11-25"


# --- when to stop ------------------------------------------------------------------------------------


async def test_an_event_id_that_the_server_does_not_know_is_given_up_soon(
    server: Scripted, quick: StreamableHttp
) -> None:
    """Python: 200 and the end at once, every time."""
    server.on = {"tools/call": begins_quietly, "GET": says()}
    with pytest.raises(UpstreamLost, match="brought no answer"):
        await call(quick)
    assert len(server.seen("GET")) == streamable_http._MOST_FRUITLESS


@pytest.mark.parametrize(
    ("status", "body"), [(405, ""), (404, "no such session"), (400, '{"error": "Invalid event ID format"}')]
)
async def test_a_refusal_to_read_on_is_final(
    server: Scripted, quick: StreamableHttp, status: int, body: str
) -> None:
    """405: no GET at all; TypeScript 1.32 says 400 to an event id that it cannot find."""

    async def refuse(turn: Turn) -> None:
        await turn.reply(status, body)

    server.on = {"tools/call": begins(), "GET": refuse}
    with pytest.raises(UpstreamLost, match=f"HTTP {status}"):
        await call(quick)
    assert len(server.seen("GET")) == 1


async def test_a_server_that_waits_for_an_answer_is_given_up_only_after_that(
    server: Scripted, quick: StreamableHttp
) -> None:
    """PHP (logiscape 1.7): it hangs up when it has asked, and has nothing to tell for as long as the user thinks.

    A user who took ninety seconds had lost the call, which any legacy client would have brought to its end.
    """
    calling = asyncio.ensure_future(call(quick))
    server.on = {"tools/call": begins(), "GET": says()}
    await server.wait("GET", streamable_http._MOST_FRUITLESS + 2)

    async def runs_on(turn: Turn) -> None:
        server.on["GET"] = says("result")
        await turn.reply(202)

    server.on["answer"] = runs_on
    await quick.send(b'{"jsonrpc":"2.0","id":0,"result":{"action":"decline"}}')

    assert words(await calling) == ["elicitation/create", "read on"]


async def test_a_server_that_was_answered_and_has_nothing_more_to_tell_is_given_up(
    server: Scripted, quick: StreamableHttp
) -> None:
    calling = asyncio.ensure_future(call(quick))
    server.on = {"tools/call": begins(), "GET": says()}
    await server.wait("GET")
    await quick.send(b'{"jsonrpc":"2.0","id":0,"result":{"action":"decline"}}')
    with pytest.raises(UpstreamLost, match="brought no answer"):
        await calling


async def test_progress_starts_the_count_of_fruitless_tries_anew(
    server: Scripted, quick: StreamableHttp
) -> None:
    few = [says()] * (streamable_http._MOST_FRUITLESS - 1)
    parts = goes_on(*few, says("a"), *few, says("result", first_id=4))
    server.on = {"tools/call": begins_quietly, "GET": parts}
    assert words(await call(quick))[-1] == "read on"


async def test_a_server_that_is_gone_is_given_up(server: Scripted, quick: StreamableHttp) -> None:
    async def vanish(turn: Turn) -> None:
        turn.reset()
        assert turn.server._server is not None
        turn.server._server.close()

    server.on = {"tools/call": begins(vanish)}
    with pytest.raises(UpstreamLost):
        await call(quick)


async def test_a_ticket_written_while_the_answer_is_under_way_does_not_lead_past_it(
    server: Scripted, quick: StreamableHttp
) -> None:
    """Ours: the process may be told to hand over in that very moment; whoever reads on then must hear the answer."""
    server.on["tools/call"] = begins()
    server.on["GET"] = says("more", "result")

    await call(quick)

    assert quick.last_event_id == "e3"
