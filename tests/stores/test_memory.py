"""What the store in memory has to itself: its bounds."""

import pytest

from gateway.stores import memory as module
from gateway.stores.memory import MemoryStore


async def test_no_more_is_written_down_than_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: tickets may live for days, and exchanges end by the thousand; the oldest make room."""
    monkeypatch.setattr(module, "_MOST_WRITTEN", 3)
    store = MemoryStore(lambda: 0.0)
    for exchange in "abca":
        await store.record(exchange, "me", 1, 60.0)
    seen = await store.owner("b")
    assert seen is not None
    await store.take_over("b", seen=seen, replica="me", seconds=60.0)
    for exchange in "de":
        await store.record(exchange, "me", 1, 60.0)

    assert [exchange for exchange in "abcde" if await store.owner(exchange)] == ["b", "d", "e"]


async def test_what_is_too_old_goes_though_nobody_asks_for_it() -> None:
    now = 0.0
    store = MemoryStore(lambda: now)
    for number in range(10):
        await store.record(str(number), "me", 1, 60.0)
    now = 60.0
    for number in range(10, 15):
        await store.record(str(number), "me", 1, 60.0)

    assert len(store._owners) == 5
