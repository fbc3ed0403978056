"""Which pages a server may send a user to: https anywhere, http on the user's own machine. It opens none of them.

The address is shown to a user, who opens it in a browser. `javascript:`, `data:`
and `file:` would run or read something there; a user name before the host, a
backslash or an invisible character makes an address look like another one.
"""

import ipaddress
import re
from typing import Any, Final
from urllib.parse import urlsplit

from gateway.eras.asks import URL_ELICITATION_REQUIRED, as_object
from gateway.eras.vocabulary import Ask, Kind
from gateway.wire.jsonrpc import Failure, NotJson, decode

REFUSAL: Final = "The page's address is not allowed: it must be https, or http on loopback, and plain to read"

_LONGEST: Final = 8192
_PLAIN: Final = re.compile(r"[a-z]+://[^\s\\\x00-\x1f\x7f]+", re.IGNORECASE)
_HOST: Final = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")
_INVISIBLE: Final = re.compile(
    "[\x80-\xa0\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff]"
)


def is_safe(url: Any) -> bool:
    """May a user be sent there?"""
    if not isinstance(url, str) or len(url) > _LONGEST or not _PLAIN.fullmatch(url) or _INVISIBLE.search(url):
        return False
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port  # a port that is no number is an error too
    except ValueError:
        return False
    authority = parts.netloc.removesuffix(f":{parts.port}") if parts.port is not None else parts.netloc
    if not host or not _HOST.fullmatch(authority):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))


def has_unsafe_page(ask: Ask) -> bool:
    """Does it send the user where nobody should go? Whatever its `mode` says: some clients look at `url` alone."""
    if ask.kind is not Kind.ELICITATION or "url" not in ask.params:
        return False
    try:
        url = decode(ask.params["url"])
    except NotJson:
        return True
    return url is not None and not is_safe(url)


def without_unsafe_pages(failure: Failure) -> Failure:
    """The failure; one that lists an unsafe page is told in our own words, without the page."""
    if failure.code != URL_ELICITATION_REQUIRED:
        return failure
    listed = as_object(failure.data).get("elicitations")
    pages = [item.get("url") for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    if all(is_safe(page) for page in pages):
        return failure
    return Failure(failure.id, -32603, REFUSAL, None)


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
