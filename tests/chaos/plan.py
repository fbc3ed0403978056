"""What will be done in a run, drawn from one seed: the exchanges, and the faults with their times. Pure."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.chaos.records import FaultKind, Task

RESUMABLE: Final = {"ts-memory": "ts-1.32", "py-memory": "py-1.30"}
"""Servers with an event store: a broken stream is read on."""
FORGETFUL: Final = {"py-plain": "py-1.26"}
"""A server without one: what was on a broken stream is gone."""
UPSTREAMS: Final = {**RESUMABLE, **FORGETFUL}
REPLICAS: Final = ("a", "b", "c")

_WEIGHTS: Final = {
    FaultKind.KILL: 4,
    FaultKind.FREEZE: 3,
    FaultKind.DRAIN: 3,
    FaultKind.REDIS: 1,
    FaultKind.RESET: 6,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything."""

    exchanges: int
    seed: int
    at_once: int = 32
    """Exchanges under way at the same time."""
    thinking: float = 1.2
    """Seconds that a user thinks, in the middle."""
    pause: float = 2.0
    """Seconds between two faults, in the middle."""
    mcp_share: float = 0.1
    heartbeat: float = 1.0
    kinds: frozenset[FaultKind] = frozenset(FaultKind)

    def tasks(self) -> list[Task]:
        """The exchanges, in order."""
        return [self._task(number) for number in range(1, self.exchanges + 1)]

    def _task(self, number: int) -> Task:
        dice = random.Random(f"{self.seed}/{number}")
        questions = dice.randint(1, 3)
        return Task(
            name=f"chaos-{self.seed}-{number}.",  # the dot: no name is the beginning of another
            upstream=dice.choice(list(UPSTREAMS)),
            tool=dice.choice(["ask_chain", "ask_chain_again"]),
            questions=questions,
            at_once=dice.random() < 0.25,
            client="mcp" if dice.random() < self.mcp_share else "lean",
            answers=tuple(f"{number}-{n}-{dice.getrandbits(48):012x}" for n in range(1, questions + 1)),
            thinking=tuple(min(5 * self.thinking, dice.expovariate(1 / self.thinking)) for _ in range(8)),
        )

    def faults(self) -> Iterator["Stroke"]:
        """Without end; each kind once before any comes again."""
        dice = random.Random(f"{self.seed}/faults")
        kinds = sorted(self.kinds)
        first = dice.sample(kinds, len(kinds))
        while kinds:
            kind = first.pop() if first else dice.choices(kinds, [_WEIGHTS[kind] for kind in kinds])[0]
            yield Stroke(
                pause=dice.uniform(0.5, 1.5) * self.pause,
                kind=kind,
                replica=dice.choice(REPLICAS),
                upstream=dice.choice(list(UPSTREAMS)),
                seconds=dice.uniform(0.3, 6.0) * self.heartbeat,
                share=dice.choice([0.1, 0.3, 1.0]),
                seed=dice.getrandbits(32),
            )


@dataclass(frozen=True, slots=True)
class Stroke:
    """One fault to come; which of the numbers matter depends on its kind."""

    pause: float
    kind: FaultKind
    replica: str
    upstream: str
    seconds: float
    """How long a process stays away or frozen."""
    share: float
    """Of the connections that are reset."""
    seed: int
