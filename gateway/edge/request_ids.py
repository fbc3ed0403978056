"""Gives every response the id under which the log has its round, so that one can be found by the other.

It is in a header, so that what is in the body stays the server's own. What a
proxy before us has called the request is good enough for us, if it is an id:
then its log, ours and the client's speak of the same thing.
"""

import re
import secrets
from itertools import count
from typing import Final

from aiohttp import hdrs, web

from gateway.edge.cors import share
from gateway.wire import headers as names

_GIVEN: Final = "X-Request-Id"
_ID: Final = re.compile(r"[0-9A-Za-z_-]{8,64}")
"""Any UUID is one; nothing is that could be taken for more than one word of a line."""
_STEM: Final = secrets.token_hex(4)
_NUMBERS: Final = count(1)
"""An id is a name, not a secret: this process's own stem and a number cost no system call."""
_KEPT: Final = web.RequestKey("id", str)


def note_id(request: web.BaseRequest) -> None:
    """Give this request its id."""
    given = request.headers.get(_GIVEN)
    is_sane = given is not None and _ID.fullmatch(given)
    request[_KEPT] = given if is_sane and given else f"{_STEM}{next(_NUMBERS):08x}"


def id_of(request: web.BaseRequest) -> str | None:
    """What it was given."""
    return request.get(_KEPT)


def sign(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Write what belongs on every answer, before it is begun: its id, and leave to read it for a page that asked."""
    known = request.get(_KEPT)
    if known is not None:
        response.headers[names.REQUEST_ID] = known
    if hdrs.ORIGIN in request.headers:
        share(request, response)
