"""Which arguments of tools clients must repeat in `Mcp-Param-*` headers, as each caller was told. It knows no HTTP.

The index is filled by the tool lists that pass by. It asks for a list itself
only where it must: once, when a call comes and nobody was ever told one, and
for a caller who sends `Mcp-Param-*` headers that it cannot place. Legacy
servers hardly ever annotate anything, so what matters most is that such a
server costs nothing: one complete list without annotations, whoever got it, and
calls without such headers are not looked at any more.

Lists may differ from caller to caller, so each caller has an own one. A server
may change its list without a word, and another replica may have told the
client a newer one: nobody is refused because of a list that is not fresh.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from gateway.eras.param_headers import ParamHeader, of_tools
from gateway.eras.param_match import disagreement
from gateway.errors import GatewayError, HeaderMismatch, UpstreamFault, UpstreamTimedOut
from gateway.relay.listener import Reply
from gateway.relay.request import ClientRequest
from gateway.upstreams.background import Background
from gateway.upstreams.pool import Caller
from gateway.wire.jsonrpc import NotJson, Raw, decode

METHOD: Final = "tools/list"

_MOST_CALLERS: Final = 1024
_MOST_PAGES: Final = 256
_FRESH_SECONDS: Final = 5.0
"""A list this young is believed even where it means refusing a call."""
_PATIENCE_SECONDS: Final = 5.0
"""How long a call that claims nothing waits for a list; then it goes on, and the list comes when it comes."""
_METHOD_NOT_FOUND: Final = -32601
_NO_TOOLS: Final[Mapping[str, Any]] = {"tools": Raw(b"[]")}


@dataclass(frozen=True, slots=True)
class _Page:
    asked: Mapping[str, tuple[ParamHeader, ...]]
    next: str | None
    read_at: float


class _Listing:
    """One caller's list of tools: its pages, by the cursor under which each was asked for."""

    __slots__ = ("_pages", "is_whole", "oldest")

    def __init__(self) -> None:
        self._pages: dict[str | None, _Page] = {}
        self.is_whole = False
        self.oldest = 0.0
        """When the page that was read first was read."""

    def put(self, cursor: Raw | None, result: Mapping[str, Any]) -> bool:
        """Take a page, if it continues what is known; whether it asks for headers.

        Pages to which nothing leads any more are dropped.
        """
        asked_for = _text(cursor)
        page = _Page(
            of_tools(result["tools"]), _text(result.get("nextCursor")), asyncio.get_running_loop().time()
        )
        if asked_for is None or any(known.next == asked_for for known in self._pages.values()):
            self._pages[asked_for] = page
            self._tidy()
        return bool(page.asked)

    def _tidy(self) -> None:
        chain = list(self._chain())
        self._pages = dict(chain)
        last = chain[-1][1]
        # A server that leads in circles, or on for ever, has shown enough.
        self.is_whole = last.next is None or last.next in self._pages or len(chain) >= _MOST_PAGES
        self.oldest = min(page.read_at for _, page in chain)

    def headers_of(self, tool: str) -> tuple[ParamHeader, ...]:
        """What this tool asks clients to repeat."""
        for page in self._pages.values():
            if tool in page.asked:
                return page.asked[tool]
        return ()

    def _chain(self) -> Iterator[tuple[str | None, _Page]]:
        cursor: str | None = None
        passed: set[str | None] = set()
        while cursor not in passed and cursor in self._pages and len(passed) < _MOST_PAGES:
            yield cursor, self._pages[cursor]
            passed.add(cursor)
            cursor = self._pages[cursor].next
            if cursor is None:
                return


def _text(cursor: Raw | None) -> str | None:
    """The cursor's text; what is none is as good as none: the server will not take it for one either."""
    try:
        text = None if cursor is None else decode(cursor)
    except NotJson:
        return None
    return text if isinstance(text, str) else None


class ToolIndex:
    """The index of one upstream."""

    def __init__(
        self,
        read_page: Callable[[ClientRequest], Awaitable[Reply]],
        background: Background,
        *,
        seconds: float,
    ) -> None:
        self._read_page = read_page
        self._background = background
        self._seconds = seconds
        """How long reading a whole list may take."""
        self._listings: OrderedDict[Caller, _Listing] = OrderedDict()
        self._reading: dict[Caller, asyncio.Task[_Listing]] = {}
        self._is_plain = False
        """Somebody's list was seen whole, and nobody's asks for any header."""
        self._is_annotated = False
        self._not_before = 0.0
        """When a call that claims nothing may make us ask for a list again, after that failed."""

    def note(self, request: ClientRequest, result: Mapping[str, Any]) -> None:
        """A page passed by, on its way to this caller (or was asked for here)."""
        listing = self._listing(request.caller())
        is_annotated = listing.put(request.params.get("cursor"), result)
        self._is_annotated = self._is_annotated or is_annotated
        self._is_plain = not self._is_annotated and (self._is_plain or listing.is_whole)

    def forget(self) -> None:
        """The server says that its tools have changed."""
        self._listings.clear()
        self._is_plain = self._is_annotated = False

    def has_no_say(self, request: ClientRequest) -> bool:
        """Need this call not be checked?"""
        return self._is_plain and not request.param_headers

    async def check(self, request: ClientRequest) -> None:
        """Let a `tools/call` pass if its headers say what its arguments say.

        Raises:
            HeaderMismatch: they do not.
            GatewayError: it claims to know what the tool asks for, and we cannot find that out.
        """
        if self.has_no_say(request):
            return
        listing = self._listings.get(request.caller())
        if listing is None or not listing.is_whole:
            listing = await self._read(request)
        if listing is None:
            return
        wrong, is_certain = _compare(listing, request)
        if not is_certain:
            newer = await self._read(request)
            wrong, _ = (wrong, True) if newer is None else _compare(newer, request)
        if wrong is not None:
            raise HeaderMismatch(detail=wrong)

    def _listing(self, caller: Caller) -> _Listing:
        listing = self._listings.setdefault(caller, _Listing())
        self._listings.move_to_end(caller)
        while len(self._listings) > _MOST_CALLERS:
            self._listings.popitem(last=False)
        return listing

    # --- asking for a list ------------------------------------------------------------

    async def _read(self, request: ClientRequest) -> _Listing | None:
        """This caller's list, read anew; None if that failed and the call does not claim anything."""
        caller = request.caller()
        claims_something = bool(request.param_headers)
        reading = self._reading.get(caller)
        if reading is None:
            if not claims_something and asyncio.get_running_loop().time() < self._not_before:
                return None
            reading = self._reading[caller] = self._background.start(self._walk(request), "read-tools")
            reading.add_done_callback(lambda _: self._reading.pop(caller, None))
        await asyncio.wait([reading], timeout=None if claims_something else _PATIENCE_SECONDS)
        try:
            if reading.done():
                return reading.result()
        except GatewayError:
            if claims_something:
                raise
        self._not_before = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
        return None

    async def _walk(self, request: ClientRequest) -> _Listing:
        """Read all pages. The index notes them as they pass, like any other; a change meanwhile empties it."""
        listing = _Listing()
        cursor: Raw | None = None
        try:
            async with asyncio.timeout(self._seconds):
                while not listing.is_whole:
                    page = _page_request(request, cursor)
                    reply = await self._read_page(page)
                    if reply.result is not None:
                        listing.put(cursor, reply.result)
                        cursor = reply.result.get("nextCursor")
                    elif reply.error is not None and reply.error.code == _METHOD_NOT_FOUND:
                        listing.put(cursor, _NO_TOOLS)
                        self.note(page, _NO_TOOLS)
                    else:
                        raise UpstreamFault(f"tools/list: {reply.detail or reply.reason}")
        except TimeoutError:
            raise UpstreamTimedOut("reading the list of tools") from None
        return listing


def _page_request(call: ClientRequest, cursor: Raw | None) -> ClientRequest:
    params = {} if cursor is None else {"cursor": cursor}
    return replace(
        call, method=METHOD, target="", params=params, param_headers={}, log_level=None, progress_token=None
    )


def _compare(listing: _Listing, request: ClientRequest) -> tuple[str | None, bool]:
    """What is wrong with the headers, if anything; and whether the list is good enough to say so."""
    asked = listing.headers_of(request.target)
    wrong = disagreement(asked, request.params.get("arguments"), request.param_headers)
    is_fresh = asyncio.get_running_loop().time() - listing.oldest < _FRESH_SECONDS
    names = {header.name.lower() for header in asked}
    return wrong, is_fresh or (wrong is None and request.param_headers.keys() <= names)
