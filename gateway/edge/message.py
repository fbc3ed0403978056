"""A JSON-RPC message as a whole HTTP response. It does not know what the message says.

Nearly every call ends with one: a POST over HTTP/1.1, on a connection that is
kept, under the two headers that all of them have. For these the head is known,
and goes out with the body in one piece; the library's own way to it asks about
cookies, compression, chunks and older clients, and was a tenth of a plain call.
Whatever is unusual about a request or its answer takes that way.
"""

from http import HTTPStatus
from typing import Final

from aiohttp import HttpVersion11, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time

from gateway.edge.connections import SERVER
from gateway.wire import headers as names

_USUAL: Final = 2
"""Headers: the type, and the request's id."""
_LONGEST: Final = 64 * 1024
"""Bytes of a message that may be copied to be beside its head."""
_STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}" for status in HTTPStatus}


class JsonMessage(web.Response):
    """One message, all of it at hand."""

    _head: bytes | None = None

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Make the head."""
        body = self.body
        if self.prepared or not isinstance(body, bytes) or not self._is_usual(request, len(body)):
            return await super().prepare(request)
        self._keep_alive = True
        self._req = request
        self._payload_writer = request.writer
        self._head = (
            f"{_STATUS_LINES[self.status]}\r\n"
            f"{hdrs.CONTENT_TYPE}: {names.JSON}\r\n"
            f"{names.REQUEST_ID}: {self.headers[names.REQUEST_ID]}\r\n"
            f"{hdrs.CONTENT_LENGTH}: {len(body)}\r\n"
            f"{hdrs.DATE}: {rfc822_formatted_time()}\r\n"
            f"{hdrs.SERVER}: {SERVER}\r\n\r\n"
        ).encode()
        return request.writer

    def _is_usual(self, request: web.BaseRequest, size: int) -> bool:
        return (
            size <= _LONGEST
            and len(self.headers) == _USUAL
            and names.REQUEST_ID in self.headers
            and request.version == HttpVersion11
            and request.keep_alive
            and self._keep_alive is None
            and request.method == hdrs.METH_POST
            and self.status in _STATUS_LINES
        )

    async def write_eof(self, data: bytes = b"") -> None:
        """Write it."""
        if self._head is None or not isinstance(self.body, bytes):
            await super().write_eof(data)
            return
        head, self._head = self._head, None
        await web.StreamResponse.write_eof(self, head + self.body)
