"""Whether a process knows what became of what it owned: a clock that a test moves, nothing else."""

from gateway.holds.directory import Directory, Standing
from gateway.holds.lease import Lease
from gateway.stores.memory import MemoryStore
from gateway.stores.protocol import Owner, StoreUnavailable


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Moody(MemoryStore):
    """A store that can be taken away, and emptied."""

    is_away = False

    async def owner(self, exchange: str) -> Owner | None:
        if self.is_away:
            raise StoreUnavailable
        return await super().owner(exchange)

    async def record(self, exchange: str, replica: str, stage: int, seconds: float) -> bool:
        if self.is_away:
            raise StoreUnavailable
        return await super().record(exchange, replica, stage, seconds)

    def empty(self) -> None:
        self._owners.clear()


def _frozen(clock: Clock, lease: Lease, seconds: float) -> None:
    lease.tick()
    clock.now += seconds


def test_one_that_ran_all_the_time_is_sure() -> None:
    """Ours: looked at often enough, there is no doubt however long it goes on."""
    clock = Clock()
    lease = Lease(clock, 2.0)
    for _ in range(100):
        clock.now += 1.9
        lease.tick()
    assert lease.is_sure


def test_one_that_was_frozen_knows_it_in_the_very_moment_it_asks() -> None:
    """Ours: the first thing to run after a thaw may be the delivery of an answer."""
    clock = Clock()
    lease = Lease(clock, 2.0)
    _frozen(clock, lease, 2.1)
    assert not lease.is_sure
    lease.tick()
    assert not lease.is_sure, "running again is no reason to be sure again"
    lease.settle(lease.doubts)
    assert lease.is_sure


def test_a_freeze_while_the_store_was_asked_is_a_new_doubt() -> None:
    """Ours: what the store said before it may be untrue by now."""
    clock = Clock()
    lease = Lease(clock, 2.0)
    _frozen(clock, lease, 3)
    lease.tick()
    before = lease.doubts
    _frozen(clock, lease, 3)
    assert not lease.is_sure
    lease.settle(before)
    assert not lease.is_sure


def _owner_and_store() -> tuple[Clock, Lease, Moody, Directory]:
    clock = Clock()
    lease = Lease(clock, 2.0)
    store = Moody(lambda: 1.0, is_shared=True)
    return clock, lease, store, Directory(store, replica="a", seconds=60, lease=lease)


async def test_without_the_store_one_that_never_slept_delivers() -> None:
    """Ours: losing Redis for good degrades to live-only; nobody can have taken anything over."""
    clock, lease, store, directory = _owner_and_store()
    await directory.note_held("x", 1)
    store.is_away = True
    for _ in range(1000):
        clock.now += 1
        lease.tick()
    assert await directory.note_taken("x", 1) is Standing.OURS


async def test_without_the_store_one_that_was_frozen_delivers_nothing() -> None:
    """Ours: another may have delivered already; until the store has said so, the retry waits."""
    clock, lease, store, directory = _owner_and_store()
    await directory.note_held("x", 1)
    store.is_away = True
    _frozen(clock, lease, 10)
    assert await directory.note_taken("x", 1) is Standing.UNKNOWN
    store.is_away = False
    assert await directory.note_taken("x", 1) is Standing.OURS


async def test_one_that_was_frozen_cannot_write_itself_into_a_book_that_was_emptied() -> None:
    """Ours: Redis was restarted meanwhile, and who had taken over is forgotten too."""
    clock, lease, store, directory = _owner_and_store()
    await directory.note_held("x", 1)
    store.empty()
    _frozen(clock, lease, 10)
    assert await directory.note_taken("x", 1) is Standing.THEIRS


async def test_what_was_handed_over_is_nobodys_until_the_first_comes() -> None:
    """Ours: no heart-beat is waited for, and the one who gave it away delivers nothing more."""
    store = MemoryStore(lambda: 1.0, is_shared=True)
    old, heir, late = (Directory(store, replica=name, seconds=60) for name in ("old", "heir", "late"))
    await old.note_held("x", 3)
    assert await old.hand_over("x", 3)
    seen = await heir.owner("x")
    assert heir.is_nobodys(seen)
    assert await old.note_taken("x", 3) is Standing.THEIRS
    assert await heir.take_over("x", seen, 3)
    assert not await late.take_over("x", seen, 3)
    assert await heir.note_taken("x", 3) is Standing.OURS


async def test_what_has_just_been_answered_is_not_handed_over() -> None:
    """Ours: the client came back in the same moment; its answers are delivered here, and only here."""
    store = MemoryStore(lambda: 1.0, is_shared=True)
    directory = Directory(store, replica="a", seconds=60)
    await directory.note_held("x", 1)
    await directory.note_taken("x", 1)
    assert not await directory.hand_over("x", 1)


async def test_what_was_lost_says_so_on_every_replica() -> None:
    """Ours: a precise refusal, not an invalid ticket."""
    store = MemoryStore(lambda: 1.0, is_shared=True)
    one, other = (Directory(store, replica=name, seconds=60) for name in ("one", "other"))
    await one.note_lost("x")
    assert other.is_lost(await other.owner("x"))
    await one.note_done("y")
    assert not other.is_lost(await other.owner("y"))
