"""The letters that replicas write about a round that one has received and the other can carry out. Pure.

    the replica with the client                     the replica with the exchange
      Carry     the round: what the client sent  ->
                                                 <-   Accepted   it is under way
                                                 <-   Told       what the server says in the meantime
                                                 <-   Said       the last word
      Left      the client has gone              ->
      Pause     its connection will end soon     ->
                                                 <-   Unknown    there is no such exchange here

No letter says who the client is: whoever sends has checked the ticket, and
whoever has the exchange knows whose it is. A credential goes along only where
callers refresh theirs and the upstream is to see the present one. JSON stays the
bytes that it was.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct

from gateway.relay.listener import Reply, RpcError
from gateway.relay.request import ClientRequest, Principal
from gateway.telemetry.names import LetterKind, Outcome
from gateway.wire.jsonrpc import Id

_T = TypeVar("_T")
_TICKET: Final = "requestState"


class Carry(Struct, frozen=True, array_like=True, tag=LetterKind.CARRY.value):
    """Carry out this round, and tell me. The same letter may come again: it means the same."""

    sender: str
    number: int
    """The sender's name for this round; all that is written about it bears it."""
    upstream: str
    exchange: str
    round: int
    digest: str
    """Of the answers: the same retry again is recognised by it."""
    request: bytes


class Accepted(Struct, frozen=True, array_like=True, tag=LetterKind.ACCEPTED.value):
    """The round is under way here."""

    number: int


class Told(Struct, frozen=True, array_like=True, tag=LetterKind.TOLD.value):
    """What the server says while it works, as it goes to the client."""

    number: int
    sequence: int
    """Grows with every such letter of a replica: one that comes twice is heard once."""
    notifications: list[bytes]


class Said(Struct, frozen=True, array_like=True, tag=LetterKind.SAID.value):
    """The last word of the round."""

    number: int
    reply: bytes


class Left(Struct, frozen=True, array_like=True, tag=LetterKind.LEFT.value):
    """The client of this round has gone."""

    sender: str
    number: int


class Pause(Struct, frozen=True, array_like=True, tag=LetterKind.PAUSE.value):
    """The replica with the client is about to stop: end the round with a ticket, if the call can do without it."""

    sender: str
    number: int


class Unknown(Struct, frozen=True, array_like=True, tag=LetterKind.UNKNOWN.value):
    """No such exchange here, or not any more."""

    number: int


Letter: TypeAlias = Carry | Accepted | Told | Said | Left | Pause | Unknown


class LetterInvalid(ValueError):
    """Not one of the letters above, or one with something else inside. The text repeats nothing of it."""


class _Asked(Struct, frozen=True, array_like=True):
    id: Id
    method: str
    params: dict[str, Raw]
    target: str
    capabilities: dict[str, Any]
    client_info: dict[str, Any] | None
    log_level: str | None
    progress_token: Id | None
    authorization: str | None = None  # replicas of the version before do not send it


class _Wrong(Struct, frozen=True, array_like=True):
    code: int
    message: str
    data: Raw


class _Spoken(Struct, frozen=True, array_like=True):
    outcome: Outcome
    result: dict[str, Raw] | None
    error: _Wrong | None
    status: int
    headers: dict[str, str]
    reason: str | None
    detail: str | None
    error_id: str | None = None  # replicas of the version before do not send it


_letters: Final[msgspec.msgpack.Decoder[Letter]] = msgspec.msgpack.Decoder(Letter)
_encode_letter: Final = msgspec.msgpack.Encoder().encode
_asked: Final = msgspec.json.Decoder(_Asked)
_spoken: Final = msgspec.json.Decoder(_Spoken)
_encode_json: Final = msgspec.json.Encoder().encode


def encode(letter: Letter) -> bytes:
    """The letter as bytes."""
    return _encode_letter(letter)


def decode(data: bytes) -> Letter:
    """The letter that these bytes are.

    Raises:
        LetterInvalid: they are none.
    """
    return _read(_letters, data)


def kind_of(letter: Letter) -> LetterKind:
    """For counting."""
    return LetterKind(type(letter).__name__.lower())


# --- what is inside -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CarriedRound:
    """A round that came by letter."""

    sender: str
    upstream: str
    exchange: str
    round: int
    digest: str
    _asked: _Asked = field(repr=False)

    def request(self, principal: Principal) -> ClientRequest:
        """What the client sent, as if it had sent it here; the ticket excepted, which has done its work."""
        asked = self._asked
        return ClientRequest(
            id=asked.id,
            method=asked.method,
            params=asked.params,
            target=asked.target,
            principal=principal if asked.authorization is None else _with(principal, asked.authorization),
            capabilities=asked.capabilities,
            client_info=asked.client_info,
            log_level=asked.log_level,
            progress_token=asked.progress_token,
        )


def _with(principal: Principal, authorization: str) -> Principal:
    """The same, with the credential that it has now: it may have been refreshed since the call began."""
    return replace(principal, authorization=authorization)


def pack_request(request: ClientRequest) -> bytes:
    """The part of a request that another replica needs."""
    params = {name: value for name, value in request.params.items() if name != _TICKET}
    return _encode_json(
        (
            request.id,
            request.method,
            params,
            request.target,
            request.capabilities,
            request.client_info,
            request.log_level,
            request.progress_token,
            request.principal.authorization if request.principal.outlives_credential else None,
        )
    )


def open_round(carry: Carry) -> CarriedRound:
    """The round in a letter.

    Raises:
        LetterInvalid: there is none in it.
    """
    asked = _read(_asked, carry.request)
    return CarriedRound(
        sender=carry.sender,
        upstream=carry.upstream,
        exchange=carry.exchange,
        round=carry.round,
        digest=carry.digest,
        _asked=asked,
    )


def pack_reply(reply: Reply) -> bytes:
    """The last word of a round."""
    error = None if reply.error is None else (reply.error.code, reply.error.message, reply.error.data)
    return _encode_json(
        (
            reply.outcome,
            reply.result,
            error,
            reply.status,
            reply.headers,
            reply.reason,
            reply.detail,
            reply.error_id,
        )
    )


def open_reply(data: bytes) -> Reply:
    """The last word in a letter.

    Raises:
        LetterInvalid: there is none in it.
    """
    spoken = _read(_spoken, data)
    wrong = spoken.error
    return Reply(
        outcome=spoken.outcome,
        result=spoken.result,
        error=None if wrong is None else RpcError(wrong.code, wrong.message, _given(wrong.data)),
        status=spoken.status,
        headers=spoken.headers,
        reason=spoken.reason,
        detail=spoken.detail,
        error_id=spoken.error_id,
    )


def _given(raw: Raw) -> Raw | None:
    return None if bytes(raw) == b"null" else raw


def _read(decoder: msgspec.msgpack.Decoder[_T] | msgspec.json.Decoder[_T], data: bytes) -> _T:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise LetterInvalid("not such a letter") from None
