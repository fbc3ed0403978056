"""The standing session: kept up, put up again, and asked for each resource once."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.errors import GatewayError, UpstreamUnauthorized, UpstreamUnreachable
from gateway.relay import standing as module
from gateway.relay.place import Ids
from gateway.relay.standing import Standing
from gateway.telemetry.logs import get_logger
from gateway.upstreams.background import Background
from gateway.upstreams.transport import SessionGone
from tests.support.channels import FakeChannel, silent
from tests.support.lines import FakeLine, about, lose, refused
from tests.support.pools import caller
from tests.support.waiting import turns, until

ANN = caller("ann")
SUBSCRIBE, UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSES", (0.001, 0.002))


class Watched:
    """A standing session, and what it told."""

    def __init__(self, line: FakeLine, background: Background) -> None:
        self.line = line
        self.gaps = 0
        self.endings: list[GatewayError] = []
        self.standing = Standing(
            ANN,
            line,
            ids=Ids("test"),
            background=background,
            log=get_logger(),
            on_gap=self._heard_again,
            on_end=lambda _, error: self.endings.append(error),
        )

    def _heard_again(self, standing: Standing) -> None:
        assert standing is self.standing
        self.gaps += 1


@asynccontextmanager
async def standing_on(line: FakeLine) -> AsyncIterator[Watched]:
    background = Background()
    watched = Watched(line, background)
    watched.standing.start()
    try:
        yield watched
    finally:
        await watched.standing.close()
        await background.close()
        await line.close()


async def becomes(is_true: Callable[[], Any]) -> None:
    async def look() -> Any:
        return is_true()

    await until(look)


async def test_it_is_ready_when_the_server_has_introduced_itself() -> None:
    line = FakeLine()
    async with standing_on(line) as watched:
        server = await watched.standing.ready()
        assert server.capabilities == line.capabilities
        assert watched.standing.can_hear
        assert (watched.gaps, watched.endings) == (0, [])
    assert len(line.given_back) == 1


async def test_a_server_that_cannot_be_reached_at_first_is_an_answer() -> None:
    line = FakeLine()
    line.failure = UpstreamUnreachable("no")
    async with standing_on(line) as watched:
        with pytest.raises(UpstreamUnreachable):
            await watched.standing.ready()
        assert watched.endings == [line.failure]
        await turns()
        assert line.tries == 1


async def test_a_server_without_a_stream_cannot_be_heard() -> None:
    line = FakeLine()
    line.has_stream = False
    async with standing_on(line) as watched:
        await watched.standing.ready()
        assert not watched.standing.can_hear


# --- resources ---------------------------------------------------------------------------------


async def test_a_resource_is_subscribed_to_once_and_let_go_with_the_last() -> None:
    """Ours: reference counts, because the server knows one session where there are many listeners."""
    async with standing_on(FakeLine()) as watched:
        standing = watched.standing
        await standing.ready()
        channel = await watched.line.opened()
        standing.hold(["a:1"])
        standing.hold(["a:1"])
        assert all(await asyncio.gather(standing.subscribe("a:1"), standing.subscribe("a:1")))
        assert about(channel, SUBSCRIBE) == ["a:1"]
        standing.drop(["a:1"])
        await turns()
        assert about(channel, UNSUBSCRIBE) == []
        standing.drop(["a:1"])
        await becomes(lambda: about(channel, UNSUBSCRIBE) == ["a:1"])


async def test_a_refusal_is_told_and_the_resource_is_not_let_go_at_the_server() -> None:
    line = FakeLine()
    line.on[SUBSCRIBE] = refused
    async with standing_on(line) as watched:
        standing = watched.standing
        await standing.ready()
        standing.hold(["a:1"])
        assert not await standing.subscribe("a:1")
        standing.drop(["a:1"])
        await turns()
        assert about(await line.opened(), UNSUBSCRIBE) == []
        assert not await standing.subscribe("a:1"), "nobody holds it any more"


async def test_a_server_that_does_not_answer_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ANSWER_SECONDS", 0.01)
    line = FakeLine()
    line.on[SUBSCRIBE] = silent
    async with standing_on(line) as watched:
        await watched.standing.ready()
        watched.standing.hold(["a:1"])
        assert not await watched.standing.subscribe("a:1")


async def test_who_comes_while_the_last_one_leaves_is_subscribed_afterwards() -> None:
    may_end = asyncio.Event()

    async def slowly(_: Any, __: FakeChannel) -> Any:
        await may_end.wait()
        return {}

    line = FakeLine()
    line.on[UNSUBSCRIBE] = slowly
    async with standing_on(line) as watched:
        standing = watched.standing
        await standing.ready()
        channel = await line.opened()
        standing.hold(["a:1"])
        assert await standing.subscribe("a:1")
        standing.drop(["a:1"])
        await becomes(lambda: about(channel, UNSUBSCRIBE))
        standing.hold(["a:1"])
        again = asyncio.ensure_future(standing.subscribe("a:1"))
        await turns()
        assert about(channel, SUBSCRIBE) == ["a:1"], "it must not overtake what is under way"
        may_end.set()
        assert await again
        assert channel.methods()[-3:] == [SUBSCRIBE, UNSUBSCRIBE, SUBSCRIBE]


async def test_one_who_comes_back_before_the_server_was_told_stays_subscribed() -> None:
    async with standing_on(FakeLine()) as watched:
        standing = watched.standing
        await standing.ready()
        channel = await watched.line.opened()
        standing.hold(["a:1"])
        assert await standing.subscribe("a:1")
        standing.drop(["a:1"])
        standing.hold(["a:1"])
        assert await standing.subscribe("a:1")
        await turns()
        assert (about(channel, SUBSCRIBE), about(channel, UNSUBSCRIBE)) == (["a:1"], [])


# --- when it falls -----------------------------------------------------------------------------


async def test_a_lost_session_is_opened_again_and_what_was_subscribed_to_is_again() -> None:
    """Issue: re-established when the upstream restarts, so that nothing is missed."""
    async with standing_on(FakeLine()) as watched:
        standing, line = watched.standing, watched.line
        await standing.ready()
        standing.hold(["a:1", "a:2"])
        await asyncio.gather(standing.subscribe("a:1"), standing.subscribe("a:2"))
        standing.drop(["a:2"])
        lose(await line.opened())
        second = await line.opened(2)
        await becomes(lambda: watched.gaps == 1)
        assert about(second, SUBSCRIBE) == ["a:1"]
        assert len(line.given_back) == 1


async def test_it_waits_for_a_server_that_is_away_and_promises_meanwhile() -> None:
    async with standing_on(FakeLine()) as watched:
        standing, line = watched.standing, watched.line
        await standing.ready()
        line.failure = UpstreamUnreachable("down")
        lose(await line.opened())
        await becomes(lambda: line.tries >= 4)
        assert (await standing.ready()).server_info == {"name": "fake", "version": "1"}
        assert standing.can_hear
        standing.hold(["a:1"])
        assert await standing.subscribe("a:1")
        assert watched.gaps == 0
        line.failure = None
        second = await line.opened(2)
        await becomes(lambda: watched.gaps == 1)
        assert about(second, SUBSCRIBE) == ["a:1"]
        assert watched.endings == []


async def test_credentials_that_are_not_taken_any_more_end_it() -> None:
    async with standing_on(FakeLine()) as watched:
        await watched.standing.ready()
        watched.line.failure = UpstreamUnauthorized(401, "Bearer")
        lose(await watched.line.opened())
        await becomes(lambda: watched.endings)
        assert watched.endings == [watched.line.failure]


async def test_a_stream_that_was_interrupted_is_a_gap_too() -> None:
    """A server without an event store does not repeat what it said while nobody could hear it."""
    async with standing_on(FakeLine()) as watched:
        await watched.standing.ready()
        (await watched.line.opened()).reopen()
        assert watched.gaps == 1
        assert watched.line.tries == 1


async def test_a_session_lost_while_it_is_subscribed_on_is_in_doubt_promised() -> None:
    async def lost(_: Any, channel: FakeChannel) -> Any:
        raise SessionGone("gone")

    async with standing_on(FakeLine()) as watched:
        standing, line = watched.standing, watched.line
        await standing.ready()
        (await line.opened()).on[SUBSCRIBE] = lost
        standing.hold(["a:1"])
        assert await standing.subscribe("a:1")
        second = await line.opened(2)
        await becomes(lambda: about(second, SUBSCRIBE) == ["a:1"])
        await becomes(lambda: watched.gaps == 1)


async def test_a_silent_session_is_pinged_and_a_forgotten_one_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: some servers forget a session that nobody uses, and keep its stream open all the same."""
    monkeypatch.setattr(module, "_PING_SECONDS", 0.01)
    forgotten = asyncio.Event()

    async def answer(_: Any, __: FakeChannel) -> Any:
        if forgotten.is_set():
            raise SessionGone("never heard of it")
        return {}

    line = FakeLine()
    line.on["ping"] = answer
    async with standing_on(line) as watched:
        await watched.standing.ready()
        channel = await line.opened()
        await becomes(lambda: channel.methods().count("ping") >= 2)
        forgotten.set()
        await line.opened(2)
        forgotten.clear()
        await becomes(lambda: watched.gaps >= 1)


async def test_a_server_that_ignores_pings_is_left_in_peace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PING_SECONDS", 0.001)
    monkeypatch.setattr(module, "_ANSWER_SECONDS", 0.001)
    line = FakeLine()
    line.on["ping"] = silent
    async with standing_on(line) as watched:
        await watched.standing.ready()
        channel = await line.opened()
        await becomes(lambda: channel.methods().count("ping") >= 3)
        assert line.tries == 1


async def test_it_can_be_closed_before_it_is_ready() -> None:
    line = FakeLine()
    line.gate.clear()
    async with standing_on(line) as watched:
        await turns()
    assert line.given_back == []
    assert watched.endings == []
