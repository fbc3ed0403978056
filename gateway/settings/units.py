"""Parses durations, sizes, addresses and URLs as people write them. Knows no file, no model and no default.

Every refusal is a `ValueError` whose text never repeats the value: it may have
come from the environment, and it may be a secret in the wrong place.
"""

import math
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

DURATION_PATTERN: Final = r"^(\d+(\.\d+)?(ms|s|m|h|d))+$"
SIZE_PATTERN: Final = r"^\d+(\.\d+)? ?(B|kB|KB|MB|GB|KiB|MiB|GiB)$"
ADDRESS_PATTERN: Final = r"^(\[[0-9A-Fa-f:.]+\]|[^:\s/\[\]]+):\d{1,5}$"

_NUMBER: Final = re.compile(r"\d+(\.\d+)?", re.ASCII)
_DURATION: Final = re.compile(DURATION_PATTERN, re.ASCII)
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]+)", re.ASCII)
_BYTES: Final = {
    "B": 1,
    "kB": 1000,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
}
_ADDRESS: Final = re.compile(ADDRESS_PATTERN, re.ASCII)
_LONGEST_DURATION: Final = (
    366 * 86400.0
)  # past it event loops and clocks begin to overflow, and nobody means it


@dataclass(frozen=True, slots=True)
class Address:
    """Where a listener binds. Port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_duration(value: object) -> float:
    """Return seconds: `50ms`, `10s`, `10m`, `1h`, `1h30m`, `1d`, or a number of seconds."""
    wrong = ValueError("should be a duration such as 50ms, 10s, 5m or 1h, or a number of seconds")
    match value:
        case bool():
            raise wrong
        case int() | float():
            # It may be more than a float can hold.
            seconds = float(max(-1, min(value, _LONGEST_DURATION + 1)))
        case str() if _NUMBER.fullmatch(value):
            seconds = float(value)
        case str() if _DURATION.fullmatch(value):
            seconds = sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(value))
        case _:
            raise wrong
    if math.isnan(seconds) or seconds < 0:
        raise wrong
    if seconds > _LONGEST_DURATION:
        raise ValueError("should be at most 366 days")
    return seconds


RATE_PATTERN: Final = r"^\s*\d+(\.\d+)?\s*/\s*(s|m|h)\s*$"
_PER: Final = {"s": 1.0, "m": 60.0, "h": 3600.0}


def parse_rate(value: object) -> float:
    """`50/s`, `600/m` or `1000/h` as requests per second."""
    text = value if isinstance(value, str) else ""
    number, _, unit = text.partition("/")
    is_written = re.fullmatch(RATE_PATTERN, text, re.ASCII) is not None
    if not is_written or not 0 < (rate := float(number) / _PER[unit.strip()]) < math.inf:
        raise ValueError("should be a rate such as 50/s, 600/m or 1000/h")
    return rate


def parse_size(value: object) -> int:
    """Return bytes: `4MiB`, `512KiB`, `1GB`, or a whole number of bytes."""
    wrong = ValueError("should be a size such as 512KiB or 4MiB, or a whole number of bytes")
    match value:
        case bool():
            raise wrong
        case int() if value > 0:
            return value
        case str() if (match := _SIZE.fullmatch(value)) and match[2] in _BYTES:
            written = float(match[1]) * _BYTES[match[2]]
            size = int(written) if math.isfinite(written) else 0
        case str() if value.isascii() and value.isdecimal():
            size = int(value)
        case _:
            raise wrong
    if size <= 0:
        raise wrong
    return size


def parse_address(value: object) -> Address:
    """Read `HOST:PORT`; an IPv6 host is in brackets."""
    if isinstance(value, Address):
        return value
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
        raise ValueError("should be HOST:PORT, such as 127.0.0.1:8080, [::1]:8080 or 0.0.0.0:8080")
    host, _, port = value.rpartition(":")
    if int(port) > 65535:
        raise ValueError("the port should be at most 65535")
    return Address(host.strip("[]"), int(port))


def parse_http_url(value: object) -> str:
    """Accept the URL of a server as it stands, or say what is wrong with it."""
    wrong = ValueError("should be an http:// or https:// URL with a host")
    if not isinstance(value, str) or not value.isprintable() or " " in value or "\\" in value:
        raise wrong
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise wrong
    _refuse_url_extras(parts)
    return value


def _refuse_url_extras(parts: SplitResult) -> None:
    if parts.username is not None or parts.password is not None:
        # It would be sent by some HTTP clients, dropped by others, and shown by every log.
        raise ValueError("should not have a user name or password in the URL")
    if parts.fragment:
        raise ValueError("should not have a #fragment")
