"""Removes from every log line what must not be seen; it knows neither who logs nor where lines go.

Three nets, because each alone has holes: a value under a telling *name* is
dropped whole; a value of a type that may carry a payload (bytes, objects) is
replaced by its kind; what is left is text, and text loses whatever looks like a
credential. An unforeseen exception keeps its type and place, but its text only
where the type cannot quote a payload: `ValueError` does, `TypeError` does not.
"""

import re
import traceback
from collections.abc import Iterable, Mapping, MutableMapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from pathlib import PurePath
from types import TracebackType
from typing import Any, Final, TypeAlias

from gateway.errors import GatewayError

Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain] | None"

REDACTED: Final = "[redacted]"
MAX_TEXT: Final = 1024
_NUMBERS: Final = frozenset({int, float, bool, type(None)})
_MAX_ITEMS: Final = 50
_MAX_DEPTH: Final = 5
_MAX_FRAMES: Final = 25
_MAX_CAUSES: Final = 4
_SHORTEST_KNOWN: Final = 8

# Compared in lower case and without separators: `Set-Cookie`, `set_cookie` and `setCookie` are one name.
_TELLING: Final = (
    "secret", "token", "password", "passwd", "passphrase", "key", "credential", "authorization",
    "cookie", "requeststate", "inputresponse", "answer", "argument", "sessionid", "mcpparam",
)  # fmt: skip
_TELLING_WHOLE: Final = frozenset(
    {"content", "contents", "structuredcontent", "params", "result", "body", "payload", "journal", "text",
     "ticket", "auth", "principal", "inputrequests", "messages", "meta"},
)  # fmt: skip
# These name a thing and are not the thing.
_HARMLESS: Final = frozenset({"keyid", "keyids", "inputkey", "inputkeys"})

_SEPARATORS: Final = re.compile(r"[^a-z0-9]+")
# Names, versions, ids: most strings that are ever logged, let through at the price of one match.
_is_plain: Final = re.compile(r"[\w/.-]{0,79}").fullmatch
_SCRUBS: Final = (
    # userinfo of any URL, and whatever follows a question mark without a space, which is how queries look
    (re.compile(r"(://)[^/\s@]*@"), rf"\1{REDACTED}@"),
    (re.compile(r"(?<=\S)\?[^\s'\"]+"), f"?{REDACTED}"),
    # a telling name with a value: nobody knows where the value ends, so the line ends here
    (
        re.compile(
            r"(?i)(authorization|cookie|api[-_]?key|secret|token|passw(?:or)?d|passphrase|credentials?"
            r"|session[-_]?id|mcp-param-[\w-]{1,64}+|request_?state|input_?responses?|answers?|arguments"
            r"|(?:structured_?)?content)(['\"]?\s*[:=])[^\r\n]*",
        ),
        rf"\1\2 {REDACTED}",
    ),
    (re.compile(r"(?i)\b(bearer|basic|digest|negotiate)\s+[\w.~+/=-]{6,}"), rf"\1 {REDACTED}"),
    # a JWT, a ticket, a key: long enough that neither a name nor a SHA-256 is meant
    (re.compile(r"\beyJ[\w-]{6,}\.[\w-]+(?:\.[\w-]*)?"), REDACTED),
    (re.compile(r"[\w-]{80,}"), REDACTED),
)

# Their text is made of our own words, of type names, or of addresses.
_SAFE_TEXT: Final = (
    GatewayError, AssertionError, TypeError, AttributeError, NameError, ImportError, OSError, MemoryError,
    RuntimeError, StopIteration, StopAsyncIteration,
)  # fmt: skip
_SAFE_TEXT_MODULES: Final = ("aiohttp.client",)


@lru_cache(maxsize=1024)
def is_sensitive(name: str) -> bool:
    """Whether a value under this name is dropped whole."""
    bare = _SEPARATORS.sub("", name.lower())
    if bare in _HARMLESS:
        return False
    return bare in _TELLING_WHOLE or any(word in bare for word in _TELLING)


def scrub(text: str) -> str:
    """Text without what looks like a credential or a payload, and of bounded length."""
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT - 40]}… ({len(text)} characters)"
    if _is_plain(text) and "eyJ" not in text:
        return text
    for pattern, replacement in _SCRUBS:
        text = pattern.sub(replacement, text)
    return text


class Blackout:
    """Takes these very values out of text, also where they look like nothing: what we know need not be guessed."""

    __slots__ = ("_known",)

    def __init__(self, secrets: Iterable[str]) -> None:
        # Line by line, as logs are; the longest first, for one may begin another. Short ones are words of the language.
        parts = {part.strip() for secret in secrets for part in secret.splitlines()}
        kept = sorted((part for part in parts if len(part) >= _SHORTEST_KNOWN), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, kept))) if kept else None

    def __call__(self, text: str) -> str:
        """The text without them."""
        return text if self._known is None else self._known.sub(REDACTED, text)


def describe(error: BaseException) -> dict[str, Plain]:
    """An exception as type, place and causes; its text only where that cannot quote a payload."""
    facts = _describe_one(error)
    causes: list[Plain] = []
    seen = {id(error)}
    current = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while current is not None and id(current) not in seen and len(causes) < _MAX_CAUSES:
        seen.add(id(current))
        causes.append(_describe_one(current))
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    if causes:
        facts["causes"] = causes
    return facts


def _describe_one(error: BaseException) -> dict[str, Plain]:
    kind = type(error)
    facts: dict[str, Plain] = {"type": kind.__qualname__}
    if isinstance(error, _SAFE_TEXT) or kind.__module__.startswith(_SAFE_TEXT_MODULES):
        # Parsers put the offending line below their first one.
        text = str(error).strip().partition("\n")[0]
        if text:
            facts["text"] = scrub(text)
    if isinstance(error, BaseExceptionGroup):
        facts["group"] = [_describe_one(each) for each in error.exceptions[:_MAX_CAUSES]]
    frames = _frames(error.__traceback__)
    if frames:
        facts["frames"] = frames
    return facts


def _frames(trace: TracebackType | None) -> list[Plain]:
    # No source lines: they are in the repository, and looking them up reads files in the middle of a round.
    places: list[Plain] = [
        f"{_short(frame.f_code.co_filename)}:{line} {frame.f_code.co_name}"
        for frame, line in traceback.walk_tb(trace)
    ]
    return places[-_MAX_FRAMES:]


def _short(filename: str) -> str:
    """The last parts of a path: enough to find the file, silent about the machine."""
    return "/".join(PurePath(filename).parts[-3:])


def redact_value(value: object, depth: int = 0) -> Plain:
    """A value as plain data without secrets, whatever was handed in."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return scrub(value)
        case bytes() | bytearray() | memoryview():
            return f"[{len(value)} bytes]"
        case BaseException():
            return describe(value)
        case PurePath():
            return scrub(str(value))
        case Mapping() | list() | tuple() | AbstractSet() if depth >= _MAX_DEPTH:
            return "[deep]"
        case Mapping():
            return {
                scrub(str(name)): REDACTED if is_sensitive(str(name)) else redact_value(member, depth + 1)
                for name, member in list(value.items())[:_MAX_ITEMS]
            }
        case list() | tuple() | AbstractSet():
            return [redact_value(member, depth + 1) for member in list(value)[:_MAX_ITEMS]]
        case _:
            # Settings, secrets, structs, raw JSON: their repr is not ours to trust.
            return f"<{type(value).__name__}>"


def redact(_logger: object, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The structlog processor: every member of every line passes here, just before it is written."""
    for name, value in line.items():
        if is_sensitive(name):
            line[name] = REDACTED
        elif isinstance(value, str):
            if not _is_plain(value) or "eyJ" in value:
                line[name] = scrub(value)
        elif type(value) not in _NUMBERS:
            line[name] = redact_value(value)
    return line
