"""A legacy server's JSON-RPC error as a modern one, and the HTTP status of any. It knows no transport.

2026-07-28 keeps -32020 to -32099 for itself and forbids -32002 and -32042
(basic/index, "Error Codes"); what legacy servers meant by them is said with the
standard codes. The HTTP status follows from the code alone: TypeScript clients
read an error's body only at 200 and 400, so 404 is kept for the one code that
must have it.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from msgspec.json import Decoder

from gateway.eras.shapes import LARGEST_SAFE, NULL, fits
from gateway.wire.jsonrpc import Failure, NotJson, Params, Raw, decode_members

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
_RESOURCE_NOT_FOUND: Final = -32002

_STATUS: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    -32020: 400,
    -32021: 400,
    -32022: 400,
    METHOD_NOT_FOUND: 404,
}

_TARGETED: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Methods of which legacy servers say "not found" when they mean the tool, prompt or resource."""

_SDK_PREFIX: Final = re.compile(r"^MCP error -?\d+: ")
_BAD_PARAMS: Final = re.compile(r"^(unknown (tool|prompt|resource)|missing required argument)", re.IGNORECASE)
"""How the Python SDK words what has code 0 there, as has every other exception."""

_TEXT: Final = Decoder(str)


@dataclass(frozen=True, slots=True)
class ModernFailure:
    """An error as the client gets it."""

    code: int
    message: str
    data: Any
    """None if there is none; may hold `Raw`."""
    http_status: int


def http_status(code: int) -> int:
    """The status of a response that carries this error. A failed call is not a failed gateway: 200."""
    return _STATUS.get(code, 200)


def to_modern_failure(failure: Failure, *, method: str, params: Params) -> ModernFailure:
    """The upstream's answer to `method` with `params`, in the words of this revision."""
    code = _modern_code(failure, method, params)
    data: Any = None if failure.data is None or failure.data == NULL else failure.data
    if code == INVALID_PARAMS and method == "resources/read":
        data = _with(data, "uri", params.get("uri"))
    if failure.code not in {code, _RESOURCE_NOT_FOUND}:
        data = _with(data, "upstreamCode", failure.code)
    return ModernFailure(code, failure.message or "The upstream server failed", data, http_status(code))


def _modern_code(failure: Failure, method: str, params: Params) -> int:
    if failure.code == _RESOURCE_NOT_FOUND:
        return INVALID_PARAMS
    # Also those that this revision defines: a legacy server cannot have meant them, and clients act on them.
    if -32099 <= failure.code <= -32020:
        return INTERNAL_ERROR
    if abs(failure.code) > LARGEST_SAFE:  # TypeScript clients pass over such an answer, and wait on
        return INTERNAL_ERROR
    message = _SDK_PREFIX.sub("", failure.message)
    if "cursor" in params and method.endswith("/list") and _is_about_cursor(failure.code, message):
        return INVALID_PARAMS
    if failure.code == 0:
        return INVALID_PARAMS if _BAD_PARAMS.match(message) else INTERNAL_ERROR
    if failure.code == METHOD_NOT_FOUND and method in _TARGETED and not _names_method(message, method):
        return INVALID_PARAMS
    return failure.code


def _is_about_cursor(code: int, message: str) -> bool:
    """Servers that cannot read a cursor stumble over it; Python ones say code 0 to that and nothing of the cursor."""
    return code == 0 or (code == INTERNAL_ERROR and "cursor" in message.lower())


def _names_method(message: str, method: str) -> bool:
    """Whether it is the method itself that the server does not have."""
    return message.lower().startswith("method not found") or method in message


def _with(data: Any, name: str, value: Any) -> Any:
    """The error data with one more member, if it is an object or nothing yet; what is there already stays."""
    if value is None or (isinstance(value, Raw) and not fits(_TEXT, value)):
        return data
    if data is None:
        return {name: value}
    try:
        members = decode_members(data) if isinstance(data, Raw) else data
    except NotJson:  # too deep to be taken apart; as it is it can be carried
        return data
    return data if not isinstance(members, dict) else {name: value, **members}
