"""What all exchanges with one upstream share: settings, sessions, tickets, books. It does nothing itself."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from gateway.eras.asks import KeyNaming
from gateway.eras.policy import AskPolicy, Disposition, Unfit
from gateway.holds.directory import Directory
from gateway.holds.lease import Lease
from gateway.relay.clocks import Deadlines
from gateway.relay.tickets import TicketOffice
from gateway.sealing.box import Box
from gateway.sealing.envelope import Envelope
from gateway.settings.upstream import Upstream
from gateway.stores.protocol import Store
from gateway.telemetry.metrics import Metrics
from gateway.upstreams.background import Background
from gateway.upstreams.flag import Flag
from gateway.upstreams.pool import Pool
from gateway.wire.jsonrpc import encode

if TYPE_CHECKING:
    from gateway.holds.ledger import Ledger
    from gateway.relay.courier import Courier
    from gateway.relay.driver import Driver
    from gateway.relay.request import ClientRequest

_MOST_REMEMBERED: Final = 10_000
_LONGEST_ROOTS: Final = 16 * 1024
"""Bytes. Who has more folders than that is asked for each session."""


class Ids:
    """Ids that no other session and no other replica uses: event stores leak across sessions otherwise.

    They are names, not secrets: what a client gets to see of them is sealed.
    """

    __slots__ = ("_count", "_stem")

    def __init__(self, replica: str) -> None:
        self._stem = f"hf-{replica}-"
        self._count = count(1)

    def next(self) -> str:
        """A new id."""
        return f"{self._stem}{next(self._count)}"


class RootsMemory:
    """What each authenticated principal answered to `roots/list`, so that it is asked once and not per session."""

    def __init__(self, ttl: float, now: Callable[[], float]) -> None:
        self._ttl = ttl
        self._now = now
        self._known: OrderedDict[str, tuple[float, Mapping[str, Any]]] = OrderedDict()

    def recall(self, principal: str) -> Mapping[str, Any] | None:
        """The answer, if there is one that is not too old."""
        known = self._known.get(principal)
        return known[1] if known is not None and known[0] > self._now() else None

    def remember(self, principal: str, answer: Mapping[str, Any]) -> None:
        """Keep the answer for this principal's later sessions."""
        self._known.pop(principal, None)
        if len(encode(answer)) > _LONGEST_ROOTS:
            return
        self._known[principal] = (self._now() + self._ttl, answer)
        while len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Shared:
    """What all upstreams of a gateway have in common."""

    box: Box
    envelope: Envelope
    ticket_seconds: float
    max_event_bytes: int
    metrics: Metrics
    replica: str
    """This process, in request ids and tickets."""
    version: str
    now: Callable[[], float]
    """Unix time."""
    store: Store
    courier: "Courier | None" = None
    """The way to other replicas, if there are any."""
    lease: Lease | None = None
    """Whether this process was frozen, where that matters: with replicas that might have taken over."""
    ids: Ids = field(init=False)
    """One count for all upstreams: the store knows an exchange by its id alone."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", Ids(self.replica))


async def _never(_: "ClientRequest") -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Place:
    """One upstream, as its exchanges see it."""

    name: str
    settings: Upstream
    policy: AskPolicy
    hold_seconds: float
    pool: Pool
    tickets: TicketOffice
    ids: Ids
    roots: RootsMemory
    metrics: Metrics
    ledger: "Ledger[Driver]"
    directory: Directory
    drivers: "set[Driver]" = field(default_factory=set)
    """All that have a session, whether they work or wait for their client."""
    leaving: Flag = field(default_factory=Flag)
    """Up when this process is about to stop, and others can go on with what it has."""
    background: Background = field(default_factory=Background)
    expiries: Deadlines = field(init=False)
    """When holds end because nobody came back."""
    graces: Deadlines = field(init=False)
    """When outcomes are forgotten that nobody fetched."""
    doubt: Callable[[], None] = lambda: None
    """To be told that the server does not know its sessions any more: it may have been replaced."""

    may_rerun: "Callable[[ClientRequest], Awaitable[bool]]" = _never
    """May a call that was just lost be run again, with its client waiting?"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "expiries", Deadlines(self.hold_seconds))
        object.__setattr__(self, "graces", Deadlines(self.settings.holds.grace))

    @property
    def is_leaving(self) -> bool:
        """Is this process about to stop, with others to go on?"""
        return self.leaving.is_set()

    def naming(self, target: str) -> KeyNaming:
        """How the asks of this tool are called."""
        return KeyNaming(self.settings.key_hint, self.settings.input_keys.get(target, ()))


def policy_of(settings: Upstream) -> AskPolicy:
    """The configuration's words about asks, as the machine wants them."""
    asks = settings.asks
    return AskPolicy(
        elicitation=Disposition(asks.elicitation),
        sampling=Disposition(asks.sampling),
        roots=Disposition(asks.roots),
        static_roots=[root.model_dump(exclude_none=True) for root in asks.static_roots],
        unfit=Unfit(asks.invalid),
    )
