"""The events that happen to an exchange and the commands that it gives: the words between the machine and the relay.

Events are past facts, commands are imperatives. Nothing here acts, and nothing
here knows a socket: `exchange.py` turns the one into the other, the relay
performs.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from gateway.errors import GatewayError, UpstreamTimedOut
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


class Ask(Struct, frozen=True):
    """One back-channel request of the legacy server."""

    id: Id | None
    """Its JSON-RPC id, with its JSON type; None for a URL elicitation that came as error -32042."""
    kind: Kind
    method: str
    params: Params


# --- events ------------------------------------------------------------------


class ClientCalled(Struct, frozen=True):
    """The first round: the client sent its request, perhaps with answers it already had."""

    capabilities: Mapping[str, Any]
    answers: Mapping[str, Params]


class ClientRetried(Struct, frozen=True):
    """A later round: the client came back with answers to what it was asked."""

    capabilities: Mapping[str, Any]
    answers: Mapping[str, Params]


class ClientLeft(Struct, frozen=True):
    """The last client listening to the running round closed its connection."""


class UpstreamAsked(Struct, frozen=True):
    """The legacy server put a question to the client in the middle of the call."""

    ask: Ask


class UpstreamWithdrew(Struct, frozen=True):
    """The legacy server no longer waits for this answer (`notifications/cancelled`)."""

    ask_id: Id


class UpstreamAnswered(Struct, frozen=True):
    """The call's result."""

    result: Raw


class UpstreamFailed(Struct, frozen=True):
    """The call's JSON-RPC error."""

    failure: Failure


class UpstreamBroke(Struct, frozen=True):
    """The call will not be answered: refused, lost, or not MCP."""

    error: GatewayError


class AnswerNotTaken(Struct, frozen=True):
    """Something that we had to say to the server beside the call did not reach it."""

    error: GatewayError


class AnswerRefused(Struct, frozen=True):
    """The server did not take an answer because of the credentials that came with it: it has not read it."""

    ask: Ask
    error: GatewayError


class SessionChanged(Struct, frozen=True):
    """The call, which has not run, goes on in a new session, to be sent there anew: the old one was lost."""

    early: tuple[Ask, ...] = ()
    """What the server asked in it already, before any call."""


class SettleElapsed(Struct, frozen=True):
    """Time enough has passed for asks that are sent together to have arrived."""


class HoldExpired(Struct, frozen=True):
    """The client did not come back in time."""


class WorkTimedOut(Struct, frozen=True):
    """The upstream worked longer than it may; time while held was not counted."""

    error: GatewayError = field(default_factory=UpstreamTimedOut)
    """What the client is told: other time-outs than the call's own have words of their own."""


class RoundPaused(Struct, frozen=True):
    """The round has to end though the call goes on: its time slice is over, or this process is about to stop."""


class RerunJudged(Struct, frozen=True):
    """What policy says of running the call again, asked by `SeekRerun`."""

    is_allowed: bool


ClientEvent: TypeAlias = ClientCalled | ClientRetried | ClientLeft
UpstreamEvent: TypeAlias = (
    UpstreamAsked
    | UpstreamWithdrew
    | UpstreamAnswered
    | UpstreamFailed
    | UpstreamBroke
    | AnswerNotTaken
    | AnswerRefused
    | SessionChanged
)
ClockEvent: TypeAlias = SettleElapsed | HoldExpired | WorkTimedOut | RoundPaused
Event: TypeAlias = ClientEvent | UpstreamEvent | ClockEvent | RerunJudged

# --- commands ----------------------------------------------------------------


class SendCall(Struct, frozen=True):
    """Send the client's request to the legacy server, under a new request id."""


class StartOver(Struct, frozen=True):
    """Run the call again, on a new session: what was running is lost, and policy allows it."""


class SeekRerun(Struct, frozen=True):
    """Feed `RerunJudged`: would a second run do no harm? The call was lost while the client listened."""


class SendAnswer(Struct, frozen=True):
    """Answer an ask with the client's result (or with one that policy gives)."""

    ask: Ask
    result: Mapping[str, Any]
    from_client: bool = False


class SendRefusal(Struct, frozen=True):
    """Answer an ask with a JSON-RPC error."""

    ask: Ask
    code: int
    message: str


class CancelCall(Struct, frozen=True):
    """Tell the legacy server that nobody waits for the call any more, and stop reading."""

    reason: str


class StartSettling(Struct, frozen=True):
    """Feed `SettleElapsed` after the upstream's settle time."""


class Hold(Struct, frozen=True):
    """Park the exchange: answer this round with `input_required` and wait for the next."""

    requests: Mapping[str, Mapping[str, Any]]


class Reject(Struct, frozen=True):
    """Answer this round with the caller's mistake; the hold is as if the round had not come."""

    error: GatewayError


class Complete(Struct, frozen=True):
    """Answer this round with the call's result."""

    result: Raw


class CompleteFailure(Struct, frozen=True):
    """Answer this round with the call's JSON-RPC error."""

    failure: Failure


class Abort(Struct, frozen=True):
    """Answer this round with an error of our own."""

    error: GatewayError


class Release(Struct, frozen=True):
    """The exchange needs its session no more."""

    reusable: bool
    leftover: tuple[Ask, ...] = ()
    """Asks that were not the call's business (roots) and stay open on a reusable session."""


Ending: TypeAlias = Complete | CompleteFailure | Abort
Command: TypeAlias = (
    SendCall
    | StartOver
    | SeekRerun
    | SendAnswer
    | SendRefusal
    | CancelCall
    | StartSettling
    | Hold
    | Reject
    | Ending
    | Release
)
