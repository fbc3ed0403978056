"""Does to a deployment what was planned, and writes down when, and to whom."""

import asyncio
import random
import signal
from collections.abc import Coroutine, Iterable, Iterator
from typing import Any

from tests.chaos.deployment import Deployment
from tests.chaos.plan import Stroke
from tests.chaos.records import Fault, FaultKind
from tests.chaos.replicas import Replica

_MOST_BUSY = 2
"""Replicas to which something is being done at the same time: one is always left alone."""


class Breaker:
    """Strikes until it is told to stop; then everything is as it was, and runs."""

    def __init__(self, whole: Deployment, strokes: Iterator[Stroke], kinds: Iterable[FaultKind]) -> None:
        self._whole = whole
        self._strokes = strokes
        self._redis = asyncio.Lock()
        self._under_way: set[asyncio.Task[None]] = set()
        self.faults: list[Fault] = []
        self._missing = set(kinds)
        self.has_struck_each = asyncio.Event()
        """Every kind of fault has come at least once."""

    async def run(self, enough: asyncio.Event) -> None:
        """Strike, one after the other, until it is enough."""
        for stroke in self._strokes:
            try:
                async with asyncio.timeout(stroke.pause):
                    await enough.wait()
            except TimeoutError:
                self._strike(stroke)
            for done in [task for task in self._under_way if task.done()]:
                self._under_way.discard(done)
                done.result()
            if enough.is_set():
                break
        await asyncio.gather(*self._under_way)

    def _strike(self, stroke: Stroke) -> None:
        match stroke.kind:
            case FaultKind.RESET:
                has_struck = self._reset(stroke)
            case FaultKind.REDIS:
                has_struck = True
                self._start(self._restart_redis(stroke))
            case _:
                has_struck = self._harm_one(stroke)
        if has_struck:
            self._missing.discard(stroke.kind)
        if not self._missing:
            self.has_struck_each.set()

    def _harm_one(self, stroke: Stroke) -> bool:
        idle = [replica for replica in self._whole.replicas.values() if not replica.is_busy]
        if len(self._whole.replicas) - len(idle) >= _MOST_BUSY:
            return False
        replica = next((one for one in idle if one.name == stroke.replica), idle[0])
        replica.is_busy = True
        self._start(self._harm(replica, stroke))
        return True

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._under_way.add(asyncio.ensure_future(work))

    async def _harm(self, replica: Replica, stroke: Stroke) -> None:
        began, life = self._whole.now(), replica.life
        try:
            match stroke.kind:
                case FaultKind.FREEZE:
                    replica.tell(signal.SIGSTOP)
                    await asyncio.sleep(stroke.seconds)
                    replica.tell(signal.SIGCONT)
                case FaultKind.KILL:
                    replica.tell(signal.SIGKILL)
                    await replica.ended()
                    await asyncio.sleep(stroke.seconds / 3)
                    await replica.start()
                case _:
                    replica.tell(signal.SIGTERM)
                    await replica.ended()
                    await replica.start()
        finally:
            replica.is_busy = False
        self.faults.append(Fault(stroke.kind, life, began, self._whole.now()))

    async def _restart_redis(self, stroke: Stroke) -> None:
        async with self._redis:
            began = self._whole.now()
            is_crash = stroke.seed % 2 == 0
            await asyncio.to_thread(self._whole.redis.kill if is_crash else self._whole.redis.stop)
            await asyncio.sleep(stroke.seconds / 3)
            await asyncio.to_thread(self._whole.redis.start)
            detail = "killed" if is_crash else "stopped"
            self.faults.append(Fault(FaultKind.REDIS, "redis", began, self._whole.now(), detail))

    def _reset(self, stroke: Stroke) -> bool:
        dice = random.Random(stroke.seed)
        hit = [wire for wires in self._whole.wires[stroke.upstream] for wire in wires.cut(stroke.share, dice)]
        if hit:
            now = self._whole.now()
            self.faults.append(
                Fault(
                    FaultKind.RESET,
                    stroke.upstream,
                    now,
                    now,
                    f"{len(hit)} connections",
                    frozenset(name for wire in hit for name in wire.exchanges),
                    has_strangers=any(not wire.exchanges for wire in hit),
                )
            )
        return bool(hit)
