"""The values of which authentication settings are made: header names, networks, key hashes. Knows no section."""

import re
from ipaddress import ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}", re.ASCII)
_HASH: Final = re.compile(r"(?:sha256:)?([0-9a-fA-F]{64})", re.ASCII)
_VALUE: Final = re.compile(r"[\x20-\x7e\x80-\xff]*")
_NEVER_SET: Final = frozenset(
    {"host", "connection", "content-length", "content-type", "transfer-encoding", "accept", "mcp-session-id",
     "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id"},
)  # fmt: skip


def header_name(value: str) -> str:
    """A header of which nothing else depends."""
    if not _TOKEN.fullmatch(value):
        raise ValueError("should be the name of a header")
    if value.lower() in _NEVER_SET:
        raise ValueError("is a header with a meaning of its own; choose another")
    return value


def header_value(value: SecretStr) -> SecretStr:
    """What may stand in a header line."""
    text = value.get_secret_value()
    if not text.strip() or not _VALUE.fullmatch(text):
        raise ValueError("should be a header value: one line, not empty, no control characters")
    return value


def api_key_hash(value: str) -> str:
    """The SHA-256 of a key, in lower case."""
    found = _HASH.fullmatch(value.strip())
    if found is None:
        raise ValueError("should be the SHA-256 of a key, 64 hex digits; `holdfast hash-key` prints one")
    return found[1].lower()


def network(value: str) -> str:
    """Addresses of peers: one, or a block."""
    try:
        return str(ip_network(value.strip()))
    except ValueError:
        raise ValueError("should be an address or a block of them, such as 10.1.0.0/16 or ::1") from None


def plain_name(value: str) -> str:
    """What may name a caller."""
    if not _NAME.fullmatch(value):
        raise ValueError("should be a name of letters, digits and . _ @ -")
    return value


def scope(value: str) -> str:
    """One scope (RFC 6749, 3.3)."""
    if not _SCOPE.fullmatch(value):
        raise ValueError("should be one scope: printable, without spaces, quotes and backslashes")
    return value


def secure_url(value: str) -> str:
    """A URL that nobody on the way can change: https, or http that does not leave this machine."""
    parts = urlsplit(value)
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme != "https" and not _is_loopback(host):
        raise ValueError("should be https, or http on loopback")
    return value


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
