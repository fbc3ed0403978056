"""JSON-RPC 2.0 messages as bytes and as values. It knows no MCP method and no meaning of any payload.

Only the envelope is read; params, results and error data stay the bytes that
the peer wrote (`Raw`), so what we merely forward is neither paid for nor
altered. A `Raw` is a view that keeps the whole input alive: `copy()` it before
keeping a small part of a large message for long.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, DecodeError, Struct, UnsetType, ValidationError
from msgspec.json import Decoder, Encoder

Raw: TypeAlias = msgspec.Raw
"""JSON that is forwarded as the bytes it came in."""

Id: TypeAlias = int | str
"""Compare with `is None`, never by truth: 0 and "" are ids that real clients send."""

Params: TypeAlias = dict[str, Raw]

T = TypeVar("T")


class Request(Struct, frozen=True):
    """The peer wants an answer under this id."""

    id: Id
    method: str
    params: Params


class Notification(Struct, frozen=True):
    """The peer says something and wants no answer."""

    method: str
    params: Params


class Result(Struct, frozen=True):
    """The result of the request of this id. Any JSON value: MCP's own rules are applied elsewhere."""

    id: Id
    result: Raw


class Failure(Struct, frozen=True):
    """The error answer. Servers that could not read the request send no id, or null."""

    id: Id | None
    code: int
    message: str
    data: Raw | None


Message: TypeAlias = Request | Notification | Result | Failure


class NotJson(ValueError):
    """Not JSON, or JSON that no Python value can hold (too deep, a number out of all bounds)."""


class NotJsonRpc(ValueError):
    """JSON, but not a JSON-RPC 2.0 message. `id` is the message's id if it has a legal one."""

    def __init__(self, text: str, id: Id | None = None) -> None:  # noqa: A002 - the protocol's word
        super().__init__(text)
        self.id = id


class _Error(Struct):
    code: int | float
    message: str = ""  # required by JSON-RPC, but the code alone is worth passing on
    data: Raw | UnsetType = UNSET


class _Envelope(Struct):
    """All kinds of message at once: which it is shows only when all of it was read."""

    jsonrpc: Literal["2.0"]
    id: int | float | str | UnsetType | None = UNSET
    method: str | UnsetType | None = UNSET
    params: dict[str, Raw] | UnsetType | None = UNSET
    result: Raw | UnsetType = UNSET
    error: _Error | UnsetType | None = UNSET


class _IdOnly(Struct):
    id: int | str | None = None


_BOM: Final = b"\xef\xbb\xbf"
_TELLS: Final = "notifications/"
"""How the methods begin that want no answer."""
_envelope: Final = Decoder(_Envelope)
_items: Final = Decoder(list[Raw])
_members: Final = Decoder(dict[str, Raw])
_id_only: Final = Decoder(_IdOnly)
_syntax: Final = Decoder(Raw)
_value: Final = Decoder()
_encode: Final = Encoder().encode

_MOST_HALF_CHARACTERS: Final = 1000

# A run of text free of half characters, then at most one of them. Escapes are taken whole and in turn, so
# that an escaped backslash before "ud83d" is not mistaken for one; possessive, so that it never backtracks.
_UP_TO_HALF_CHARACTER: Final = re.compile(
    rb"((?:[^\\]++"
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|\\(?!u[dD][89a-fA-F][0-9a-fA-F]{2}).?"
    rb")*+)(\\u[dD][89a-fA-F][0-9a-fA-F]{2})?",
    re.DOTALL,
)


def parse(data: bytes | bytearray | memoryview) -> Message:
    """Read one message.

    Raises:
        NotJson: The bytes are not JSON.
        NotJsonRpc: They are, but not one JSON-RPC message (a batch is none).
    """
    return _message(_enveloped(_owned(data)))


def parse_many(data: bytes | bytearray | memoryview) -> list[Message]:
    """Read what a server says: one message, or a batch as 2025-03-26 allowed. The errors are those of `parse`.

    A notification may have the id null, as all have that JSON-RPC 1.0 libraries write, and an integer may be
    written as 1.0, as libraries do that keep all numbers as doubles. A byte order mark is passed over (RFC 8259,
    8.1): some frameworks write one, and clients that decode text before they read JSON never see it.
    """
    if data[:1] == b"{":  # nearly always
        return [_heard(_owned(data))]
    owned = _owned(data).removeprefix(_BOM)
    if owned.lstrip(b" \t\r\n")[:1] != b"[":
        return [_heard(owned)]
    batch = _read(_items, owned)
    if not batch:
        raise NotJsonRpc("an empty batch")
    return [_heard(bytes(item)) for item in batch]


def decode(raw: bytes | Raw) -> Any:
    """The whole value, as Python has it. Raises `NotJson`."""
    try:
        return _read(_value, raw)
    except ValidationError as error:
        raise NotJson(str(error)) from None


def decode_members(raw: bytes | Raw) -> Params | None:
    """The members of an object, each still as it was written; None if it is no object. Raises `NotJson`."""
    try:
        return _read(_members, raw)
    except ValidationError:
        return None


def without_nulls(params: Params, names: Collection[str]) -> Params:
    """The members, without those of these names that are null."""
    nulls = [name for name in names if name in params and bytes(memoryview(params[name])[:5]) == b"null"]
    return {name: value for name, value in params.items() if name not in nulls} if nulls else params


def encode(value: Any) -> bytes:
    """Compact JSON. `Raw` parts are written as they are, with whatever white space they have."""
    return _encode(value)


def encode_request(id: Id, method: str, params: Mapping[str, Any] | None) -> bytes:  # noqa: A002
    """A request; without `params` if there are none to send."""
    if params is None:
        return _encode({"jsonrpc": "2.0", "id": id, "method": method})
    return _encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def encode_notification(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """A notification; without `params` if there are none to send."""
    if params is None:
        return _encode({"jsonrpc": "2.0", "method": method})
    return _encode({"jsonrpc": "2.0", "method": method, "params": params})


def encode_result(id: Id, result: Mapping[str, Any] | Raw) -> bytes:  # noqa: A002
    """The answer to a request that succeeded."""
    return _encode({"jsonrpc": "2.0", "id": id, "result": result})


def encode_error(id: Id | None, code: int, message: str, data: Any = None) -> bytes:  # noqa: A002
    """An error answer; `id` is null where the request's own could not be read."""
    error = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return _encode({"jsonrpc": "2.0", "id": id, "error": error})


def _enveloped(owned: bytes) -> _Envelope:
    try:
        return _read(_envelope, owned)
    except ValidationError as error:
        raise _refusal(owned, str(error)) from None


def _heard(owned: bytes) -> Message:
    envelope = _enveloped(owned)
    if envelope.id is None and isinstance(envelope.method, str) and envelope.method.startswith(_TELLS):
        envelope.id = UNSET
    if isinstance(envelope.id, float) and envelope.id.is_integer():
        envelope.id = int(envelope.id)
    return _message(envelope)


def _message(envelope: _Envelope) -> Message:
    id_ = envelope.id
    if isinstance(id_, float):
        raise NotJsonRpc("the id is written as a fraction")
    # Libraries that write every member they know of write null for those that a message does not have.
    if envelope.method is not UNSET and envelope.method is not None:
        params = envelope.params
        if params is UNSET or params is None:
            params = {}
        if id_ is UNSET:
            return Notification(envelope.method, params)
        if id_ is None:
            raise NotJsonRpc("the id of a request is null")
        return Request(id_, envelope.method, params)
    error = envelope.error
    # `error: null` beside a result, and the reverse, are the habit of JSON-RPC 1.0 libraries.
    if error is not UNSET and error is not None:
        if envelope.result is not UNSET and bytes(envelope.result) != b"null":
            raise NotJsonRpc("both a result and an error", None if id_ is UNSET else id_)
        data = None if error.data is UNSET else error.data
        if isinstance(error.code, float) and not error.code.is_integer():
            raise NotJsonRpc("the code is no integer", None if id_ is UNSET else id_)
        return Failure(None if id_ is UNSET else id_, int(error.code), error.message, data)
    if envelope.result is UNSET:
        raise NotJsonRpc("neither a method, nor a result, nor an error", None if id_ is UNSET else id_)
    if id_ is UNSET or id_ is None:
        raise NotJsonRpc("a result without an id")
    return Result(id_, envelope.result)


def _owned(data: bytes | bytearray | memoryview) -> bytes:
    """Immutable, since a `Raw` looks into it later; valid UTF-8, which no decoder checks inside a `Raw`."""
    owned = data if isinstance(data, bytes) else bytes(data)
    if not owned.isascii():
        try:
            owned.decode()
        except UnicodeDecodeError as error:
            raise NotJson(str(error)) from None
    return owned


def _read(decoder: Decoder[T], data: bytes | Raw, *, mend: bool = True) -> T:
    """Decode, or raise `NotJson`. `ValidationError` passes through: it means JSON of another shape."""
    try:
        return decoder.decode(data)
    except ValidationError:
        raise
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        mended = _without_half_characters(bytes(data)) if mend else None
        if mended is None:
            raise NotJson(str(error)) from None
    return _read(decoder, mended, mend=False)


def _without_half_characters(data: bytes) -> bytes | None:
    r"""The same JSON with U+FFFD for lone surrogates, or None if it has none.

    A JavaScript server that cuts a text in the middle of an emoji sends "\ud83d".
    That is JSON by its grammar and JavaScript clients read it, but our decoder
    does not; one such character must not lose a whole result. Bounded, because
    a body made of nothing else would buy half a second of our time.
    """
    if rb"\ud" not in data and rb"\uD" not in data:
        return None
    mended = _UP_TO_HALF_CHARACTER.sub(_whole, data, count=_MOST_HALF_CHARACTERS)
    return None if mended == data else mended


def _whole(run: re.Match[bytes]) -> bytes:
    text, half = run.groups()
    return text if half is None else text + rb"\ufffd"


def _refusal(data: bytes, text: str) -> NotJson | NotJsonRpc:
    """Why `data` is no message. The decoder stopped at the first wrong member: is the rest JSON at all?"""
    try:
        whole = _read(_syntax, data)
        return NotJsonRpc(text, _read(_id_only, whole).id)
    except NotJson as error:
        return error
    except ValidationError:
        return NotJsonRpc(text)
