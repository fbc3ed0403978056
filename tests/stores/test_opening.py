"""Which store an address means."""

import sys
import time

import pytest

from gateway.settings.load import ConfigInvalid
from gateway.settings.store_url import StoreUrl
from gateway.stores.memory import MemoryStore
from gateway.stores.opening import open_store


def test_memory_is_a_store_of_one_process() -> None:
    store = open_store(StoreUrl("memory://"), now=time.monotonic)
    assert isinstance(store, MemoryStore)
    assert not store.is_shared


async def test_redis_is_a_store_that_others_share() -> None:
    store = open_store(StoreUrl("redis://127.0.0.1:1/0"), now=time.monotonic)
    assert store.is_shared
    assert repr(store) == "RedisStore(redis://127.0.0.1:1/0)"
    await store.close()


def test_without_the_library_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "gateway.stores.redis", raising=False)
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(
        ConfigInvalid, match=r"^store: needs the Redis library: pip install 'redis"
    ) as refusal:
        open_store(StoreUrl("redis://:hunter2@127.0.0.1:1/0"), now=time.monotonic)
    assert "hunter2" not in str(refusal.value)
