"""Recognises a tool that failed because its SDK saw that the client cannot be asked. It knows no exchange.

Before it asks, the SDK of many servers looks into the handshake, where they
find what the client declared, and lets the tool fail in words of its own. In
this revision that has an error of its own (basic/index, "Capabilities"), which
a client can act on. The words are those of the TypeScript, Go and Java SDKs; a
tool that says them on its own means the same, and so does one that says it with
the code of this revision, which servers know that speak both eras.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from gateway.eras.capabilities import normalise
from gateway.wire.jsonrpc import Failure, Raw

_WORDS: Final = re.compile(
    r"(?:MCP error -?\d+: |Error: )?"
    r"client (?:does not support|must be configured with) "
    r"(?:\"?(?P<mode>form|url)\"? )?(?:listing )?(?P<kind>elicitation|sampling|roots)(?P<tools> tools)?"
    r"(?: capability| capabilities)?(?: \(required for [\w/]+\))?\.?",
    re.IGNORECASE,
)
_LONGEST: Final = 1024
"""A result longer than this says more than that."""


class _Words(Struct):
    text: str


class _ToolResult(Struct):
    content: list[_Words]
    isError: bool = False  # noqa: N815 - the protocol's spelling


class _Missing(Struct):
    requiredCapabilities: dict[str, dict[str, Any]]  # noqa: N815 - the protocol's spelling


_RESULT: Final = Decoder(_ToolResult)
_MISSING: Final = Decoder(_Missing)
_CAPABILITY_MISSING: Final = -32021


def unmet_by_result(result: Raw, declared: Mapping[str, Any]) -> dict[str, Any] | None:
    """The capabilities for want of which the tool failed; None if that is not what its result says."""
    if memoryview(result).nbytes > _LONGEST or b'"isError"' not in bytes(result):
        return None
    try:
        tool = _RESULT.decode(result)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not tool.isError or len(tool.content) != 1:
        return None
    return unmet_by_words(tool.content[0].text, declared)


def unmet_by_failure(failure: Failure, declared: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same for a call that failed with an error, whose code or whose words may say so."""
    if failure.code != _CAPABILITY_MISSING:
        return unmet_by_words(failure.message, declared)
    if failure.data is None or memoryview(failure.data).nbytes > _LONGEST:
        return None
    try:
        required = _MISSING.decode(failure.data).requiredCapabilities
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    has = normalise(declared)
    unmet = {
        kind: parts for kind, parts in required.items() if kind not in has or parts.keys() - has[kind].keys()
    }
    return unmet or None


def unmet_by_words(words: str, declared: Mapping[str, Any]) -> dict[str, Any] | None:
    """The capabilities that the server misses, as `requiredCapabilities` wants them; None if it misses none.

    A server that misses what this client did declare is wrong, and its own words are the better answer.
    """
    said = _WORDS.fullmatch(words.strip()) if len(words) <= _LONGEST else None
    if said is None:
        return None
    kind = said["kind"].lower()
    detail = (said["mode"] or "form").lower() if kind == "elicitation" else "tools" if said["tools"] else None
    has = normalise(declared).get(kind)
    if has is not None and (detail is None or detail in has):
        return None
    return {kind: {} if detail is None else {detail: {}}}
