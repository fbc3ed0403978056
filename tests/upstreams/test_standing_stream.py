"""The GET stream of a Streamable HTTP channel: kept open, opened again, given up."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest
import structlog

from gateway.errors import GatewayError, UpstreamLost
from gateway.upstreams import streamable_http
from gateway.upstreams.streamable_http import StreamableHttp
from gateway.upstreams.transport import SessionGone
from gateway.wire.jsonrpc import Message
from tests.support.calling import LIMIT, words
from tests.support.scripted import Scripted, Turn, ask, notice
from tests.support.waiting import until

T = TypeVar("T")

Script = Callable[[Turn], Awaitable[None]]
FOUR = 4
"""As many tries as there are with the pauses below: the first and one after each."""


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamable_http, "_RECONNECT_SECONDS", (0.001, 0.002, 0.1))


class Standing:
    """What came of listening."""

    def __init__(self) -> None:
        self.heard: list[Message] = []
        self.opened = asyncio.Event()
        self.ending: asyncio.Task[None]

    async def end(self) -> None:
        """How it ends by itself: returns, or raises."""
        async with asyncio.timeout(5):
            await self.ending


@asynccontextmanager
async def listening(channel: StreamableHttp) -> AsyncIterator[Standing]:
    standing = Standing()

    def deliver(message: Message) -> bool:
        standing.heard.append(message)
        return False

    standing.ending = asyncio.ensure_future(channel.listen(deliver, standing.opened.set))
    try:
        yield standing
    finally:
        standing.ending.cancel()
        await asyncio.gather(standing.ending, return_exceptions=True)


async def opened(standing: Standing) -> None:
    async with asyncio.timeout(5):
        await standing.opened.wait()


async def _now(value: T) -> T:
    return value


def refusing(status: int) -> Script:
    async def script(turn: Turn) -> None:
        await turn.reply(status)

    return script


async def test_it_is_open_before_anything_is_said_on_it(server: Scripted, channel: StreamableHttp) -> None:
    """LEGACY-WIRE 7: the first bytes of a GET stream are silence."""
    async with listening(channel) as standing:
        await opened(standing)
        await server.wait_until(lambda: bool(server.standing))
        for number in (0, "", -1, 2**60, "task-7-1"):
            await server.say(ask(number, "roots/list", {}))
        await server.say(notice("notifications/tools/list_changed"))
        await server.hang_up_standing()
        await server.wait("GET", 2)
        assert words(standing.heard) == ["roots/list"] * 5 + ["notifications/tools/list_changed"]
        assert [getattr(message, "id", None) for message in standing.heard[:5]] == [
            0,
            "",
            -1,
            2**60,
            "task-7-1",
        ]
    turn = server.turns[0]
    assert turn.headers["accept"] == "text/event-stream"
    assert "content-type" not in turn.headers


@pytest.mark.parametrize("status", [405, 404, 400, 200, 202, 401])
async def test_a_server_without_one_is_asked_once(
    server: Scripted, channel: StreamableHttp, status: int
) -> None:
    """405 by the specification, 404 by frameworks that were given no such route."""
    server.on["GET"] = refusing(status)
    channel.session_id = "s"
    async with listening(channel) as standing:
        await standing.end()
        assert standing.opened.is_set()
    assert len(server.turns) == 1


@pytest.mark.parametrize("status", [404, 400, 405])
async def test_a_refusal_where_it_was_open_before_means_that_the_session_is_gone(
    server: Scripted, channel: StreamableHttp, status: int
) -> None:
    async with listening(channel) as standing:
        await server.wait_until(lambda: bool(server.standing))
        server.on["GET"] = refusing(status)
        await server.hang_up_standing()
        with pytest.raises(SessionGone):
            await standing.end()
    assert len(server.turns) == 2


@pytest.mark.parametrize("status", [409, 429, 500, 503])
async def test_a_refusal_for_the_moment_is_tried_again(
    server: Scripted, channel: StreamableHttp, status: int
) -> None:
    """LEGACY-WIRE 5: a second GET is 409, which a first one is that the server still believes in."""

    async def script(turn: Turn) -> None:
        if len(server.turns) < FOUR:
            await turn.reply(status)
        else:
            await turn.stream()
            await turn.event(ask(1))
            await turn.until_left()

    server.on["GET"] = script
    async with listening(channel) as standing:
        await opened(standing)
        await server.wait("GET", FOUR)
        await until(lambda: _now(standing.heard))


async def test_one_that_never_opens_is_done_without(server: Scripted, channel: StreamableHttp) -> None:
    server.on["GET"] = refusing(500)
    async with listening(channel) as standing:
        await standing.end()
    assert len(server.turns) == FOUR


async def test_one_that_keeps_breaking_ends_the_session(server: Scripted, channel: StreamableHttp) -> None:
    async def script(turn: Turn) -> None:
        await turn.stream()
        await turn.chunk(b": hello\n\n")
        turn.reset()

    server.on["GET"] = script
    async with listening(channel) as standing:
        with pytest.raises(UpstreamLost):
            await standing.end()
    assert len(server.turns) == FOUR


async def test_a_server_that_is_gone_ends_the_session(server: Scripted, channel: StreamableHttp) -> None:
    async with listening(channel) as standing:
        await server.wait_until(lambda: bool(server.standing))
        await server.stop()
        with pytest.raises(GatewayError):
            await standing.end()


async def test_one_that_only_ends_is_opened_again_without_end_but_never_in_a_hurry(
    server: Scripted, channel: StreamableHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    async def script(turn: Turn) -> None:
        await turn.stream()
        await turn.finish()

    monkeypatch.setattr("gateway.upstreams.streamable_http.asyncio.sleep", noted)
    monkeypatch.setattr(streamable_http, "_RECONNECT_SECONDS", (0.5, 1.0, 5.0))
    server.on["GET"] = script
    async with listening(channel):
        await server.wait("GET", 8)
    assert pauses[:6] == [0.5, 1.0, 5.0, 5.0, 5.0, 5.0]


async def test_no_headers_is_not_no_stream(server: Scripted, channel: StreamableHttp) -> None:
    release = asyncio.Event()

    async def script(turn: Turn) -> None:
        await release.wait()
        await turn.stream()
        await turn.event(ask(1))
        await turn.until_left()

    server.on["GET"] = script
    async with listening(channel) as standing:
        await server.wait("GET")
        assert not standing.opened.is_set()
        release.set()
        await opened(standing)
        await until(lambda: _now(standing.heard))


async def test_an_unreadable_event_is_noted_and_the_next_one_heard(
    server: Scripted, channel: StreamableHttp
) -> None:
    with structlog.testing.capture_logs() as lines:
        async with listening(channel) as standing:
            await server.wait_until(lambda: bool(server.standing))
            (stream,) = server.standing.values()
            await stream.chunk(b": comment\r\n\r\nid: 1\r\ndata: \r\n\r\n")
            await stream.event("secret garbage {")
            await stream.event("now", event="ping")
            await stream.event(ask(1))
            await server.hang_up_standing()
            await server.wait("GET", 2)
            assert words(standing.heard) == ["elicitation/create"]
    assert [line["event"] for line in lines] == ["upstream_protocol"]
    assert "secret" not in str(lines)


async def test_an_event_over_the_limit_breaks_the_stream_and_not_what_came_before(
    server: Scripted, channel: StreamableHttp
) -> None:
    async with listening(channel) as standing:
        await server.wait_until(lambda: bool(server.standing))
        (stream,) = server.standing.values()
        await stream.chunk(stream.framed(ask(1)) + b"data: " + b"x" * (LIMIT + 1))
        await server.wait("GET", 2)
        assert words(standing.heard) == ["elicitation/create"]
