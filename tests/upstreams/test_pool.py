"""The pool: whose session, how many, who waits, and in which order."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gateway.errors import Overloaded, UpstreamUnreachable
from gateway.upstreams.pool import Caller, Pool
from tests.support.pools import Opener, caller, pooling, settings
from tests.support.waiting import turns, until

ANN, BEN = caller("ann"), caller("ben")
NOBODY = caller("anonymous", is_authenticated=False)


def leasing(pool: Pool, whose: Caller, **options: Any) -> asyncio.Task[Any]:
    return asyncio.ensure_future(pool.lease(whose, **options))


async def given_up(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


# --- whose -------------------------------------------------------------------------------------


async def test_the_session_used_last_is_used_next() -> None:
    async with pooling(Opener()) as pool:
        first, second = await pool.lease(ANN), await pool.lease(ANN)
        pool.release(first, reusable=True)
        pool.release(second, reusable=True)
        assert await pool.lease(ANN) is second
        assert await pool.lease(ANN) is first


@pytest.mark.parametrize("name", ["principal", "capabilities", "client_info", "authorization"])
async def test_no_part_of_a_caller_may_differ_for_a_session_to_be_shared(name: str) -> None:
    parts = {"principal": "a", "capabilities": "{}", "client_info": "{}", "authorization": "t"}
    one = Caller(is_authenticated=True, **parts)
    other = Caller(is_authenticated=True, **{**parts, name: "x"})
    async with pooling(Opener()) as pool:
        session = await pool.lease(one)
        pool.release(session, reusable=True)
        assert await pool.lease(other) is not session
        assert await pool.lease(one) is session


async def test_a_callers_credential_is_not_shown() -> None:
    assert "hunter2" not in repr(replace(ANN, authorization="Bearer hunter2"))


async def test_a_session_in_doubt_is_not_used_again_but_ended() -> None:
    opener = Opener()
    async with pooling(opener) as pool:
        doubtful, dead = await pool.lease(ANN), await pool.lease(ANN)
        pool.release(doubtful, reusable=False)
        dead.death.set()
        pool.release(dead, reusable=True)
        assert await pool.lease(ANN) not in {doubtful, dead}
        await turns()
        assert opener.is_closed(doubtful)
        assert opener.is_closed(dead)


async def test_a_session_that_shows_another_credential_than_its_caller_has_serves_no_later_call() -> None:
    opener = Opener()
    async with pooling(opener) as pool:
        one = replace(ANN, authorization="one")
        session = await pool.lease(one)
        for credential in ("one", "other", "one"):
            pool.authorize(session, credential)
        pool.release(session, reusable=True)
        assert await pool.lease(one) is session

        pool.authorize(session, "other")
        pool.release(session, reusable=True)
        assert await pool.lease(one) is not session
        await turns()
        assert opener.is_closed(session)
        assert not pool._renewed


async def test_an_idle_session_that_the_server_ended_is_forgotten() -> None:
    opener = Opener()
    async with pooling(opener) as pool:
        session = await pool.lease(ANN)
        pool.forget(session)  # leased: its exchange will find out
        assert pool.counts()["open"] == 1
        pool.release(session, reusable=True)
        pool.forget(session)
        assert pool.counts() == {"idle": 0, "open": 0}


async def test_a_new_one_can_be_wanted_although_there_are_idle_ones() -> None:
    async with pooling(Opener(), max=2) as pool:
        session = await pool.lease(ANN)
        pool.release(session, reusable=True)
        fresh = await pool.lease(ANN, new=True)
        assert fresh is not session
        assert pool.counts() == {"idle": 1, "open": 2}


@pytest.mark.parametrize(
    ("mode", "whose", "session_id", "is_reused"),
    [
        ("pooled", NOBODY, "s", True),
        ("affinity", NOBODY, "s", True),
        ("fresh", ANN, None, False),
        ("auto", ANN, "s", True),
        ("auto", NOBODY, None, True),
        ("auto", NOBODY, "s", False),
    ],
)
async def test_the_mode_decides_whether_a_session_serves_a_second_call(
    mode: str, whose: Caller, session_id: str | None, is_reused: Any
) -> None:
    async with pooling(Opener(session_id), mode=mode) as pool:
        session = await pool.lease(whose)
        pool.release(session, reusable=True)
        assert await pool.lease(whose) is session, "one that served no call is as good as new"
        session.served_calls += 1
        pool.release(session, reusable=True)
        assert (await pool.lease(whose) is session) is is_reused


# --- spares ------------------------------------------------------------------------------------


async def test_spares_are_opened_ahead_where_calls_use_sessions_up() -> None:
    opener = Opener()
    async with pooling(opener, mode="fresh", warm=2, max=10) as pool:
        session = await pool.lease(NOBODY)
        await turns()
        assert pool.counts() == {"idle": 2, "open": 3}
        session.served_calls += 1
        pool.release(session, reusable=True)
        assert await pool.lease(NOBODY) in opener.opened[1:]
        await turns()
        assert pool.counts() == {"idle": 2, "open": 3}


@pytest.mark.parametrize("options", [{"mode": "pooled"}, {"mode": "affinity"}, {"mode": "auto"}])
async def test_no_spares_where_sessions_are_used_again(options: Any) -> None:
    async with pooling(Opener(), warm=2, **options) as pool:
        await pool.lease(ANN)
        await turns()
        assert pool.counts() == {"idle": 0, "open": 1}


async def test_no_spares_for_a_lease_that_wants_none() -> None:
    async with pooling(Opener(), mode="fresh", warm=2) as pool:
        await pool.lease(NOBODY, spares=False)
        await turns()
        assert pool.counts() == {"idle": 0, "open": 1}


async def test_spares_never_take_the_last_places_nor_fail_anybody() -> None:
    opener = Opener()
    async with pooling(opener, mode="fresh", warm=5, max=3) as pool:
        await pool.lease(NOBODY)
        await turns()
        assert pool.counts() == {"idle": 2, "open": 3}
    failing = Opener()
    async with pooling(failing, mode="fresh", warm=5) as pool:
        await pool.lease(NOBODY)
        failing.failure = UpstreamUnreachable()
        await turns()
        assert pool.counts() == {"idle": 0, "open": 1}
        failing.failure = None
        await pool.lease(NOBODY)
        await turns(40)
        assert pool.counts()["idle"] == 5


# --- bounds ------------------------------------------------------------------------------------


async def test_at_the_limit_the_longest_idle_session_makes_room() -> None:
    opener = Opener()
    async with pooling(opener, max=2) as pool:
        old, young = await pool.lease(ANN), await pool.lease(ANN)
        pool.release(old, reusable=True)
        pool.release(young, reusable=True)
        await pool.lease(BEN)
        await turns()
        assert opener.is_closed(old)
        assert not opener.is_closed(young)
        assert await pool.lease(ANN) is young


async def test_at_the_limit_callers_wait_in_the_order_in_which_they_came() -> None:
    async with pooling(Opener(), max=1) as pool:
        session = await pool.lease(ANN)
        first, second = leasing(pool, BEN), leasing(pool, caller("cyd"))
        await turns()
        assert not first.done()
        pool.release(session, reusable=True)
        session = await first
        await turns()
        assert not second.done()
        pool.release(session, reusable=True)
        await second


async def test_who_waits_is_given_its_own_session_without_a_handshake() -> None:
    opener = Opener()
    async with pooling(opener, max=1) as pool:
        session = await pool.lease(ANN)
        waiting = leasing(pool, ANN)
        await turns()
        pool.release(session, reusable=True)
        assert await waiting is session
        assert len(opener.opened) == 1


async def test_who_waits_for_a_new_one_is_not_given_an_old_one() -> None:
    opener = Opener()
    async with pooling(opener, max=1) as pool:
        session = await pool.lease(ANN)
        waiting = leasing(pool, ANN, new=True)
        await turns()
        pool.release(session, reusable=True)
        assert await waiting is not session
        assert opener.is_closed(session)


async def test_nobody_waits_longer_than_told() -> None:
    async with pooling(Opener(), max=1, wait="20ms") as pool:
        session = await pool.lease(ANN)
        with pytest.raises(Overloaded):
            await pool.lease(BEN)
        pool.release(session, reusable=True)
        await pool.lease(BEN)


async def test_a_waiter_that_leaves_takes_no_place_along() -> None:
    async with pooling(Opener(), max=1) as pool:
        session = await pool.lease(ANN)
        gone, next_ = leasing(pool, BEN), leasing(pool, BEN)
        await turns()
        await given_up(gone)
        pool.release(session, reusable=True)
        await next_


@pytest.mark.parametrize("whose", [ANN, BEN])
async def test_a_place_given_in_the_moment_of_leaving_goes_on_to_the_next(whose: Caller) -> None:
    async with pooling(Opener(), max=1) as pool:
        session = await pool.lease(ANN)
        gone, next_ = leasing(pool, whose), leasing(pool, ANN)
        await turns()
        pool.release(session, reusable=True)
        await given_up(gone)  # given, but not yet taken
        pool.release(await next_, reusable=True)
        assert pool.counts() == {"idle": 1, "open": 1}


async def test_a_session_that_cannot_be_opened_gives_its_place_back() -> None:
    opener = Opener()
    async with pooling(opener, max=1) as pool:
        opener.failure = UpstreamUnreachable()
        with pytest.raises(UpstreamUnreachable):
            await pool.lease(ANN)
        opener.failure = None
        await pool.lease(ANN)


async def test_leaving_while_a_session_is_opened_gives_the_place_back() -> None:
    opener = Opener()
    async with pooling(opener, max=1) as pool:
        opener.gate.clear()
        opening = leasing(pool, ANN)
        await turns()
        await given_up(opening)
        opener.gate.set()
        await pool.lease(BEN)


async def test_a_held_session_leaves_its_place_and_comes_back_without_waiting() -> None:
    async with pooling(Opener(), max=1) as pool:
        held = await pool.lease(ANN)
        pool.park()
        other = await pool.lease(BEN)
        pool.unpark()  # two now, of one: who comes back never waits
        waiting = leasing(pool, BEN)
        pool.release(held, reusable=True)
        await turns()
        assert not waiting.done(), "there is still one too many"
        pool.release(other, reusable=True)
        assert await waiting is other


# --- one session per caller ----------------------------------------------------------------------


async def test_with_affinity_a_callers_calls_take_turns_on_one_session() -> None:
    opener = Opener()
    async with pooling(opener, mode="affinity") as pool:
        session = await pool.lease(ANN)
        second, third = leasing(pool, ANN), leasing(pool, ANN)
        other = await pool.lease(BEN)
        await turns()
        assert not second.done()
        pool.release(session, reusable=True)
        assert await second is session
        await turns()
        assert not third.done()
        pool.release(session, reusable=True)
        assert await third is session
        assert other is not session
        assert len(opener.opened) == 2


async def test_with_affinity_a_turn_is_passed_on_whatever_happens() -> None:
    opener = Opener()
    async with pooling(opener, mode="affinity", wait="30ms") as pool:
        session = await pool.lease(ANN)
        gone = leasing(pool, ANN)
        await turns()
        await given_up(gone)
        with pytest.raises(Overloaded):
            await pool.lease(ANN)
        pool.release(session, reusable=False)
        opener.failure = UpstreamUnreachable()
        with pytest.raises(UpstreamUnreachable):
            await pool.lease(ANN)
        opener.failure = None
        pool.release(await pool.lease(ANN), reusable=True)
        assert not len(pool._turns), "nothing is kept of callers that are gone"


# --- the end -------------------------------------------------------------------------------------


async def test_idle_sessions_are_ended_after_a_while_and_others_are_not() -> None:
    opener = Opener()
    async with pooling(opener, idle="20ms") as pool:
        pool.start()
        idle, busy = await pool.lease(ANN), await pool.lease(ANN)
        pool.release(idle, reusable=True)

        async def look() -> bool:
            return opener.is_closed(idle)

        await until(look)
        assert not opener.is_closed(busy)


async def test_a_burst_is_served_by_the_few_sessions_that_are_opened_first() -> None:
    """Ours: 200 calls to a server over stdio started 200 processes, and none of them was ready in time."""
    opener = Opener()
    pool = Pool(settings(max=256), opener, most_opening=2)
    opener.gate.clear()
    calls = [leasing(pool, ANN) for _ in range(200)]
    await turns()
    assert opener.waiting == 2

    opener.gate.set()
    while len(calls) > 2:  # those whose turn it is by then
        async with asyncio.timeout(5):
            done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        opener.gate.clear()  # to start takes much longer than a call
        for call in done:
            calls.remove(call)
            pool.release(call.result(), reusable=True)
    assert len(opener.opened) < 10
    opener.gate.set()
    await asyncio.gather(*calls)
    await pool.close()


async def test_who_waits_for_its_turn_does_not_give_up_as_soon_as_who_waits_for_a_place() -> None:
    """Ours: `sessions.wait` is for a pool that is full; in one with room the session will come."""
    opener = Opener()
    pool = Pool(settings(max=3, wait="0s"), opener, most_opening=1)
    opener.gate.clear()
    first, second = leasing(pool, ANN), leasing(pool, BEN)
    await turns()
    opener.gate.set()
    assert await first is not await second
    opener.gate.clear()
    third = leasing(pool, ANN)
    await turns()
    with pytest.raises(Overloaded):
        await pool.lease(BEN)
    opener.gate.set()
    await third
    await pool.close()


async def test_closing_ends_every_session_and_waits_until_the_servers_know() -> None:
    opener = Opener()
    pool = Pool(settings(mode="fresh", warm=1), opener)
    leased, just_released = await pool.lease(ANN), await pool.lease(ANN)
    await turns()
    pool.release(just_released, reusable=False)
    await pool.close()
    assert len(opener.opened) >= 3
    assert all(opener.is_closed(session) for session in opener.opened)
    pool.release(leased, reusable=True)  # too late, and no matter
    with pytest.raises(Overloaded):
        await pool.lease(ANN)


async def test_closing_sends_away_who_waits_and_ends_what_is_being_opened() -> None:
    """Ours: a handshake that is cut short leaves a session at the server whose name nobody has read."""
    opener = Opener()
    pool = Pool(settings(max=2), opener)
    await pool.lease(ANN)
    opener.gate.clear()
    opening, waiting = leasing(pool, BEN), leasing(pool, BEN)
    await turns()
    closing = asyncio.ensure_future(pool.close())
    with pytest.raises(Overloaded):
        await waiting
    opener.gate.set()
    with pytest.raises(Overloaded):
        await opening
    await closing
    assert len(opener.opened) == 2
    assert all(opener.is_closed(session) for session in opener.opened)
