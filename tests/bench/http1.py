"""A keep-alive HTTP/1.1 connection for load: prebuilt bytes out, whole responses in. It knows no MCP.

A driver that shares two cores with what it measures must cost next to nothing,
so there is no header model and no copying: just enough to know where a response ends.
"""

import asyncio
from typing import Final, NamedTuple, cast

_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"\r\ncontent-length:"
_LAST_CHUNK: Final = b"0\r\n\r\n"


class Response(NamedTuple):
    """One complete response; `head` is lower-cased."""

    status: int
    head: bytes
    body: bytes


class Connection(asyncio.Protocol):
    """One request at a time. A connection that the server closed between two requests is opened again."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._waiter: asyncio.Future[None] | None = None

    async def request(self, data: bytes) -> Response:
        """Send, and wait for the whole response."""
        await self.send(data)
        return await self.response()

    async def send(self, data: bytes) -> None:
        """Send only: for streams that are read while they grow."""
        if self._transport is None:
            await asyncio.get_running_loop().create_connection(lambda: self, self._host, self._port)
        assert self._transport is not None
        self._buffer.clear()
        self._transport.write(data)

    async def until(self, marker: bytes) -> None:
        """Wait until what came so far contains `marker`; the response goes on."""
        while marker not in self._buffer:
            if self._parse() is not None:
                raise ConnectionError(f"the response ended early: {bytes(self._buffer[:200])!r}")
            await self._more()

    async def response(self) -> Response:
        """Wait for the end of the response."""
        while (parsed := self._parse()) is None:
            await self._more()
        return parsed

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    async def _more(self) -> None:
        if self._transport is None:
            raise ConnectionError("closed by the server in mid-response")
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _parse(self) -> Response | None:
        buffer = self._buffer
        end = buffer.find(_HEAD_END)
        if end < 0:
            return None
        head = bytes(buffer[:end]).lower()
        start = end + 4
        at = head.find(_LENGTH)
        if at >= 0:
            stop = start + int(head[at + len(_LENGTH) :].partition(b"\r\n")[0])
            if len(buffer) < stop:
                return None
            return Response(int(head[9:12]), head, bytes(buffer[start:stop]))
        if b"\r\ntransfer-encoding: chunked" in head:
            # The cheap test first: most data_received calls of a short response are its end.
            body = dechunk(bytes(buffer[start:])) if buffer.endswith(_LAST_CHUNK) else None
            return None if body is None else Response(int(head[9:12]), head, body)
        return Response(int(head[9:12]), head, b"")

    # --- asyncio.Protocol -----------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def dechunk(data: bytes) -> bytes | None:
    """The body of a chunked response, or None while it is not all there."""
    parts: list[bytes] = []
    at = 0
    while True:
        line_end = data.find(b"\r\n", at)
        if line_end < 0:
            return None
        size = int(data[at:line_end].split(b";")[0], 16)
        at = line_end + 2
        if size == 0:
            return b"".join(parts)
        if at + size + 2 > len(data):
            return None
        parts.append(data[at : at + size])
        at += size + 2
