"""Client connections: how many there may be, and the answer to one that speaks no HTTP. It knows no request's meaning.

aiohttp would take any number of connections, answer bad HTTP with a page that
repeats what was sent, and write a traceback for each to the log: anybody who
reaches the port could fill both.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from aiohttp import HttpVersion11, hdrs, web
from aiohttp.http import SERVER_SOFTWARE
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.web_protocol import RequestHandler

from gateway.telemetry.names import DoorRefusal
from gateway.wire import headers as names
from gateway.wire.jsonrpc import encode_error

SERVER: Final = "holdfast"
"""All that a response says about the software that sent it."""
_BAD_HTTP: Final = encode_error(None, -32600, "The request is not valid HTTP")
_TOO_LONG: Final = encode_error(None, -32600, "The request line or a header is too long")


class Request(web.BaseRequest):
    """A request whose response does not reveal which software, and which version of it, has answered."""

    async def _prepare_hook(self, resp: web.StreamResponse) -> None:
        if resp.headers.get(hdrs.SERVER) == SERVER_SOFTWARE:
            resp.headers[hdrs.SERVER] = SERVER
        if self.version < HttpVersion11 and resp.content_length is None:
            # Only the end of the connection tells such a client where the body ends; aiohttp would keep it open.
            resp.force_close()


class Connections(web.Server):
    """All connections of a listener."""

    def __init__(
        self, *arguments: Any, most: int, turned_away: Callable[[DoorRefusal], None], **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._most = most
        self.turned_away = turned_away
        self._is_shut = False

    async def shutdown(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - aiohttp's own signature
        """Close them all."""
        self._is_shut = True
        await super().shutdown(timeout)

    def __call__(self) -> RequestHandler:
        """What reads one connection."""
        return _Connection(self, loop=self._loop, **self._kwargs)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Take a new connection; at the limit an idle one is closed for it, or else the newcomer itself."""
        if self._is_shut:
            transport.abort()  # accepted in the moment in which the listener was closed: nobody would close it
        if len(self._connections) >= self._most:
            self.turned_away(DoorRefusal.CONNECTIONS)
            idle = self._idlest()
            if idle is None:
                transport.abort()
            else:
                idle.force_close()
        super().connection_made(handler, transport)

    def _idlest(self) -> RequestHandler | None:
        """A connection that waits for a request: the oldest that never sent any, or else the oldest."""
        found: RequestHandler | None = None
        for connection in self._connections:
            if connection._force_close or connection._waiter is None:  # noqa: SLF001 - aiohttp has no other word
                continue
            if connection._request_count == 0:  # noqa: SLF001
                return connection
            found = found or connection
        return found


class _Connection(RequestHandler):
    """One connection."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Say in a few fixed words that this is no HTTP, or too much; what else may go wrong is our bug, and logged."""
        if not isinstance(exc, HttpProcessingError):
            return _signed(super().handle_error(request, status, exc, message))
        if isinstance(self._manager, Connections):
            self._manager.turned_away(DoorRefusal.BAD_HTTP)
        if request.writer.output_size > 0:
            raise ConnectionError("a response has begun already")
        status, body = (431, _TOO_LONG) if isinstance(exc, LineTooLong) else (400, _BAD_HTTP)
        response = web.Response(status=status, body=body, content_type=names.JSON)
        response.force_close()
        return _signed(response)


def _signed(response: web.StreamResponse) -> web.StreamResponse:
    # Such an answer belongs to no request of ours, and no hook of ours sees it.
    response.headers[hdrs.SERVER] = SERVER
    return response
