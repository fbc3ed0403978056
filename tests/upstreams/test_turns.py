"""Turns: one at a time for each caller, in the order of asking, and nothing kept of callers that are gone."""

import asyncio

import pytest

from gateway.errors import Overloaded
from gateway.upstreams.turns import Turns

SECONDS = 5.0


async def test_a_caller_waits_for_itself_and_for_nobody_else() -> None:
    turns = Turns(SECONDS)
    await turns.take("ann")
    await turns.take("bob")
    second = asyncio.ensure_future(turns.take("ann"))
    third = asyncio.ensure_future(turns.take("ann"))
    await asyncio.sleep(0)
    assert not second.done()

    turns.end("ann")
    await asyncio.wait_for(second, SECONDS)
    assert not third.done()
    turns.end("ann")
    await asyncio.wait_for(third, SECONDS)
    turns.end("ann")
    turns.end("bob")
    assert len(turns) == 0


async def test_who_waits_too_long_is_told_so_and_leaves_no_trace() -> None:
    turns = Turns(0.01)
    await turns.take("ann")
    with pytest.raises(Overloaded):
        await turns.take("ann")
    turns.end("ann")
    assert len(turns) == 0


async def test_who_gives_up_waiting_stands_in_nobodys_way() -> None:
    turns = Turns(SECONDS)
    await turns.take("ann")
    gone, next_one = (asyncio.ensure_future(turns.take("ann")) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    turns.end("ann")
    await asyncio.wait_for(next_one, SECONDS)
    turns.end("ann")
    assert len(turns) == 0


async def test_an_end_without_a_turn_is_nothing() -> None:
    """Ours: in the other modes no turns are taken, and sessions are given back all the same."""
    turns = Turns(SECONDS)
    turns.end("ann")
    assert len(turns) == 0
