"""A session that somebody listens on beside the calls: not idle, not evicted, and not a second one."""

import asyncio

from tests.support.pools import Opener, caller, pooling
from tests.support.waiting import turns, until

ANN, BEN = caller("ann"), caller("ben")


async def test_listening_opens_the_one_session_that_calls_then_use() -> None:
    opener = Opener()
    async with pooling(opener, mode="affinity") as pool:
        session = await pool.attach(ANN)
        assert await pool.lease(ANN) is session
        assert await pool.attach(ANN) is session, "also while a call has it"
        assert len(opener.opened) == 1


async def test_a_session_that_is_listened_on_is_not_closed_for_being_idle() -> None:
    opener = Opener()
    async with pooling(opener, mode="affinity", idle=0.02) as pool:
        pool.start()
        kept, other = await pool.attach(ANN), await pool.lease(BEN)
        pool.release(other, reusable=True)

        async def is_reaped() -> bool:
            return opener.is_closed(other)

        await until(is_reaped)
        assert not opener.is_closed(kept)
        pool.detach(kept)

        async def is_let_go() -> bool:
            return opener.is_closed(kept)

        await until(is_let_go)


async def test_it_is_not_evicted_for_another_caller() -> None:
    opener = Opener()
    async with pooling(opener, mode="affinity", max=2) as pool:
        kept, idle = await pool.attach(ANN), await pool.lease(BEN)
        pool.release(idle, reusable=True)
        await pool.lease(caller("cy"))
        await turns()
        assert opener.is_closed(idle)
        assert not opener.is_closed(kept)


async def test_whoever_waits_gets_the_place_when_nobody_listens_any_more() -> None:
    opener = Opener()
    async with pooling(opener, mode="affinity", max=1) as pool:
        kept = await pool.attach(ANN)
        waiting = asyncio.ensure_future(pool.lease(BEN))
        await turns()
        assert not waiting.done()
        pool.detach(kept)
        assert (await waiting) is not kept


async def test_its_death_is_known_when_a_call_ends_it() -> None:
    opener = Opener()
    async with pooling(opener, mode="affinity") as pool:
        session = await pool.attach(ANN)
        pool.release(await pool.lease(ANN), reusable=False)
        async with asyncio.timeout(5):
            await session.death.wait()
        assert await pool.attach(ANN) is not session
