"""Redis held against the store in memory: whatever is done, both give the same answers, and no key lives for ever."""

import asyncio
import uuid
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gateway.stores.memory import MemoryStore
from gateway.stores.protocol import InboxFull, Owner, Store
from gateway.stores.redis import RedisStore, Times
from tests.support.redis import RedisServer

MOST_LETTERS = 4
REPLICAS = st.sampled_from(["a", "b", "c"])
EXCHANGES = st.sampled_from(["x", "y"])
STAGES = st.integers(0, 4)
# Always at least five seconds from the moment where one of the two would think otherwise.
LIVES = st.sampled_from([5.0, 15.0, 35.0])
LEAPS = st.sampled_from([10, 20])
OWNERS = st.builds(Owner, REPLICAS, STAGES, st.integers(1, 3))


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Stores(RuleBasedStateMachine):
    """Does the same to both."""

    server: RedisServer

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = Clock()
        self.memory = MemoryStore(self.clock, is_shared=True, most_letters=MOST_LETTERS)
        self.prefix = f"model:{uuid.uuid4().hex}:"
        self.redis = self.runner.run(self._open())
        self.unread = dict.fromkeys("abc", 0)

    async def _open(self) -> RedisStore:
        store = RedisStore(
            self.server.url, prefix=self.prefix, most_letters=MOST_LETTERS, times=Times(inbox=3600.0)
        )
        await store.start()
        return store

    def teardown(self) -> None:
        self.runner.run(self.redis.close())
        self.runner.close()

    def both(self, operation: str, *args: Any, **named: Any) -> Any:
        async def run(store: Store) -> Any:
            async with asyncio.timeout(5):
                try:
                    return await getattr(store, operation)(*args, **named)
                except InboxFull:
                    return InboxFull

        expected, found = self.runner.run(run(self.memory)), self.runner.run(run(self.redis))
        assert found == expected, operation
        return found

    @rule(replica=REPLICAS, life=LIVES)
    def beat(self, replica: str, life: float) -> None:
        self.both("beat", replica, life)

    @rule(replica=REPLICAS)
    def leave(self, replica: str) -> None:
        self.both("leave", replica)

    @rule(exchange=EXCHANGES, replica=REPLICAS, stage=STAGES, life=LIVES)
    def record(self, exchange: str, replica: str, stage: int, life: float) -> None:
        self.both("record", exchange, replica, stage, life)

    @rule(exchange=EXCHANGES, replica=REPLICAS, life=LIVES)
    def take_over(self, exchange: str, replica: str, life: float) -> None:
        seen = self.both("owner", exchange)
        if seen is not None:
            assert self.both("take_over", exchange, seen=seen, replica=replica, seconds=life)

    @rule(exchange=EXCHANGES, replica=REPLICAS, seen=OWNERS, life=LIVES)
    def take_over_blindly(self, exchange: str, replica: str, seen: Owner, life: float) -> None:
        self.both("take_over", exchange, seen=seen, replica=replica, seconds=life)

    @rule(exchange=EXCHANGES, replica=REPLICAS)
    def forget(self, exchange: str, replica: str) -> None:
        self.both("forget", exchange, replica)

    @rule(replica=REPLICAS, letter=st.binary(max_size=20))
    def post(self, replica: str, letter: bytes) -> None:
        if self.both("post", replica, letter) is None:
            self.unread[replica] += 1

    @precondition(lambda self: any(self.unread.values()))
    @rule(data=st.data())
    def read_all(self, data: st.DataObject) -> None:
        replica = data.draw(st.sampled_from([name for name, count in self.unread.items() if count]))
        count, self.unread[replica] = self.unread[replica], 0

        async def read(store: Store) -> list[bytes]:
            async with asyncio.timeout(5), aclosing(store.inbox(replica)) as inbox:
                return [await anext(inbox) for _ in range(count)]

        assert self.runner.run(read(self.redis)) == self.runner.run(read(self.memory))
        self.runner.run(self._strike_out(replica))

    async def _strike_out(self, replica: str) -> None:
        """A reader does it when it looks again; these never do."""
        await self.redis._redis.delete(f"{self.prefix}inbox:{replica}")

    @rule(seconds=LEAPS)
    def time_passes(self, seconds: int) -> None:
        self.clock.now += seconds
        self.runner.run(self._leap(seconds))

    async def _leap(self, seconds: int) -> None:
        client = self.redis._redis
        async for key in client.scan_iter(match=f"{self.prefix}*"):
            left = await client.pttl(key) - seconds * 1000
            if left <= 0:
                await client.delete(key)
            else:
                await client.pexpire(key, left)
        # A heart that goes so was not lost.
        self.redis._promised.clear()

    @invariant()
    def both_say_the_same(self) -> None:
        for replica in "abc":
            self.both("is_alive", replica)
        for exchange in "xy":
            self.both("owner", exchange)

    @invariant()
    def every_key_will_go(self) -> None:
        async def lives() -> list[int]:
            client = self.redis._redis
            return [await client.pttl(key) async for key in client.scan_iter(match=f"{self.prefix}*")]

        assert all(left > 0 for left in self.runner.run(lives()))


@pytest.mark.timeout(120)
def test_redis_does_what_the_store_in_memory_does(redis_server: RedisServer) -> None:
    """Ours: DESIGN, one contract for both."""
    Stores.server = redis_server
    run_state_machine_as_test(
        Stores,
        settings=settings(
            max_examples=40,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
