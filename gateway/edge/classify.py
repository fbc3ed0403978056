"""Whose request is this, and may it go on? Headers and body in, one verdict out; no IO, no clock, no log.

`classify` is a ladder; the first rung that fails is the answer. The numbers in
brackets are the points of 2026-07-28 in tests/requirements.py.

    1  the body is declared as plain JSON                  415
    2  it is one JSON-RPC request or notification [7, 8]   400 -32700, -32600
    3  a notification needs no more [8]                    202
    4  a legacy client speaks legacy                       -> Legacy
    5  both kinds of reply are accepted [6]                406
    6  routing headers come once each [9]                  400 -32020
    7  `_meta` has what every request must carry [10]      400 -32602
    8  MCP-Protocol-Version says what `_meta` says [11]    400 -32020
    9  Mcp-Method says what the body says [12]             400 -32020
    10 Mcp-Name says what the parameters say [13]          400 -32020
    11 the revision is one that we serve [14]              400 -32022
    12 the method is one that we serve [15]                404 -32601
    13 what we read ourselves can be read [16, 31]         400 -32602

Accept stands after the body, because a notification has no header requirements
and because a refusal should name the request that it refuses.

Legacy (rung 4) is who shows nothing of the modern era, neither its version nor a
key in `_meta`, and something of the legacy one: `initialize`, a legacy version
header, or a session id without any version header. Mcp-Method shows nothing:
some of them send it. Whoever shows both is a modern client that contradicts
itself, and is told so later. Legacy ones are handed on before the first rung.
"""

from collections.abc import Container
from functools import lru_cache
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct

from gateway.edge.request_meta import (
    RequestMeta,
    client_info,
    log_level,
    meta_of,
    plain_value,
    progress_token,
    required,
)
from gateway.errors import (
    GatewayError,
    HeaderMismatch,
    InvalidParams,
    InvalidRequest,
    MalformedJson,
    MethodNotFound,
    NotAcceptable,
    UnsupportedMediaType,
    UnsupportedVersion,
)
from gateway.wire import headers as names
from gateway.wire.headers import HeaderUndecodable, accepts_both, decode_value, media_type
from gateway.wire.jsonrpc import (
    Id,
    Notification,
    NotJson,
    NotJsonRpc,
    Params,
    Request,
    parse,
    without_nulls,
)
from gateway.wire.versions import (
    META_PROTOCOL_VERSION,
    MODERN,
    MODERN_VERSIONS,
    is_legacy,
    is_modern,
)

_NAMED_BY: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The parameter that Mcp-Name repeats, for the methods that have one."""
_MAY_BE_NULL: Final = ("arguments", "context", "cursor", "inputResponses", "requestState")
"""What a client may have none of. Some write null then, and servers of this revision take that as they mean it."""
_META_VERSION: Final = f"_meta {META_PROTOCOL_VERSION}"
_BEFORE_THE_HEADER: Final = "2025-03-26"
"""What a request without a version header is taken for (streamable-http, "Protocol Version Header")."""
_NONE: Final[list[str]] = []
# A client sends the same of these with every request.
_takes_both: Final = lru_cache(maxsize=64)(accepts_both)


class Headers(Protocol):
    """The part of a multidict that is needed here. Names must compare without regard to case."""

    def getall(self, key: str, default: list[str], /) -> list[str]:
        """All lines of this name, in order."""


class Modern(Struct, frozen=True):
    """A well-formed request of this revision, complete in itself."""

    id: Id
    method: str
    params: Params
    meta: Params
    name: str | None
    """The tool, prompt or URI it is about, for methods that have one."""
    capabilities: dict[str, Any]
    client_info: dict[str, Any] | None
    log_level: str | None
    progress_token: Id | None


class Accepted(Struct, frozen=True):
    """A notification: 202, and no more is said."""

    method: str


class Legacy(Struct, frozen=True):
    """From a client that knows only the handshake and sessions."""

    id: Id | None
    method: str | None
    """None: it is no single request."""
    requested: str
    """The revision it speaks or asks for."""

    def refusal(self) -> "Refusal":
        """How a gateway that serves no legacy clients answers: dual-era clients then try the modern way."""
        return Refusal(UnsupportedVersion(self.requested, MODERN_VERSIONS), self.id)


class Refusal(Struct, frozen=True):
    """The request goes no further."""

    error: GatewayError
    id: Id | None
    """The request's own id, if it could be read."""


Verdict: TypeAlias = Modern | Accepted | Legacy | Refusal


def classify(
    headers: Headers, body: bytes, *, served_methods: Container[str], passes_legacy: bool = False
) -> Verdict:
    """Climb the ladder.

    Args:
        headers: Of the POST.
        body: Its whole body.
        served_methods: Those that the endpoint implements.
        passes_legacy: Legacy clients are handed on: what they post, whatever it is, is not ours to judge.
    """
    # Whoever names our revision is no legacy client, whatever else it says: nearly all do, and need not be asked more.
    is_ours = MODERN in headers.getall(names.PROTOCOL_VERSION, _NONE)
    if passes_legacy and not is_ours and (legacy := _passing(headers, body)) is not None:
        return legacy
    if not _is_json(headers):
        return Refusal(UnsupportedMediaType(), None)
    if not _is_plain(headers):
        return Refusal(UnsupportedMediaType(detail="The request body must not be compressed"), None)
    try:
        message = parse(body)
    except NotJson as error:
        return Refusal(MalformedJson(str(error)), None)
    except NotJsonRpc as error:
        return Refusal(InvalidRequest(str(error)), error.id)
    match message:
        case Notification():
            return Accepted(message.method)
        case Request():
            pass
        case _:
            # Its id is one of ours, not one under which this client waits for an answer.
            return Refusal(InvalidRequest(detail="A client may send only requests and notifications"), None)
    try:
        meta = meta_of(message.params)
        legacy = None if is_ours else _legacy(headers, message, meta)
        return legacy or _climb(headers, message, meta, served_methods)
    except (HeaderMismatch, InvalidParams, MethodNotFound, NotAcceptable, UnsupportedVersion) as error:
        return Refusal(error, message.id)


def is_legacy_visit(headers: Headers, verb: str) -> bool:
    """Whether a GET or DELETE is a legacy client's: modern ones send neither."""
    versions = headers.getall(names.PROTOCOL_VERSION, _NONE)
    if headers.getall(names.METHOD, _NONE) or any(is_modern(version.strip()) for version in versions):
        return False
    if verb == "DELETE":
        return bool(versions or headers.getall(names.SESSION_ID, _NONE))
    accepted = (media_type(part) for line in headers.getall("Accept", _NONE) for part in line.split(","))
    return verb == "GET" and (bool(headers.getall(names.SESSION_ID, _NONE)) or names.EVENT_STREAM in accepted)


def _passing(headers: Headers, body: bytes) -> Legacy | None:
    """What a legacy client posted, if it is one: a request, a notification, an answer, a batch, or nonsense.

    Besides those of rung 4, who shows nothing of either era: a client of 2025-03-26 and a server without sessions.
    """
    versions = [version.strip() for version in headers.getall(names.PROTOCOL_VERSION, _NONE)]
    has_session = bool(headers.getall(names.SESSION_ID, _NONE))
    methods = headers.getall(names.METHOD, _NONE)
    may_be = len(methods) < 2 and (has_session or all(map(is_legacy, versions)))
    if not may_be or any(map(is_modern, versions)):
        return None
    try:
        message = parse(body)
    except (NotJson, NotJsonRpc):
        message = None
    if isinstance(message, Request):
        meta = meta_of(message.params)
        if meta is not None and meta.is_modern:
            return None
        if message.method == "initialize" and not versions:
            return _legacy(headers, message, meta)
        if methods and not (versions or has_session):
            return None
        return Legacy(message.id, message.method, versions[0] if versions else _BEFORE_THE_HEADER)
    spoken = versions[0] if versions else _BEFORE_THE_HEADER
    return Legacy(None, None, spoken) if versions or has_session else None


def _climb(headers: Headers, request: Request, meta: RequestMeta | None, served: Container[str]) -> Modern:
    """Rungs 5 to 13."""
    if not _takes_both(", ".join(headers.getall("Accept", _NONE))):
        raise NotAcceptable
    version_line = _only(headers, names.PROTOCOL_VERSION)
    method_line = _only(headers, names.METHOD)
    name_line = _only(headers, names.NAME)
    if meta is None:
        raise InvalidParams(detail="params._meta must be an object")
    version, capabilities = required(meta)
    _compare(version_line, version, names.PROTOCOL_VERSION, _META_VERSION)
    _compare(method_line, request.method, names.METHOD, "method")
    name = _compare_name(name_line, request)
    if not is_modern(version):
        raise UnsupportedVersion(version, MODERN_VERSIONS)
    if request.method not in served:
        raise MethodNotFound(request.method)
    if name is None and request.method in _NAMED_BY:
        raise InvalidParams(detail=f"params.{_NAMED_BY[request.method]} must be a string")
    return Modern(
        id=request.id,
        method=request.method,
        params=without_nulls(request.params, _MAY_BE_NULL),
        meta=meta.members,
        name=name,
        capabilities=capabilities,
        client_info=client_info(meta),
        log_level=log_level(meta),
        progress_token=progress_token(meta),
    )


def _is_json(headers: Headers) -> bool:
    """Anything else a browser may send across origins without asking first."""
    types = headers.getall("Content-Type", _NONE)
    return len(types) == 1 and media_type(types[0]) == names.JSON


def _is_plain(headers: Headers) -> bool:
    return all(value.strip().lower() == "identity" for value in headers.getall("Content-Encoding", _NONE))


def _legacy(headers: Headers, request: Request, meta: RequestMeta | None) -> Legacy | None:
    """Rung 4: the request as a legacy client's, if that is what it is."""
    if len(headers.getall(names.METHOD, _NONE)) > 1 or (meta is not None and meta.is_modern):
        return None
    versions = headers.getall(names.PROTOCOL_VERSION, _NONE)
    if versions:
        speaks_legacy = all(is_legacy(version.strip()) for version in versions)
        return Legacy(request.id, request.method, versions[0].strip()) if speaks_legacy else None
    if request.method == "initialize":
        wanted = plain_value(request.params, "protocolVersion")
        return Legacy(request.id, request.method, wanted if isinstance(wanted, str) else _BEFORE_THE_HEADER)
    if headers.getall(names.SESSION_ID, _NONE):
        return Legacy(request.id, request.method, _BEFORE_THE_HEADER)
    return None


def _only(headers: Headers, header: str) -> str | None:
    """Rung 6; the header's one line, if there is one."""
    lines = headers.getall(header, _NONE)
    if len(lines) > 1:
        raise HeaderMismatch(detail=f"{header} appears more than once")
    return lines[0] if lines else None


def _compare(line: str | None, expected: str, header: str, source: str) -> None:
    """Rungs 8 and 9. Header values are compared by case, header names are not."""
    if line is None:
        raise HeaderMismatch(detail=f"{header} is missing")
    if line.strip(" \t") != expected:
        raise HeaderMismatch(detail=f"{header} does not match {source}")


def _compare_name(line: str | None, request: Request) -> str | None:
    """Rung 10; the name, if the method has one and it is a string."""
    parameter = _NAMED_BY.get(request.method)
    if parameter is None:
        return None
    named = plain_value(request.params, parameter)
    name = named if isinstance(named, str) else None
    if line is None:
        if name is not None:
            raise HeaderMismatch(detail=f"{names.NAME} is missing")
        return None
    try:
        says = decode_value(line)
    except HeaderUndecodable as error:
        raise HeaderMismatch(str(error), detail=f"{names.NAME} cannot be decoded") from None
    if says != name:
        raise HeaderMismatch(detail=f"{names.NAME} does not match params.{parameter}")
    return name
