"""What replicas are told about exchanges, and what a store that is away costs: nothing but the way to others."""

import pytest

from gateway.holds.directory import Directory, Standing
from gateway.stores.memory import MemoryStore
from gateway.stores.protocol import Owner, StoreUnavailable


class Away(MemoryStore):
    """A store that cannot be reached."""

    async def owner(self, exchange: str) -> Owner | None:
        raise StoreUnavailable

    async def record(self, exchange: str, replica: str, stage: int, seconds: float) -> bool:
        raise StoreUnavailable

    async def take_over(self, exchange: str, *, seen: Owner, replica: str, seconds: float) -> bool:
        raise StoreUnavailable


def _now() -> float:
    return 1.0


async def test_a_replica_that_lost_an_exchange_may_deliver_nothing_into_it() -> None:
    """Ours: the fence for a process that was frozen while another took over."""
    store = MemoryStore(_now, is_shared=True)
    slow, quick = (Directory(store, replica=name, seconds=60) for name in ("slow", "quick"))
    assert await slow.note_held("x", 1)
    seen = await quick.owner("x")
    assert seen is not None
    assert not quick.is_me(seen.replica)
    assert await quick.take_over("x", seen, 1)
    assert await slow.note_taken("x", 1) is Standing.THEIRS
    assert await quick.note_taken("x", 1) is Standing.OURS


async def test_only_one_of_many_takes_an_exchange_over() -> None:
    """Ours: a dead owner leaves one heir."""
    store = MemoryStore(_now, is_shared=True)
    dead = Directory(store, replica="dead", seconds=60)
    await dead.note_held("x", 1)
    heirs = [Directory(store, replica=f"heir-{n}", seconds=60) for n in range(3)]
    seen = [await heir.owner("x") for heir in heirs]
    taken = [await heir.take_over("x", owner, 1) for heir, owner in zip(heirs, seen, strict=True)]
    assert taken == [True, False, False]


async def test_what_has_ended_is_later_than_any_round() -> None:
    """Ours: a ticket of a finished exchange starts nothing, on any replica."""
    directory = Directory(MemoryStore(_now), replica="a", seconds=60)
    await directory.note_done("x")
    owner = await directory.owner("x")
    assert owner is not None
    assert owner.stage > 2 * 10**6


async def test_without_the_store_this_process_goes_on_alone() -> None:
    """Ours: losing Redis degrades to live-only."""
    directory = Directory(Away(_now, is_shared=True), replica="a", seconds=60)
    assert await directory.note_held("x", 1)
    assert await directory.note_taken("x", 1) is Standing.OURS
    with pytest.raises(StoreUnavailable):
        await directory.owner("x")  # whose it is nobody can say: the retry is told to come again


async def test_a_book_that_was_emptied_is_claimed_by_the_first_who_asks() -> None:
    """Ours: Redis was restarted; the old owner, should it live, finds that it may deliver nothing any more."""
    store = MemoryStore(_now, is_shared=True)
    old, heir = (Directory(store, replica=name, seconds=60) for name in ("old", "heir"))
    assert await heir.take_over("x", None, 1)
    assert await old.note_taken("x", 1) is Standing.THEIRS
