"""The pool's accounts, whatever is done to it in whatever order."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import GatewayError, UpstreamUnreachable
from gateway.telemetry.names import SessionState
from gateway.upstreams.pool import Pool
from gateway.upstreams.session import Session
from tests.support.pools import Opener, caller, settings
from tests.support.waiting import turns

CALLERS = [caller("ann"), caller("ben"), caller("anonymous", is_authenticated=False)]

steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["lease", "lease", "new", "release", "spoil", "park", "unpark", "leave", "forget", "fail", "gate"]
        ),
        st.integers(0, 30),
    ),
    max_size=40,
)


@dataclass
class World:
    """A pool, and what its users have of it."""

    pool: Pool
    opener: Opener
    max: int
    most_opening: int
    leasing: list["asyncio.Task[Session]"] = field(default_factory=list)
    leased: list[Session] = field(default_factory=list)
    parked: list[Session] = field(default_factory=list)

    def perform(self, what: str, which: int) -> None:
        pool = self.pool
        match what:
            case "lease" | "new":
                leasing = pool.lease(CALLERS[which % len(CALLERS)], new=what == "new")
                self.leasing.append(asyncio.ensure_future(leasing))
            case "release" | "spoil" if self.leased:
                session = self.leased.pop(which % len(self.leased))
                session.served_calls += which % 2
                pool.release(session, reusable=what == "release")
            case "park" if self.leased:
                self.parked.append(self.leased.pop(which % len(self.leased)))
                pool.park()
            case "unpark" if self.parked:
                self.leased.append(self.parked.pop(which % len(self.parked)))
                pool.unpark()
            case "leave" if self.leasing:
                self.leasing[which % len(self.leasing)].cancel()
            case "forget" if self.opener.opened:
                pool.forget(self.opener.opened[which % len(self.opener.opened)])
            case "fail":
                self.opener.failure = UpstreamUnreachable() if which % 2 else None
            case "gate":
                (self.opener.gate.clear if which % 2 else self.opener.gate.set)()
            case _:
                pass

    def collect(self) -> None:
        """Take what was leased meanwhile."""
        for task in [task for task in self.leasing if task.done()]:
            self.leasing.remove(task)
            if not task.cancelled() and task.exception() is None:
                self.leased.append(task.result())

    def check(self, *, before: int, is_unpark: bool) -> None:
        pool = self.pool
        assert pool._taken >= 0
        assert self.opener.waiting <= self.most_opening
        assert is_unpark or pool._taken <= max(self.max, before)
        assert len(set(self.leased)) == len(self.leased), "leased twice"
        assert not set(self.leased) & set(pool._idle_since), "leased and idle"
        assert sum(len(stack) for stack in pool._idle.values()) == len(pool._idle_since)

    def check_at_rest(self) -> None:
        """When nothing is going on any more, the numbers must agree, and nobody may wait for nothing."""
        pool = self.pool
        idle = len(pool._idle_since)
        assert pool._taken == idle + len(self.leased) + self.opener.waiting
        assert pool.states() == {
            SessionState.OPENING: self.opener.waiting,
            SessionState.IDLE: idle,
            SessionState.LEASED: len(self.leased),
            SessionState.HELD: len(self.parked),
        }
        if pool._first_in_queue() is not None:
            is_full = pool._taken >= self.max
            assert is_full or self.opener.waiting == self.most_opening, "it could be the first one's turn"
            assert not (is_full and idle), "someone waits although an idle session could make room"


async def _live(
    mode: Any, limit: int, most_opening: int | None, warm: int, script: list[tuple[str, int]]
) -> None:
    opener = Opener()
    pool = Pool(settings(mode=mode, max=limit, warm=warm), opener, most_opening=most_opening)
    world = World(pool, opener, limit, most_opening or limit)
    for what, which in script:
        before = world.pool._taken
        world.perform(what, which)
        world.check(before=before, is_unpark=what == "unpark")
        before = world.pool._taken
        await turns(which % 3)
        world.collect()
        world.check(before=before, is_unpark=False)
    await turns(50)
    world.collect()
    world.check_at_rest()

    opener.failure = None
    opener.gate.set()
    for session in world.parked:
        world.pool.unpark()
        world.leased.append(session)
    for _ in range(len(script) + 1):  # everybody who waits gets something in the end
        for session in world.leased:
            world.pool.release(session, reusable=True)
        world.leased.clear()
        await turns(50)
        world.collect()
    assert not world.leasing, "somebody waits for ever"
    assert world.pool._taken == len(world.pool._idle_since) + len(world.leased)
    assert world.pool._taken <= limit
    await world.pool.close()
    assert all(opener.is_closed(session) for session in opener.opened if session not in world.leased)


@given(
    st.sampled_from(["pooled", "fresh", "auto"]),
    st.integers(1, 3),
    st.none() | st.integers(1, 2),
    st.integers(0, 2),
    steps,
)
def test_places_are_never_lost_nor_made_up(
    mode: str, limit: int, most_opening: int | None, warm: int, script: list[tuple[str, int]]
) -> None:
    asyncio.run(_live(mode, limit, most_opening, warm, script))


async def _in_turn(script: list[int]) -> None:
    opener = Opener()
    pool = Pool(settings(mode="affinity"), opener)
    working = 0

    async def use(number: int) -> None:
        nonlocal working
        try:
            session = await pool.lease(CALLERS[0])
        except GatewayError:
            return
        working += 1
        assert working == 1, "two calls at once"
        try:
            await turns(number % 5)
        finally:
            working -= 1
            pool.release(session, reusable=number % 3 > 0)

    tasks = []
    for number in script:
        opener.failure = UpstreamUnreachable() if number % 7 == 0 else None
        tasks.append(asyncio.ensure_future(use(number)))
        await turns(number % 4)
        if number % 5 == 0:
            tasks[number % len(tasks)].cancel()
    async with asyncio.timeout(5):
        done = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(result is None or isinstance(result, asyncio.CancelledError) for result in done), done
    assert not len(pool._turns)
    await pool.close()


@given(st.lists(st.integers(0, 100), max_size=25))
def test_with_affinity_there_is_never_more_than_one_call(script: list[int]) -> None:
    asyncio.run(_in_turn(script))
