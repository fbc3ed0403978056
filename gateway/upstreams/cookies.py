"""Cookies of one session: what a server sets, it is shown again in the same session, and nobody else is.

Balancers in front of legacy servers keep a session on one replica by a cookie. Browsers' rules are not needed:
everything goes to one origin, and the session ends before anything in it could expire.
"""

from collections.abc import Iterable, MutableMapping
from typing import Final

from aiohttp import hdrs

from gateway.wire.headers import is_field_value

_MOST: Final = 32
_LONGEST: Final = 4096
"""Characters, of all of them together: they are sent with every request."""


def keep(lines: Iterable[str], headers: MutableMapping[str, str]) -> None:
    """Show the server from now on what these lines of `Set-Cookie` say."""
    shown = dict(_pairs(headers.get(hdrs.COOKIE, "").split(";")))
    for line in lines:
        pair, *attributes = line.split(";")
        for name, value in _pairs([pair]):
            shown.pop(name, None)
            if not any(attribute.strip().lower() == "max-age=0" for attribute in attributes):
                shown[name] = value
    written = "; ".join(f"{name}={value}" for name, value in shown.items())
    if not shown:
        headers.pop(hdrs.COOKIE, None)
    elif len(shown) <= _MOST and len(written) <= _LONGEST and is_field_value(written):
        headers[hdrs.COOKIE] = written


def _pairs(parts: Iterable[str]) -> Iterable[tuple[str, str]]:
    for part in parts:
        name, equals, value = part.strip().partition("=")
        if name and equals:
            yield name, value
