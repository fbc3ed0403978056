"""Names and value codecs of the HTTP headers that MCP uses. It does not know which request needs which.

A header carries visible ASCII only. Anything else travels as `=?base64?…?=`,
UTF-8 inside (2026-07-28, Streamable HTTP, "Value Encoding").
"""

import base64
import binascii
import re
from functools import lru_cache
from typing import Final

PROTOCOL_VERSION: Final = "MCP-Protocol-Version"
METHOD: Final = "Mcp-Method"
NAME: Final = "Mcp-Name"
PARAM_PREFIX: Final = "Mcp-Param-"
SESSION_ID: Final = "Mcp-Session-Id"
LAST_EVENT_ID: Final = "Last-Event-ID"
REQUEST_ID: Final = "Holdfast-Request-Id"
"""Ours, on responses: the id that the log line of the round has, too."""

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
"""Where a protected resource says where to log in (RFC 9728); its own path follows."""

JSON: Final = "application/json"
EVENT_STREAM: Final = "text/event-stream"

_BASE64_OPEN: Final = "=?base64?"
_BASE64_CLOSE: Final = "?="
_OWS: Final = " \t"
_PLAIN: Final = re.compile(r"[\t\x20-\x7e]*")
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
_FIELD_VALUE: Final = re.compile("[\t\x20-\x7e\x80-\ud7ff\ue000-\U0010ffff]*")
_ZERO_WEIGHT: Final = re.compile(r"q=0(?:\.0*)?", re.IGNORECASE)


class HeaderUndecodable(ValueError):
    """The value has characters that no header may carry, or is wrapped base64 that does not unwrap."""


def is_visible(text: str) -> bool:
    """Is it what a session id must be: visible ASCII, and not empty?"""
    return _VISIBLE.fullmatch(text) is not None


def is_field_value(text: str) -> bool:
    """Can it be written as a header's value? What a peer sent may hold control characters, or be no text at all."""
    return _FIELD_VALUE.fullmatch(text) is not None


@lru_cache(maxsize=256)  # names of tools, mostly
def decode_value(text: str) -> str:
    """What the sender meant by a header value.

    Strict, because the value is compared with the body: of two spellings of one
    value the one that our encoder would not write is refused (padding missing,
    stray bits or characters), so that nobody on the way reads it differently.

    Raises:
        HeaderUndecodable: See there.
    """
    value = text.strip(_OWS)
    if not _PLAIN.fullmatch(value):
        raise HeaderUndecodable("characters outside visible ASCII")
    if not _is_wrapped(value):
        return value
    payload = value[len(_BASE64_OPEN) : -len(_BASE64_CLOSE)]
    try:
        content = base64.b64decode(payload, validate=True)
        decoded = content.decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise HeaderUndecodable(f"not base64 of UTF-8: {type(error).__name__}") from None
    if base64.b64encode(content).decode("ascii") != payload:
        raise HeaderUndecodable("not canonical base64")
    return decoded


def encode_value(text: str) -> str:
    """The header value that `decode_value` reads as `text`: plain where possible."""
    if _PLAIN.fullmatch(text) and text == text.strip(_OWS) and not _is_wrapped(text):
        return text
    return f"{_BASE64_OPEN}{base64.b64encode(text.encode()).decode('ascii')}{_BASE64_CLOSE}"


def accepts_both(accept: str | None) -> bool:
    """Whether the caller takes JSON and an event stream, by name or wildcard. No header: neither."""
    ranges = {media_type(entry) for entry in (accept or "").split(",") if not _is_excluded(entry)}
    return not ranges.isdisjoint({JSON, "application/*", "*/*"}) and not ranges.isdisjoint(
        {EVENT_STREAM, "text/*", "*/*"}
    )


@lru_cache(maxsize=128)  # peers send the same few again and again
def media_type(content_type: str | None) -> str:
    """Type and subtype in lower case, without parameters; empty if there is no header."""
    return (content_type or "").partition(";")[0].strip(_OWS).lower()


def _is_wrapped(value: str) -> bool:
    # The length keeps the two markers from sharing their question mark.
    return (
        value.startswith(_BASE64_OPEN)
        and value.endswith(_BASE64_CLOSE)
        and len(value) >= len(_BASE64_OPEN) + len(_BASE64_CLOSE)
    )


def _is_excluded(media_range: str) -> bool:
    """`q=0` means "anything but this"."""
    return any(_ZERO_WEIGHT.fullmatch(parameter.strip(_OWS)) for parameter in media_range.split(";")[1:])
