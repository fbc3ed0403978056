"""Who counts as dead, and who only seems to."""

import asyncio

from gateway.relay.hearts import Hearts
from gateway.stores.memory import MemoryStore
from gateway.stores.protocol import StoreUnavailable
from tests.support.waiting import until


class Shaky(MemoryStore):
    """A store that was restarted not long ago, or cannot be reached."""

    steady = 100.0
    is_away = False

    def steady_seconds(self) -> float:
        return self.steady

    async def beat(self, replica: str, seconds: float) -> None:
        if self.is_away:
            raise StoreUnavailable("away")
        await super().beat(replica, seconds)

    async def leave(self, replica: str) -> None:
        if self.is_away:
            raise StoreUnavailable("away")
        await super().leave(replica)


def _hearts(store: MemoryStore, replica: str = "a", heartbeat: float = 0.01) -> Hearts:
    return Hearts(store, replica=replica, heartbeat=heartbeat)


def _shaky() -> Shaky:
    return Shaky(asyncio.get_running_loop().time, is_shared=True)


async def test_a_heart_that_is_missing_is_that_of_a_dead_replica() -> None:
    assert await _hearts(_shaky()).is_dead("b")


async def test_a_heart_that_is_missing_just_after_the_store_was_restarted_proves_nothing() -> None:
    """Ours: it has forgotten the hearts of the living too, until each has beaten again."""
    store = _shaky()
    hearts = _hearts(store, heartbeat=1.0)
    store.steady = 2.9
    assert not await hearts.is_dead("b")
    store.steady = 3.1
    assert await hearts.is_dead("b")


async def test_a_heart_beats_on_through_an_outage_and_stops_with_a_goodbye() -> None:
    store = _shaky()
    hearts = _hearts(store)
    beating = asyncio.ensure_future(hearts.beat())
    await until(lambda: store.is_alive("a"))
    store.is_away = True

    async def is_still() -> bool:
        return not await store.is_alive("a")

    await until(is_still)
    store.is_away = False
    await until(lambda: store.is_alive("a"))
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)
    await hearts.stop()
    assert await hearts.is_dead("a")


async def test_a_goodbye_that_nobody_hears_is_no_reason_to_fail() -> None:
    store = _shaky()
    store.is_away = True
    await _hearts(store).stop()
