"""Tickets for held exchanges: what goes into the sealed `requestState`, and when one is good. It knows no HTTP."""

from collections.abc import Callable
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gateway.eras.exchange import Exchange
from gateway.errors import InvalidParams
from gateway.relay.request import ClientRequest
from gateway.sealing.box import Box, ClaimsTooLarge, Expected
from gateway.sealing.claims import Claims, JournalEntry, PendingAsk
from gateway.wire.jsonrpc import NotJson, Raw, decode, encode

_LEEWAY_SECONDS: Final = 5.0
"""How far ahead the clock may be of the replica that is given a ticket."""


class Whereabouts(Struct, frozen=True):
    """Where the legacy call is to be found, for a replica that has to find it again."""

    session_id: str | None
    request_id: str | None
    last_event_id: str | None
    version: str

    @property
    def is_whole(self) -> bool:
        """Is this enough to read on where the call's stream was left?"""
        return None not in (self.session_id, self.request_id, self.last_event_id)


class Ticket(NamedTuple):
    """What a client is given."""

    token: str
    is_whole: bool
    """Does it have all that another process would need?"""


class TicketOffice:
    """Issues and checks the tickets of one upstream."""

    def __init__(
        self, box: Box, *, upstream: str, replica: str, ttl: float, now: Callable[[], float]
    ) -> None:
        self._box = box
        self._upstream = upstream
        self._replica = replica
        self._ttl = ttl
        self._now = now

    def write(
        self,
        exchange_id: str,
        exchange: Exchange,
        request: ClientRequest,
        where: Whereabouts,
        *,
        is_in_doubt: bool = False,
    ) -> Ticket:
        """A ticket for the exchange's present round."""
        now = int(self._now())
        claims = Claims(
            exchange=exchange_id,
            round=exchange.round,
            upstream=self._upstream,
            method=request.method,
            target=request.target,
            arguments=request.arguments_digest(),
            issued_at=now,
            expires_at=now + max(1, round(self._ttl)),
            owner=self._replica,
            session_id=where.session_id,
            request_id=where.request_id,
            last_event_id=where.last_event_id,
            version=where.version,
            runs=exchange.runs,
            is_in_doubt=is_in_doubt,
            pending=tuple(
                PendingAsk(key, ask.id, ask.kind.value, ask.method, Raw(encode(ask.params)))
                for key, ask in exchange.open_asks.items()
                if ask.id is not None
            ),
            journal=tuple(
                JournalEntry(entry.key, entry.kind.value, entry.fingerprint, Raw(encode(entry.answer)))
                for entry in exchange.journal
            ),
        )
        try:
            return Ticket(self._box.seal(claims, request.principal.material), is_whole=True)
        except ClaimsTooLarge:
            # The hold itself needs none of what can be large, only another process would.
            return Ticket(self._box.seal(_short(claims), request.principal.material), is_whole=False)

    def check(self, token: str, request: ClientRequest) -> Claims:
        """The claims of a ticket that was issued to this caller for this very request.

        Raises:
            StateRejected: it was not, or it is too old.
        """
        expected = Expected(
            principal=request.principal.material,
            upstream=self._upstream,
            method=request.method,
            target=request.target,
            arguments=request.arguments_digest(),
        )
        return self._box.open(token, expected, self._now() - _LEEWAY_SECONDS)

    def is_current(self, claims: Claims) -> bool:
        """Is a ticket that was checked still good? Its process may have been frozen since."""
        return self._now() - _LEEWAY_SECONDS < claims.expires_at


def _short(claims: Claims) -> Claims:
    """Without what grows with answers and questions, and what the server may choose to be long."""
    return replace(claims, journal=(), pending=(), session_id=None, last_event_id=None, is_whole=False)


def ticket_in(request: ClientRequest) -> str:
    """The `requestState` that a request came with.

    Raises:
        InvalidParams: it is no string.
    """
    try:
        token = decode(request.params["requestState"])
    except NotJson:
        token = None
    if not isinstance(token, str):
        raise InvalidParams(detail="requestState must be a string")
    return token
