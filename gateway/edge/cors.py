"""What lets a page in a browser read our answers (CORS). Whether the page may call at all is for `origins` to say.

A browser asks first (`OPTIONS`) whether a page of another origin may send a
POST with MCP's headers, and keeps every answer from the page that does not say
so. Only a page that may call is told anything. Nothing here lets a browser add
credentials of its own: a client of MCP sends its `Authorization` itself.
"""

import re
from collections.abc import Iterable
from typing import Final

from aiohttp import hdrs, web
from multidict import CIMultiDict

from gateway.wire import headers as names

ANYONE: Final = "*"
_PAGE: Final = web.RequestKey("page", str)
"""For whom the answer to this request is: an origin, or anyone."""
_RULES: Final = "access-control-"
_KEPT_SECONDS: Final = "600"
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_MOST_ECHOED: Final = 64

_SENT: Final = (
    hdrs.ACCEPT,
    hdrs.AUTHORIZATION,
    hdrs.CONTENT_TYPE,
    names.LAST_EVENT_ID,
    names.PROTOCOL_VERSION,
    names.SESSION_ID,
    names.METHOD,
    names.NAME,
)
"""What clients of either era send; beside them goes what the page asks for, `Mcp-Param-*` above all."""
_READ: Final = (
    f"{names.SESSION_ID}, {names.PROTOCOL_VERSION}, {names.REQUEST_ID}, "
    f"{hdrs.WWW_AUTHENTICATE}, {hdrs.RETRY_AFTER}"
)
"""What a client reads of an answer's headers."""


def is_question(request: web.BaseRequest) -> bool:
    """Is it a preflight: the browser that asks, before the page's own request?"""
    return request.method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers


def permission(requested: Iterable[str], *, verbs: str) -> web.Response:
    """The answer to a preflight.

    Args:
        requested: The lines of `Access-Control-Request-Headers`.
        verbs: The methods that are served.
    """
    known = {name.lower() for name in _SENT}
    wanted = (part.strip().lower() for line in requested for part in line.split(","))
    echoed = dict.fromkeys(name for name in wanted if _TOKEN.fullmatch(name) and name not in known)
    return web.Response(
        status=204,
        headers={
            hdrs.ACCESS_CONTROL_ALLOW_METHODS: verbs,
            hdrs.ACCESS_CONTROL_ALLOW_HEADERS: ", ".join([*_SENT, *list(echoed)[:_MOST_ECHOED]]),
            hdrs.ACCESS_CONTROL_MAX_AGE: _KEPT_SECONDS,
        },
    )


def note_page(request: web.BaseRequest, page: str) -> None:
    """This request comes from a page that may call; `page` is its origin, or `ANYONE`."""
    request[_PAGE] = page


def share(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Let the page read this response, if a page asked; before the response is begun."""
    page = request.get(_PAGE)
    if page is None:
        return
    lines = response.headers
    if not is_question(request):
        _drop_rules(lines)
        lines[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = _READ
    lines[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = page
    varied = [part.strip() for line in lines.getall(hdrs.VARY, []) for part in line.split(",")]
    if not {"*", "origin"} & {part.lower() for part in varied}:
        lines[hdrs.VARY] = ", ".join([*varied, hdrs.ORIGIN])


def _drop_rules(lines: CIMultiDict[str]) -> None:
    """An upstream's own rules know nothing of ours."""
    for name in {name.lower() for name in lines}:
        if name.startswith(_RULES):
            lines.popall(name)
