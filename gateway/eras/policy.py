"""Which asks reach the client at all, and what the others are told. Pure; it knows no exchange."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from gateway.eras import capabilities
from gateway.eras.asks import is_well_formed
from gateway.eras.pages import REFUSAL as UNSAFE_PAGE
from gateway.eras.pages import has_unsafe_page
from gateway.eras.vocabulary import Ask, Kind, SendAnswer, SendRefusal

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
TOO_MANY: Final = -32000
USER_REJECTED: Final = -1
"""What the specification's own example answers for a sampling request that was turned down."""


class Disposition(StrEnum):
    """What is done with asks of one kind."""

    RELAY = "relay"
    DECLINE = "decline"
    STATIC = "static"


class Unfit(StrEnum):
    """What is done with an accepted answer that does not fit the question's schema."""

    REASK = "reask"
    FORWARD = "forward"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class AskPolicy:
    """The upstream's configuration about asks."""

    elicitation: Disposition = Disposition.RELAY
    sampling: Disposition = Disposition.RELAY
    roots: Disposition = Disposition.RELAY
    static_roots: Sequence[Mapping[str, str]] = ()
    unfit: Unfit = Unfit.REASK

    def of(self, kind: Kind) -> Disposition:
        """The disposition for this kind of ask."""
        match kind:
            case Kind.ELICITATION:
                return self.elicitation
            case Kind.SAMPLING:
                return self.sampling
            case Kind.ROOTS:
                return self.roots

    def advertised(self, declared: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the server is told that its client can do. Roots that the gateway gives need no client."""
        return {**declared, "roots": {}} if self.roots is Disposition.STATIC else declared


@dataclass(frozen=True, slots=True)
class Undeclared:
    """The client did not declare what this ask needs: it is refused, and the need remembered."""

    refusal: SendRefusal
    needs: dict[str, Any]


def settle_without_client(
    ask: Ask, policy: AskPolicy, declared: Mapping[str, Any], known_roots: Mapping[str, Any] | None
) -> SendAnswer | SendRefusal | Undeclared | None:
    """What the ask is told without troubling the client; None when it must be relayed."""
    match policy.of(ask.kind):
        case Disposition.DECLINE:
            return _declined(ask)
        case Disposition.STATIC:
            return SendAnswer(ask, {"roots": list(policy.static_roots)})
        case Disposition.RELAY:
            pass
    if not is_well_formed(ask):
        return SendRefusal(ask, INVALID_PARAMS, f"Not a valid {ask.method} request")
    if has_unsafe_page(ask):
        return SendRefusal(ask, INVALID_PARAMS, UNSAFE_PAGE)
    if not capabilities.is_declared(declared, ask):
        refusal = SendRefusal(ask, METHOD_NOT_FOUND, f"The client does not support {ask.kind.value}")
        return Undeclared(refusal, capabilities.needs(ask))
    if ask.kind is Kind.ROOTS and known_roots is not None:
        return SendAnswer(ask, known_roots)
    return None


def _declined(ask: Ask) -> SendAnswer | SendRefusal:
    match ask.kind:
        case Kind.ELICITATION:
            return SendAnswer(ask, {"action": "decline"})
        case Kind.SAMPLING:
            return SendRefusal(ask, USER_REJECTED, "Sampling was declined")
        case Kind.ROOTS:
            return SendRefusal(ask, METHOD_NOT_FOUND, "Roots are not supported")


def withdrawn(ask: Ask, reason: str) -> SendAnswer | SendRefusal:
    """What an ask is told when nobody will answer it any more."""
    if ask.kind is Kind.ELICITATION:
        return SendAnswer(ask, {"action": "cancel"})
    return SendRefusal(ask, USER_REJECTED, reason)
