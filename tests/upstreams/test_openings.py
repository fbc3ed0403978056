"""Sessions that are being opened: carried through whoever leaves, and told of when nobody waits for them any more."""

import asyncio
from typing import Any

import pytest

from gateway.errors import Overloaded, UpstreamUnreachable
from gateway.upstreams import openings
from gateway.upstreams.openings import Openings
from gateway.upstreams.pool import Caller
from gateway.upstreams.session import Session
from tests.support.pools import Opener, caller, pooling
from tests.support.waiting import turns

ANN = caller("ann")


def opened_by(opener: Opener) -> tuple[Openings[Caller, Session], list[Session]]:
    """Openings, and where those end up that nobody waits for."""
    adrift: list[Session] = []
    return Openings(opener, adrift.append), adrift


async def test_who_waits_gets_what_was_opened() -> None:
    """Ours."""
    opener = Opener()
    sessions, adrift = opened_by(opener)
    assert [await sessions.open(ANN)] == opener.opened
    await sessions.close()
    assert not adrift


async def test_who_waits_hears_why_it_could_not_be_opened() -> None:
    """Ours."""
    opener = Opener()
    sessions, adrift = opened_by(opener)
    opener.failure = UpstreamUnreachable()
    with pytest.raises(UpstreamUnreachable):
        await sessions.open(ANN)
    await sessions.close()
    assert not adrift


@pytest.mark.parametrize("failure", [None, UpstreamUnreachable()])
async def test_what_nobody_waits_for_any_more_is_opened_to_the_end(failure: Exception | None) -> None:
    """Ours: the server has opened it already, and only its answer says how it is called."""
    opener = Opener()
    sessions, adrift = opened_by(opener)
    opener.gate.clear()
    opening = asyncio.ensure_future(sessions.open(ANN))
    await turns()
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    assert opener.waiting == 1
    opener.failure = failure
    opener.gate.set()
    await sessions.close()
    assert adrift == opener.opened
    assert len(adrift) == (failure is None)


@pytest.mark.parametrize("number", range(8))
async def test_whoever_leaves_in_whichever_moment_what_was_opened_is_somebodys(number: int) -> None:
    """Ours: from before it is open to after it was handed over."""
    opener = Opener()
    sessions, adrift = opened_by(opener)
    opening = asyncio.ensure_future(sessions.open(ANN))
    await turns(number)
    opening.cancel()
    given: tuple[Any, ...] = await asyncio.gather(opening, return_exceptions=True)
    await sessions.close()
    await turns()
    assert opener.opened == (adrift or list(given) if opener.opened else [])


async def test_a_server_that_hangs_does_not_keep_the_end_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: who still waits is told why."""
    monkeypatch.setattr(openings, "_LAST_SECONDS", 0.01)
    opener = Opener()
    sessions, adrift = opened_by(opener)
    opener.gate.clear()
    opening = asyncio.ensure_future(sessions.open(ANN))
    await turns()
    await sessions.close()
    with pytest.raises(Overloaded):
        await opening
    assert opener.waiting == 0
    assert not adrift


async def test_a_caller_who_leaves_while_a_session_is_opened_for_it_leaves_none_behind() -> None:
    """Ours: found by counting the sessions at a server whose clients hung up early."""
    opener = Opener()
    async with pooling(opener, max=1) as pool:
        opener.gate.clear()
        leaving = asyncio.ensure_future(pool.lease(ANN))
        await turns()
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        opener.gate.set()
        await turns()
        (left,) = opener.opened
        assert opener.is_closed(left)
        assert pool.counts() == {"idle": 0, "open": 0}
        await pool.lease(caller("ben"))
