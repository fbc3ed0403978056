"""What can happen to an exchange, and what it can want done: the words between the machine and the relay.

Events are past facts, commands are imperatives. Nothing here acts, and nothing
here knows a socket: `exchange.py` turns the one into the other, the relay
performs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from gateway.errors import GatewayError
from gateway.wire.jsonrpc import Failure, Id, Params, Raw


class Kind(StrEnum):
    """The three things a legacy server may ask of a client."""

    ELICITATION = "elicitation"
    SAMPLING = "sampling"
    ROOTS = "roots"


KIND_OF_METHOD: Final = {
    "elicitation/create": Kind.ELICITATION,
    "sampling/createMessage": Kind.SAMPLING,
    "roots/list": Kind.ROOTS,
}
"""Back-channel methods that become `inputRequests`; any other request of an upstream is refused."""

ASKING_METHODS: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""The only requests that may be answered with `input_required` (basic/patterns/mrtr)."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One back-channel request of the legacy server."""

    id: Id | None
    """Its JSON-RPC id, with its JSON type; None for a URL elicitation that came as error -32042."""
    kind: Kind
    method: str
    params: Params


# --- events ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClientCalled:
    """The first round: the client sent its request, perhaps with answers it already had."""

    capabilities: Mapping[str, Any]
    answers: Mapping[str, Params]


@dataclass(frozen=True, slots=True)
class ClientRetried:
    """A later round: the client came back with answers to what it was asked."""

    capabilities: Mapping[str, Any]
    answers: Mapping[str, Params]


@dataclass(frozen=True, slots=True)
class ClientLeft:
    """The last client listening to the running round closed its connection."""


@dataclass(frozen=True, slots=True)
class UpstreamAsked:
    """The legacy server put a question to the client in the middle of the call."""

    ask: Ask


@dataclass(frozen=True, slots=True)
class UpstreamWithdrew:
    """The legacy server no longer waits for this answer (`notifications/cancelled`)."""

    ask_id: Id


@dataclass(frozen=True, slots=True)
class UpstreamAnswered:
    """The call's result."""

    result: Raw


@dataclass(frozen=True, slots=True)
class UpstreamFailed:
    """The call's JSON-RPC error."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class UpstreamBroke:
    """The call will not be answered: refused, lost, or not MCP."""

    error: GatewayError


@dataclass(frozen=True, slots=True)
class SettleElapsed:
    """Time enough has passed for asks that are sent together to have arrived."""


@dataclass(frozen=True, slots=True)
class HoldExpired:
    """The client did not come back in time."""


@dataclass(frozen=True, slots=True)
class WorkTimedOut:
    """The upstream worked longer than it may; time while held was not counted."""


Event: TypeAlias = (
    ClientCalled
    | ClientRetried
    | ClientLeft
    | UpstreamAsked
    | UpstreamWithdrew
    | UpstreamAnswered
    | UpstreamFailed
    | UpstreamBroke
    | SettleElapsed
    | HoldExpired
    | WorkTimedOut
)

# --- commands ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendCall:
    """Send the client's request to the legacy server, under a new request id."""


@dataclass(frozen=True, slots=True)
class SendAnswer:
    """Answer an ask with the client's result (or with one that policy gives)."""

    ask: Ask
    result: Mapping[str, Any]
    from_client: bool = False


@dataclass(frozen=True, slots=True)
class SendRefusal:
    """Answer an ask with a JSON-RPC error."""

    ask: Ask
    code: int
    message: str


@dataclass(frozen=True, slots=True)
class CancelCall:
    """Tell the legacy server that nobody waits for the call any more, and stop reading."""

    reason: str


@dataclass(frozen=True, slots=True)
class StartSettling:
    """Feed `SettleElapsed` after the upstream's settle time."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Park the exchange: answer this round with `input_required` and wait for the next."""

    requests: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Reject:
    """Answer this round with the caller's mistake; the hold is as if the round had not come."""

    error: GatewayError


@dataclass(frozen=True, slots=True)
class Complete:
    """Answer this round with the call's result."""

    result: Raw


@dataclass(frozen=True, slots=True)
class CompleteFailure:
    """Answer this round with the call's JSON-RPC error."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Abort:
    """Answer this round with an error of our own."""

    error: GatewayError


@dataclass(frozen=True, slots=True)
class Release:
    """The exchange needs its session no more."""

    reusable: bool
    leftover: tuple[Ask, ...] = ()
    """Asks that were not the call's business (roots) and stay open on a reusable session."""


Ending: TypeAlias = Complete | CompleteFailure | Abort
Command: TypeAlias = (
    SendCall | SendAnswer | SendRefusal | CancelCall | StartSettling | Hold | Reject | Ending | Release
)
