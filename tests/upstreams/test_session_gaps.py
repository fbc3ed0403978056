"""Times in which a server could not be heard, and the end of a session: both are told, whoever finds out."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.errors import UpstreamLost
from gateway.upstreams import streamable_http
from gateway.upstreams.session import Session, open_session
from gateway.upstreams.streamable_http import StreamableHttp
from gateway.upstreams.transport import Channel, SessionGone
from tests.support.channels import FakeChannel
from tests.support.scripted import Scripted, Turn
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamable_http, "_RECONNECT_SECONDS", (0.001, 0.002))


async def opened(channel: Channel) -> tuple[Session, list[str]]:
    """A session, and a note for each gap that it tells of."""
    session = await open_session(
        channel,
        request_id="hello",
        client_info=None,
        capabilities={},
        on_early_ask=lambda _session, _ask: None,
        on_end=lambda _session: None,
    )
    gaps: list[str] = []
    session.on_gap = lambda: gaps.append("gap")
    return session, gaps


async def standing_again(server: Scripted, number: int) -> None:
    await server.wait("GET", number)
    await server.wait_until(lambda: bool(server.standing))


async def test_a_stream_that_is_open_from_the_start_has_no_gap() -> None:
    channel = FakeChannel()
    session, gaps = await opened(channel)
    assert gaps == []
    channel.reopen()
    assert gaps == ["gap"]
    await session.close()


async def test_a_gap_that_nobody_wants_to_know_of_is_none() -> None:
    channel = FakeChannel()
    session, _ = await opened(channel)
    session.on_gap = None
    channel.reopen()
    await session.close()


async def test_a_stream_that_ended_and_is_open_again_is_one_gap(
    server: Scripted, channel: StreamableHttp
) -> None:
    session, gaps = await opened(channel)
    await standing_again(server, 1)
    await server.hang_up_standing()
    await standing_again(server, 2)
    await until(lambda: _is(gaps == ["gap"]))
    await session.close()


async def test_tries_that_fail_are_no_gaps_and_the_one_that_succeeds_is(
    server: Scripted, channel: StreamableHttp
) -> None:
    session, gaps = await opened(channel)
    await standing_again(server, 1)
    may_open = server.on.pop("GET", None)
    server.on["GET"] = _refusing
    await server.hang_up_standing()
    await server.wait("GET", 2)
    assert gaps == []
    del server.on["GET"]
    if may_open is not None:
        server.on["GET"] = may_open
    await server.wait_until(lambda: bool(server.standing))
    await until(lambda: _is(gaps == ["gap"]))
    await session.close()


async def test_a_session_that_is_gone_is_no_gap_but_a_death(
    server: Scripted, channel: StreamableHttp
) -> None:
    session, gaps = await opened(channel)
    await standing_again(server, 1)
    server.on["GET"] = _forgotten
    await server.hang_up_standing()
    async with asyncio.timeout(5):
        await session.death.wait()
    assert (gaps, session.is_dead) == ([], True)
    await session.close()


async def _lost(channel: FakeChannel, session: Session) -> None:
    async def gone(_: Any, __: FakeChannel) -> Any:
        raise SessionGone("gone")

    channel.on["tools/list"] = gone
    with pytest.raises(UpstreamLost):
        await session.call("1", "tools/list", {})


async def _dropped(channel: FakeChannel, _: Session) -> None:
    channel.ending = SessionGone("gone")
    channel.end.set()


async def _closed(_: FakeChannel, session: Session) -> None:
    await session.close()


@pytest.mark.parametrize("end", [_lost, _dropped, _closed])
async def test_a_death_is_known_however_it_came(
    end: Callable[[FakeChannel, Session], Awaitable[None]],
) -> None:
    channel = FakeChannel()
    session, _ = await opened(channel)
    waiting = asyncio.ensure_future(session.death.wait())
    await end(channel, session)
    async with asyncio.timeout(5):
        await waiting
    assert session.is_dead
    await session.close()


async def _refusing(turn: Turn) -> None:
    await turn.reply(503)


async def _forgotten(turn: Turn) -> None:
    await turn.reply(404)


async def _is(value: bool) -> bool:  # noqa: FBT001
    return value
