"""Do the `Mcp-Param-*` headers of a call say what its arguments say? It knows no tool list and no HTTP.

Somebody on the way may have acted on the headers, and the server acts on the
arguments: one who makes them differ must not get through (basic/transports/
streamable-http, "Server Behavior for Custom Headers"). Values are compared as
clients write them, by what stands in the body, whatever type the schema says:
judging that is the server's business.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

from gateway.eras.param_headers import ParamHeader
from gateway.wire.headers import PARAM_PREFIX, HeaderUndecodable, decode_value
from gateway.wire.jsonrpc import NotJson, Raw, decode, decode_members

_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LARGEST_SAFE: Final = 2**53 - 1
"""TypeScript clients leave out the header of an integer beyond it: they could not write it exactly."""
_NO_LINES: Final[Sequence[str]] = ()


def disagreement(
    asked: Sequence[ParamHeader], arguments: Raw | None, lines: Mapping[str, Sequence[str]]
) -> str | None:
    """The first thing that is wrong, in words for the sender; None if nothing is.

    `lines` has the values of each header, by what follows `Mcp-Param-` in
    lower case. Headers that the tool does not ask for are nobody's business.
    """
    for header in asked:
        wrong = _wrong(_at(arguments, header.path), lines.get(header.name.lower(), _NO_LINES))
        if wrong is not None:
            return f"{PARAM_PREFIX}{header.name} {wrong} ({'.'.join(header.path)})"
    return None


def _wrong(value: Raw | None, lines: Sequence[str]) -> str | None:
    if len(lines) > 1:
        return "appears more than once"
    if value is None:
        return "is given, but its argument is not" if lines else None
    if not lines:
        return "is missing, but its argument is given" if _is_written(value) else None
    try:
        return None if _is_same(value, decode_value(lines[0])) else "does not match its argument"
    except (HeaderUndecodable, NotJson):  # either side may have bytes that are no text
        return "cannot be decoded"


def _at(arguments: Raw | None, path: Sequence[str]) -> Raw | None:
    """The value there; None if it is null, absent, or there is no way to it."""
    value = arguments
    for name in path:
        try:
            value = None if value is None else (decode_members(value) or {}).get(name)
        except NotJson:  # nested beyond reason: whoever reads it will say so
            return None
    return None if value is None or bytes(value) == b"null" else value


def _is_written(value: Raw) -> bool:
    """Whether every client writes a header for this value."""
    match bytes(value)[:1]:
        case b"{" | b"[":
            return False
        case b'"' | b"t" | b"f":
            return True
    number = _number(bytes(value).decode("ascii"))
    if number is None:
        return False
    return number.copy_abs() <= _LARGEST_SAFE or number != number.to_integral_value()


def _is_same(value: Raw, says: str) -> bool:
    match bytes(value)[:1]:
        case b"{" | b"[":
            return False  # no client writes these, so nothing that is written can be right
        case b'"':
            return bool(decode(value) == says)
        case b"t" | b"f":
            return bytes(value).decode("ascii") == says
    number = _number(bytes(value).decode("ascii"))
    return number is not None and number == _number(says)


def _number(text: str) -> Decimal | None:
    """Exact, however long; 42 and 42.0 are one number."""
    try:
        return Decimal(text) if _NUMBER.fullmatch(text) else None
    except InvalidOperation:  # an exponent that no computer holds
        return None
