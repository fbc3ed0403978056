"""The channel over HTTP+SSE, against a server that does what is scripted."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from gateway.errors import (
    UpstreamFault,
    UpstreamLost,
    UpstreamRefused,
    UpstreamSpokeNonsense,
    UpstreamTimedOut,
    UpstreamUnauthorized,
    UpstreamUnreachable,
)
from gateway.telemetry.logs import get_logger
from gateway.upstreams import http_sse
from gateway.upstreams.http1 import Http1
from gateway.upstreams.http_sse import HttpSse
from gateway.upstreams.transport import SessionGone
from gateway.wire.jsonrpc import Message, Notification, Request, encode_request
from tests.support.calling import LIMIT, NO_MESSAGE, UNREADABLE_ANSWERS, call, words
from tests.support.scripted import Turn, ask, notice, text_result
from tests.support.scripted_sse import ScriptedSse, accept, open_stream, respond

Open = Callable[[], Awaitable[HttpSse]]


@pytest.fixture
async def server() -> AsyncIterator[ScriptedSse]:
    async with ScriptedSse() as scripted:
        yield scripted


@pytest.fixture
async def opened(http: Http1, server: ScriptedSse) -> AsyncIterator[Open]:
    channels: list[HttpSse] = []

    async def open_one() -> HttpSse:
        headers = {"Authorization": "Bearer t"}
        channel = HttpSse(http, server.url, headers=headers, max_event_bytes=LIMIT, log=get_logger())
        channels.append(channel)
        await channel.open()
        return channel

    yield open_one
    for channel in channels:
        await channel.close()


def listening(channel: HttpSse) -> tuple[list[Message], "asyncio.Task[None]"]:
    heard: list[Message] = []

    def deliver(message: Message) -> bool:
        heard.append(message)
        return False

    return heard, asyncio.get_running_loop().create_task(channel.listen(deliver, lambda: None))


# --- where to POST -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("endpoint", "session"),
    [
        ("/messages?sessionId={session}", "s-1"),
        ("/messages/?session_id={session}", "s-1"),
        ("messages?sessionId={session}", "s-1"),
        ("?sessionId={session}", "s-1"),
        ("http://127.0.0.1:{port}/messages?sessionId={session}", "s-1"),
        ("//127.0.0.1:{port}/messages?a=b&sessionId={session}", "s-1"),
        (" /messages?sessionId={session} ", "s-1"),
        ("/messages/path?id={session}", "/messages/path?id=s-1"),
    ],
)
async def test_the_endpoint_may_be_written_in_many_ways(
    server: ScriptedSse, opened: Open, endpoint: str, session: str
) -> None:
    """2024-11-05: a URI; LEGACY-WIRE 7: path-absolute everywhere seen."""
    server.endpoint = endpoint
    server._script_for = lambda turn: _post_to_anything(server, turn)  # type: ignore[method-assign]
    channel = await opened()
    assert words(await call(channel)) == ["done"]
    assert channel.session_id == session
    assert channel.has_one_stream


def _post_to_anything(server: ScriptedSse, turn: Turn) -> Callable[[Turn], Awaitable[None]]:
    async def answered(turn: Turn) -> None:
        await accept(turn)
        await next(iter(server.standing.values())).event(turn.answer(text_result("done")))

    return open_stream if turn.verb == "GET" else answered


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://example.invalid/messages",
        "//example.invalid/messages",
        "https://127.0.0.1:{port}/messages",
        "http://127.0.0.1:1/messages",
        "http://localhost:{port}/messages",
        "http://user:pw@127.0.0.1:{port}/messages",
        "http://user@127.0.0.1:{port}/messages",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://[/messages",
        "http://127.0.0.1:999999/",
    ],
)
async def test_our_messages_and_credentials_stay_with_the_origin(
    server: ScriptedSse, opened: Open, endpoint: str
) -> None:
    """Issue: same origin enforced."""
    server.endpoint = endpoint
    with pytest.raises(UpstreamSpokeNonsense):
        await opened()
    assert [turn.verb for turn in server.turns] == ["GET"]


async def test_a_stream_without_an_endpoint_is_given_up(
    server: ScriptedSse, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(turn: Turn) -> None:
        await turn.stream()
        await turn.until_left()

    server.on["GET"] = silent
    monkeypatch.setattr(http_sse, "_ENDPOINT_SECONDS", 0.05)
    with pytest.raises(UpstreamTimedOut):
        await opened()
    await server.wait_until(lambda: server.turns[0].has_left)


async def test_what_is_no_event_stream_is_refused(server: ScriptedSse, opened: Open) -> None:
    async def page(turn: Turn) -> None:
        await turn.reply(200, "<html>", {"Content-Type": "text/html"})

    server.on["GET"] = page
    with pytest.raises(UpstreamSpokeNonsense, match="text/html"):
        await opened()


@pytest.mark.parametrize("status", [400, 404, 405, 500, 503])
async def test_a_refused_stream_keeps_its_status(server: ScriptedSse, opened: Open, status: int) -> None:
    async def refuse(turn: Turn) -> None:
        await turn.reply(status, "no session")

    server.on["GET"] = refuse
    with pytest.raises(UpstreamRefused) as refused:
        await opened()
    assert refused.value.status == status


async def test_a_server_that_is_not_there_cannot_be_reached(server: ScriptedSse, opened: Open) -> None:
    await server.stop()
    with pytest.raises(UpstreamUnreachable):
        await opened()


@pytest.mark.parametrize("where", ["GET", "tools/call"])
async def test_a_challenge_is_passed_on(server: ScriptedSse, opened: Open, where: str) -> None:
    async def challenge(turn: Turn) -> None:
        await turn.reply(401, "", {"WWW-Authenticate": 'Bearer realm="x"'})

    server.on[where] = challenge
    with pytest.raises(UpstreamUnauthorized) as refused:
        await call(await opened())
    assert refused.value.headers == {"WWW-Authenticate": 'Bearer realm="x"'}


async def test_every_request_carries_the_credential_and_none_the_session(
    server: ScriptedSse, opened: Open
) -> None:
    channel = await opened()
    channel.speak("2025-11-25")
    await call(channel)
    await channel.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    assert [turn.headers["authorization"] for turn in server.turns] == ["Bearer t"] * 3
    for turn in server.turns:
        assert not turn.headers.keys() & {"mcp-session-id", "mcp-protocol-version", "last-event-id", "cookie"}


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_moved_stream_is_followed_within_the_origin(
    server: ScriptedSse, opened: Open, status: int
) -> None:
    async def moved(turn: Turn) -> None:
        if "moved" in turn.path:
            await open_stream(turn)
        else:
            await turn.reply(status, "", {"Location": "/sse?moved"})

    server.on["GET"] = moved
    server._script_for = lambda turn: moved if turn.verb == "GET" else ScriptedSse._script_for(server, turn)  # type: ignore[method-assign]
    assert words(await call(await opened())) == ["done"]


async def test_a_moved_stream_is_not_followed_elsewhere(server: ScriptedSse, opened: Open) -> None:
    async def moved(turn: Turn) -> None:
        await turn.reply(307, "", {"Location": "http://localhost:1/sse"})

    server.on["GET"] = moved
    with pytest.raises(UpstreamSpokeNonsense, match="origin"):
        await opened()


# --- answers -----------------------------------------------------------------------------------


async def test_answers_find_their_requests_in_any_order(server: ScriptedSse, opened: Open) -> None:
    channel = await opened()
    waiting: list[Turn] = []

    async def together(turn: Turn) -> None:
        await accept(turn)
        waiting.append(turn)
        if len(waiting) == 2:
            for each in reversed(waiting):
                await respond(each, text_result(str(each.id)))

    server.on["tools/call"] = together
    heard: dict[str, Message] = {}

    async def one(id_: str) -> None:
        def deliver(message: Message) -> bool:
            heard[id_] = message
            return True

        await channel.request(id_, encode_request(id_, "tools/call", {}), deliver)

    async with asyncio.timeout(5):
        await asyncio.gather(one("a"), one("b"))
    assert {id_: words([message]) for id_, message in heard.items()} == {"a": ["a"], "b": ["b"]}


async def test_what_the_server_says_unasked_is_heard_from_the_first_on(
    server: ScriptedSse, opened: Open
) -> None:
    async def chatty(turn: Turn) -> None:
        await accept(turn)
        await server.say(notice("notifications/message", data=1))
        await server.say(ask(0))
        await respond(turn, text_result("done"))

    server.on["tools/call"] = chatty
    channel = await opened()
    await call(channel)  # before anybody listens
    heard, task = listening(channel)
    await call(channel)
    assert [type(message) for message in heard] == [Notification, Request] * 2
    task.cancel()


async def test_heartbeats_and_foreign_events_are_passed_over(server: ScriptedSse, opened: Open) -> None:
    async def noisy(turn: Turn) -> None:
        stream = server.stream_of(turn)
        assert stream is not None
        await stream.chunk(b": ping - 2026-01-01\r\n\r\n")
        await stream.event("not for us", event="heartbeat")
        await stream.event("http://example.invalid/", event="endpoint")
        await stream.event("", event="message")
        await accept(turn)
        await respond(turn, text_result("done"))

    server.on["tools/call"] = noisy
    channel = await opened()
    assert words(await call(channel)) == ["done"]
    assert words(await call(channel)) == ["done"]


async def test_a_batch_is_taken_apart(server: ScriptedSse, opened: Open) -> None:
    async def batch(turn: Turn) -> None:
        await accept(turn)
        await server.say([notice("notifications/message"), turn.answer(text_result("done"))])  # type: ignore[arg-type]

    server.on["tools/call"] = batch
    assert words(await call(await opened())) == ["done"]


async def test_an_answer_need_not_wait_for_the_response_to_its_post(
    server: ScriptedSse, opened: Open
) -> None:
    """Java's server responds to the POST when the call is done; some proxies later than that."""

    async def slow(turn: Turn) -> None:
        await respond(turn, text_result("done"))
        await turn.until_left()

    server.on["tools/call"] = slow
    channel = await opened()
    assert words(await call(channel)) == ["done"]
    await channel.close()
    await server.wait_until(lambda: server.seen("tools/call")[0].has_left)


@pytest.mark.parametrize("status", [200, 202, 204])
async def test_any_success_means_taken(server: ScriptedSse, opened: Open, status: int) -> None:
    async def taken(turn: Turn) -> None:
        await turn.reply(status)
        await respond(turn, text_result("done"))

    server.on["tools/call"] = taken
    assert words(await call(await opened())) == ["done"]


# --- what goes wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["finish", "hang_up", "reset"])
async def test_a_dropped_stream_is_a_lost_session(server: ScriptedSse, opened: Open, how: str) -> None:
    """Issue: the running call is lost; nothing is sent on the session afterwards."""

    async def drop(turn: Turn) -> None:
        await accept(turn)
        stream = server.stream_of(turn)
        assert stream is not None
        if how == "finish":
            await stream.finish()
        else:
            getattr(stream, how)()

    server.on["tools/call"] = drop
    channel = await opened()
    _, task = listening(channel)
    with pytest.raises(UpstreamLost) as lost:
        await call(channel)
    assert not isinstance(lost.value, SessionGone), "it may have run"
    with pytest.raises(UpstreamLost):
        await asyncio.wait_for(task, 5)
    number = len(server.turns)
    with pytest.raises(SessionGone):
        await call(channel)
    with pytest.raises(SessionGone):
        await channel.send(b"{}")
    assert len(server.turns) == number


@pytest.mark.parametrize(
    ("status", "body"),
    [(404, "Could not find session"), (410, ""), (400, '{"error":"No transport found for sessionId"}')],
)
async def test_a_session_that_the_server_does_not_know_did_not_run_the_call(
    server: ScriptedSse, opened: Open, status: int, body: str
) -> None:
    """LEGACY-WIRE 4: Python 404, TypeScript 400."""

    async def unknown(turn: Turn) -> None:
        await turn.reply(status, body)

    server.on["tools/call"] = unknown
    with pytest.raises(SessionGone):
        await call(await opened())


@pytest.mark.parametrize("status", [400, 413, 421, 500, 503])
async def test_a_refused_message_keeps_its_status(server: ScriptedSse, opened: Open, status: int) -> None:
    async def refuse(turn: Turn) -> None:
        await turn.reply(status, "<html>no</html>")

    server.on["tools/call"] = refuse
    with pytest.raises(UpstreamRefused) as refused:
        await call(await opened())
    assert refused.value.status == status


async def test_a_server_that_never_answers_a_post_is_timed_out(
    server: ScriptedSse, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LEGACY-WIRE 5: everything, for a session that it does not know: no answer, ever."""

    async def nothing(turn: Turn) -> None:
        await turn.until_left()

    server.on["answer"] = nothing
    channel = await opened()
    monkeypatch.setattr(http_sse, "_ACCEPT_SECONDS", 0.05)
    with pytest.raises(UpstreamTimedOut):
        await channel.send(b'{"jsonrpc":"2.0","id":0,"result":{}}')
    await server.wait_until(lambda: server.seen("answer")[0].has_left)


async def test_a_request_that_is_given_up_leaves_nothing_behind(server: ScriptedSse, opened: Open) -> None:
    async def never(turn: Turn) -> None:
        await turn.until_left()

    server.on["tools/call"] = never
    channel = await opened()
    given_up = channel.request("r0", encode_request("r0", "tools/call", {}), lambda _: True)
    task = asyncio.get_running_loop().create_task(given_up)
    turn = await server.wait("tools/call")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.wait_until(lambda: turn.has_left)
    await server.say(turn.answer(text_result("late")))
    del server.on["tools/call"]
    assert words(await call(channel)) == ["done"], "the late answer was not taken for another's"


async def test_an_event_over_the_limit_ends_the_session(server: ScriptedSse, opened: Open) -> None:
    async def huge(turn: Turn) -> None:
        await accept(turn)
        await respond(turn, text_result("x" * LIMIT))

    server.on["tools/call"] = huge
    channel = await opened()
    with pytest.raises(UpstreamSpokeNonsense):
        await call(channel)
    with pytest.raises(SessionGone):
        await call(channel)


@pytest.mark.parametrize("data", NO_MESSAGE)
async def test_what_is_no_message_is_passed_over(server: ScriptedSse, opened: Open, data: str) -> None:
    """Heartbeats, log lines, `[DONE]`: SDK clients go on, and get the answer."""

    async def chatter(turn: Turn) -> None:
        await accept(turn)
        stream = server.stream_of(turn)
        assert stream is not None
        await stream.event(data)
        await respond(turn, text_result("done"))

    server.on["tools/call"] = chatter
    assert words(await call(await opened())) == ["done"]


@pytest.mark.parametrize("data", UNREADABLE_ANSWERS)
async def test_an_unreadable_answer_fails_the_call_and_not_the_session(
    server: ScriptedSse, opened: Open, data: str
) -> None:
    async def garble(turn: Turn) -> None:
        await accept(turn)
        stream = server.stream_of(turn)
        assert stream is not None
        await stream.event(data)

    server.on["tools/call"] = garble
    channel = await opened()
    with pytest.raises(UpstreamSpokeNonsense):
        await call(channel)
    del server.on["tools/call"]
    assert words(await call(channel)) == ["done"]


async def test_closing_hangs_up(server: ScriptedSse, opened: Open) -> None:
    channel = await opened()
    await channel.close()
    await server.wait_until(lambda: server.turns[0].has_left)
    with pytest.raises(UpstreamFault):
        await call(channel)
    await channel.close()


async def test_messages_have_the_cookie_that_came_with_the_stream(opened: Open, server: ScriptedSse) -> None:
    """A balancer with sticky sessions: the stream is open at one replica, and only that takes its messages."""
    server.stream_headers = {"Set-Cookie": "route=r1; Path=/"}
    assert words(await call(await opened())) == ["done"]
    assert [turn.headers.get("cookie") for turn in server.turns] == [None, "route=r1"]
