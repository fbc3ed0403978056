"""What everybody in a run writes down, each for itself. Data only; nothing here compares anything."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Json = dict[str, Any]


class Ending(StrEnum):
    """How an exchange ended, as its client saw it."""

    COMPLETE = "complete"
    REFUSED = "refused"
    """A JSON-RPC error, whichever."""
    CUT = "cut"
    """The connection broke before the first answer: there was no ticket yet to come back with."""
    GAVE_UP = "gave up"
    """The client has tried again as often as a client does."""
    HUNG = "hung"
    """Nothing at all came in all the time that a round may take."""


class FaultKind(StrEnum):
    """What is done to the deployment."""

    KILL = "kill"
    FREEZE = "freeze"
    DRAIN = "drain"
    REDIS = "redis"
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class Task:
    """One exchange as it was planned."""

    name: str
    upstream: str
    tool: str
    questions: int
    at_once: bool
    client: str
    """`lean` or `mcp`."""
    answers: tuple[str, ...]
    """By number of the question; no other exchange has any of them."""
    thinking: tuple[float, ...]
    """Seconds before each round of answers."""

    @property
    def is_repeatable(self) -> bool:
        """Does the tool say that it may be run again?"""
        return self.tool.endswith("_again")

    @property
    def arguments(self) -> Json:
        return {"id": self.name, "questions": self.questions, "atOnce": self.at_once}


@dataclass(slots=True)
class Attempt:
    """One HTTP request of a client."""

    began: float
    round: int
    """0 is the first request, without a ticket."""
    ended: float = 0.0
    port: int = 0
    """The client's own, by which the balancer knows the connection."""
    outcome: str = ""


@dataclass(slots=True)
class Told:
    """What the client of one exchange can tell of it."""

    task: Task
    attempts: list[Attempt] = field(default_factory=list)
    tickets: list[str] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    """Numbers of the questions, as often as they were put."""
    ending: Ending = Ending.HUNG
    text: str | None = None
    error: Json | None = None

    @property
    def began(self) -> float:
        return self.attempts[0].began if self.attempts else 0.0

    @property
    def ended(self) -> float:
        return self.attempts[-1].ended if self.attempts else 0.0


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that was done, from when until when."""

    kind: FaultKind
    target: str
    """A process (`b.3`: the third life of replica b), an upstream, or Redis."""
    began: float
    ended: float
    detail: str = ""
    exchanges: frozenset[str] = frozenset()
    """Of a reset: whose bytes had passed on the connections that it hit."""
    has_strangers: bool = False
    """Of a reset: it also hit connections on which no exchange's bytes had passed yet."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One connection through the balancer."""

    port: int
    process: str | None
    """The life of the replica that took it; None: no replica did."""
    began: float


def process_of(passages: list[Passage], attempt: Attempt) -> str | None:
    """Which process took this request. The system gives ports out again, so the time matters too."""
    took = [one for one in passages if one.port == attempt.port and one.began <= attempt.ended]
    return took[-1].process if took else None


@dataclass(slots=True)
class Records:
    """Everything."""

    told: list[Told]
    faults: list[Fault]
    passages: list[Passage]
    servers: dict[str, Json]
    """By upstream: `http`, `events`, `open`."""
    rounds: list[Json]
    """The gateways' lines about rounds, each with the `process` that wrote it."""
    exchange_ids: dict[str, str] = field(default_factory=dict)
    """What the gateways call an exchange, by our name; from its tickets."""
    owners: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    """Which process had an exchange, by our name, and since when: from its tickets."""
