"""What a ticket says, and its compact form in bytes. It knows no keys, no clock and no wire.

Format 1 is one MessagePack array that begins with the number 1. New members are
added at the end, with a default: older replicas skip them, so that both can
serve the same exchange during an upgrade. What older ones must not skip gets a
new number, and they refuse the ticket.

Only the journal is deflated. It holds what the client itself said, so that the
length of a ticket tells the client nothing; compressed together with the
session id, answers chosen with care would spell that id out (as CRIME did).
"""

import zlib
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from gateway.wire.jsonrpc import Id, Raw

MAX_UNFOLDED_BYTES: Final = 256 * 1024
"""No journal longer than this is ever deflated, so none is inflated beyond it."""

_WORTH_DEFLATING: Final = 256
_INT64: Final = range(-(2**63), 2**63)

# A small window: to set up the default one takes ten times as long as to deflate a usual journal.
_LEVEL: Final = 3
_WINDOW: Final = -13
_MEMORY: Final = 6


class Unreadable(ValueError):
    """Bytes that `encode` of this version did not write."""


class PendingAsk(msgspec.Struct, frozen=True):
    """An ask that the client has been shown and has not answered."""

    key: str
    """Its name in `inputRequests`."""
    id: Id
    """The legacy server's request id, with its JSON type."""
    kind: str
    method: str
    params: Raw
    """What was asked: whoever finds the call again must be able to ask it once more, and to judge the answer."""

    def __repr__(self) -> str:
        return f"PendingAsk(key={self.key!r}, kind={self.kind!r})"


class JournalEntry(msgspec.Struct, frozen=True):
    """An ask and its answer."""

    key: str
    kind: str
    digest: str
    answer: Raw

    def __repr__(self) -> str:
        return f"JournalEntry(key={self.key!r}, kind={self.kind!r})"  # an answer is the user's, not the log's


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """Which exchange a ticket is for; who may use it, for what, how long; how to find the call again."""

    exchange: str
    round: int
    upstream: str
    """The audience: a ticket of one upstream is worth nothing at another."""
    principal: str = ""
    """Fingerprint of the caller, under the key that sealed. The box puts it in."""
    method: str
    target: str
    """Name of the tool or prompt, URI of the resource."""
    arguments: str
    """Canonical digest."""
    issued_at: int
    """Unix seconds."""
    expires_at: int
    """Unix seconds; at this moment it is too late."""
    owner: str
    """The replica that has the hold."""
    session_id: str | None = None
    request_id: str | None = None
    last_event_id: str | None = None
    pending: tuple[PendingAsk, ...] = ()
    journal: tuple[JournalEntry, ...] = ()
    version: str = ""
    """The legacy revision that the session speaks."""
    runs: int = 1
    """How often the call has been started for this exchange."""
    is_whole: bool = True
    """False: what was asked and answered was too long to travel, so only the owner can go on."""
    is_in_doubt: bool = False
    """Did the answers given last perhaps never reach the server?"""

    def __repr__(self) -> str:
        # The session id opens the legacy session: it stays out of tracebacks and logs, as the answers do.
        return f"Claims(exchange={self.exchange!r}, round={self.round}, upstream={self.upstream!r})"


_PackedId: TypeAlias = int | str | tuple[str]  # the tuple: an integer too big for MessagePack, in hex
_Answered: TypeAlias = tuple[str, str, str, bytes]


class Packed(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag=1):
    """Claims as they travel. The journal is still folded: nobody unfolds it before the rest is checked."""

    exchange: str
    round: int
    upstream: str
    principal: str
    method: str
    target: str
    arguments: str
    issued_at: int
    expires_at: int
    owner: str
    session_id: str | None
    request_id: str | None
    last_event_id: str | None
    pending: tuple[tuple[str, _PackedId, str, str, bytes], ...]
    journal: bytes
    unfolded_bytes: int
    """Length of the journal before it was deflated; 0 if it was not."""
    version: str = ""
    runs: int = 1
    is_whole: bool = True
    is_in_doubt: bool = False

    def __repr__(self) -> str:
        return f"Packed(exchange={self.exchange!r})"

    def unpack(self) -> Claims:
        """The claims with their journal.

        Raises:
            Unreadable: the journal is not what `encode` makes.
        """
        return Claims(
            exchange=self.exchange,
            round=self.round,
            upstream=self.upstream,
            principal=self.principal,
            method=self.method,
            target=self.target,
            arguments=self.arguments,
            issued_at=self.issued_at,
            expires_at=self.expires_at,
            owner=self.owner,
            session_id=self.session_id,
            request_id=self.request_id,
            last_event_id=self.last_event_id,
            pending=tuple(
                [
                    PendingAsk(key, _unpack_id(id_), kind, method, Raw(params))
                    for key, id_, kind, method, params in self.pending
                ]
            ),
            journal=_unfold(self.journal, self.unfolded_bytes),
            version=self.version,
            runs=self.runs,
            is_whole=self.is_whole,
            is_in_doubt=self.is_in_doubt,
        )


_encoder: Final = msgspec.msgpack.Encoder()
_packed_decoder: Final = msgspec.msgpack.Decoder(Packed)
_journal_decoder: Final = msgspec.msgpack.Decoder(tuple[_Answered, ...])


def encode(claims: Claims) -> bytes:
    """Claims to bytes."""
    journal, unfolded_bytes = _fold(claims.journal)
    return _encoder.encode(
        Packed(
            exchange=claims.exchange,
            round=claims.round,
            upstream=claims.upstream,
            principal=claims.principal,
            method=claims.method,
            target=claims.target,
            arguments=claims.arguments,
            issued_at=claims.issued_at,
            expires_at=claims.expires_at,
            owner=claims.owner,
            session_id=claims.session_id,
            request_id=claims.request_id,
            last_event_id=claims.last_event_id,
            pending=tuple(
                [
                    (ask.key, _pack_id(ask.id), ask.kind, ask.method, bytes(ask.params))
                    for ask in claims.pending
                ]
            ),
            journal=journal,
            unfolded_bytes=unfolded_bytes,
            version=claims.version,
            runs=claims.runs,
            is_whole=claims.is_whole,
            is_in_doubt=claims.is_in_doubt,
        )
    )


def read(data: bytes) -> Packed:
    """Bytes to claims that are still packed, for checking.

    Raises:
        Unreadable: another version wrote them, or nobody did.
    """
    try:
        return _packed_decoder.decode(data)
    except (ValueError, RecursionError):
        raise Unreadable("not claims of format 1") from None


def decode(data: bytes) -> Claims:
    """Bytes to claims.

    Raises:
        Unreadable: another version wrote them, or nobody did.
    """
    return read(data).unpack()


def _pack_id(id_: Id) -> _PackedId:
    # JSON integers have no bounds, and a legacy server may choose any. Hex, as Python refuses long decimals.
    return id_ if isinstance(id_, str) or id_ in _INT64 else (format(id_, "x"),)


def _unpack_id(packed: _PackedId) -> Id:
    if not isinstance(packed, tuple):
        return packed
    try:
        return int(packed[0], 16)
    except ValueError:
        raise Unreadable("an id that is no number") from None


def _fold(journal: Sequence[JournalEntry]) -> tuple[bytes, int]:
    if not journal:
        return b"", 0
    # Answers go as byte strings: whatever is in them, they cannot be taken for anything but themselves.
    plain = _encoder.encode([(entry.key, entry.kind, entry.digest, bytes(entry.answer)) for entry in journal])
    if _WORTH_DEFLATING <= len(plain) <= MAX_UNFOLDED_BYTES:
        deflater = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY)
        deflated = deflater.compress(plain) + deflater.flush()
        if len(deflated) < len(plain):
            return deflated, len(plain)
    return plain, 0


def _unfold(journal: bytes, unfolded_bytes: int) -> tuple[JournalEntry, ...]:
    if not journal:
        return ()
    plain = _inflate(journal, unfolded_bytes) if unfolded_bytes else journal
    try:
        entries = _journal_decoder.decode(plain)
    except ValueError:
        raise Unreadable("not a journal of format 1") from None
    return tuple([JournalEntry(key, kind, digest, Raw(answer)) for key, kind, digest, answer in entries])


def _inflate(deflated: bytes, size: int) -> bytes:
    if not 0 < size <= MAX_UNFOLDED_BYTES:
        raise Unreadable("a journal longer than any that is deflated")
    inflater = zlib.decompressobj(_WINDOW)
    try:
        # One byte more than promised, so that a longer one shows and is still not inflated.
        plain = inflater.decompress(deflated, size + 1)
    except zlib.error:
        raise Unreadable("not a deflated journal") from None
    if len(plain) != size or not inflater.eof or inflater.unused_data:
        raise Unreadable("a journal of another length than it says")
    return plain
