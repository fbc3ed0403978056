"""One HTTP/1.1 connection to a server, one request at a time, and the response as it arrives. Dials nobody.

llhttp (`httptools`) takes the bytes apart. A response is its status, its headers and the chunks that nobody has
read yet: ten thousand of them are held at once.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final, Protocol, TypeAlias

import aiohttp
import httptools
from multidict import CIMultiDict
from yarl import URL

Origin: TypeAlias = tuple[str, str]
"""Scheme and authority."""

_MOST_OVERHEAD_BYTES: Final = 64 * 1024
"""Headers, or trailers, or chunk sizes, without anything of a body in between."""
_MOST_WAITING_BYTES: Final = 256 * 1024
"""Of a response: when nobody reads it, the server is not listened to."""
_QUICK_ACK: Final = getattr(socket, "TCP_QUICKACK", None)
_NO_HEADERS: Final = CIMultiDict[str]()


class Keeper(Protocol):
    """Who has the connections that are open."""

    def keep(self, connection: "Connection", origin: Origin) -> None:
        """It has had its answer and can take the next request."""

    def linger(self, connection: "Connection") -> None:
        """Nobody reads the end of its answer: for a moment it may still come."""

    def lose(self, connection: "Connection", origin: Origin) -> None:
        """It is gone."""


class Response:
    """The head of a response, and its body as it comes. Whoever does not read to the end must `release` it."""

    __slots__ = ("_chunks", "_connection", "_fault", "_size", "_waiter", "headers", "reason", "status", "url")

    def __init__(self, connection: "Connection", url: URL) -> None:
        self.url = url
        self.status = 0
        self.reason = ""
        self.headers: CIMultiDict[str] = _NO_HEADERS
        self._connection: Connection | None = connection
        """Until the last byte has come, or it is certain that it will not."""
        self._chunks: list[bytes] = []
        self._size = 0
        self._fault: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    # --- for the reader ----------------------------------------------------------------

    @property
    def is_read(self) -> bool:
        """Has all of it come, and been read?"""
        return self._connection is None and self._fault is None and not self._chunks

    async def readany(self) -> bytes:
        """What has come since, as soon as there is something; nothing at the end.

        Raises:
            aiohttp.ClientPayloadError: it broke off.
        """
        if not self._chunks and self._connection is not None:
            await self.wait()
        chunks = self._chunks
        if not chunks:
            if self._fault is not None:
                raise self._fault
            return b""
        if len(chunks) == 1:
            data = chunks.pop()
        else:
            data = b"".join(chunks)
            chunks.clear()
        if self._size > _MOST_WAITING_BYTES and self._connection is not None:
            self._connection.listen_again()
        self._size = 0
        return data

    async def iter_any(self) -> AsyncIterator[bytes]:
        """All of it, as it comes."""
        while chunk := await self.readany():
            yield chunk

    async def read(self, most: int) -> bytes:
        """The whole body, or so much of it."""
        data = bytearray()
        while len(data) < most and (chunk := await self.readany()):
            data += chunk
        return bytes(data[:most])

    def acknowledge(self) -> None:
        """Tell the server now that its bytes have arrived, so that it sends on, if it has more to send.

        Python servers leave Nagle's algorithm on: they hold the next packet back until
        ours is acknowledged, and the kernel takes 40 ms over that unless told to hurry.
        """
        if self._connection is not None:
            self._connection.acknowledge()

    def release(self) -> None:
        """Nobody reads on. A connection on which the rest may still come is of no more use."""
        self._fault = None  # once it was raised it knows where, and so this response: the two would stay
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.cut()

    def let_end(self) -> None:
        """Nobody reads on, but nothing more than the end is expected: if it comes soon the connection is kept.

        Servers with an event store may keep a stream open after the answer.
        """
        connection, self._connection = self._connection, None
        if connection is not None:
            self._chunks.clear()
            connection.linger()

    # --- for the connection ------------------------------------------------------------

    async def wait(self) -> None:
        """Until something has happened."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def begun(self) -> None:
        """Until the head is there. Raises if it will not be."""
        while not self.status:
            if self._fault is not None:
                raise self._fault
            await self.wait()

    def begin(self, status: int, headers: CIMultiDict[str]) -> None:
        """The head is there."""
        self.status = status
        self.headers = headers
        self._wake()

    def feed(self, chunk: bytes) -> bool:
        """Some of the body. False: that is enough for now."""
        if self._connection is None:
            return True  # nobody reads it
        self._chunks.append(chunk)
        self._size += len(chunk)
        self._wake()
        return self._size <= _MOST_WAITING_BYTES

    def end(self, fault: Exception | None) -> None:
        """There will be no more."""
        self._connection = None
        self._fault = fault
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Connection(asyncio.Protocol):
    """Asyncio tells it what the socket does, llhttp what the bytes mean."""

    __slots__ = (
        "_head",
        "_is_delimited",
        "_is_paused",
        "_keeper",
        "_origin",
        "_overhead",
        "_parser",
        "_response",
        "_socket",
        "_transport",
        "idle_since",
    )

    def __init__(self, keeper: Keeper, origin: Origin, opened: socket.socket) -> None:
        self.idle_since = 0.0
        self._keeper = keeper
        self._origin = origin
        self._socket = opened
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._response: Response | None = None
        self._head: list[tuple[str, str]] = []
        self._overhead = 0
        """Bytes since the last that brought the response on."""
        self._is_delimited = False
        """Does the response itself say where it ends? Else the end of the connection does."""
        self._is_paused = False

    @property
    def is_usable(self) -> bool:
        """Can it take a request?"""
        return self._transport is not None and not self._transport.is_closing()

    async def exchange(self, request: bytes, url: URL) -> Response:
        """Send a request; the response, when its head is there."""
        if self._transport is None:
            raise aiohttp.ServerDisconnectedError
        self._response = response = Response(self, url)
        self._overhead = 0
        self._transport.write(request)
        try:
            await response.begun()
        except BaseException:
            response.release()
            raise
        return response

    def acknowledge(self) -> None:
        """Now, and not in 40 ms."""
        if _QUICK_ACK is not None:
            with suppress(OSError):  # broken meanwhile, which the reader will find out
                self._socket.setsockopt(socket.IPPROTO_TCP, _QUICK_ACK, 1)

    def listen_again(self) -> None:
        """The reader has caught up."""
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    def linger(self) -> None:
        """The end of the response is still to come, for nobody."""
        self.listen_again()
        self._keeper.linger(self)

    def cut(self) -> None:
        """Hang up, at once."""
        self._response = None
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, why: str) -> None:
        response = self._response
        self.cut()
        if response is not None:
            response.end(aiohttp.ClientPayloadError(why))

    # --- asyncio -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        self._transport = transport  # type: ignore[assignment]  # a stream's is one for both ways

    def data_received(self, data: bytes) -> None:
        """Some bytes of the server's."""
        if self._response is None:
            self.cut()  # it speaks unasked
            return
        self._overhead += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"no HTTP: {type(error).__name__}")
        if self._overhead > _MOST_OVERHEAD_BYTES:
            self._fail("headers without end")

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone, whoever hung up."""
        self._transport = None
        del self._parser  # which knows this connection: the two would stay
        self._keeper.lose(self, self._origin)
        response, self._response = self._response, None
        if response is None:
            return
        if exc is None and response.status and not self._is_delimited:
            response.end(None)
            return
        broken = aiohttp.ClientPayloadError("the response broke off")
        fault = broken if response.status else aiohttp.ServerDisconnectedError()
        fault.__cause__ = exc  # which TLS has a word to say in
        response.end(fault)

    # --- llhttp ------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """The first byte of a response."""
        if self._response is None:
            self.cut()  # one answer more than there were questions
        else:
            self._response.reason = ""

    def on_status(self, status: bytes) -> None:
        """What stands behind the number; a part of it, if it came in parts."""
        if self._response is not None:
            self._response.reason += status.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header, or trailer."""
        if self._response is not None and not self._response.status:
            self._head.append((name.decode("latin-1"), value.decode("utf-8", "surrogateescape")))

    def on_headers_complete(self) -> None:
        """The empty line."""
        head, self._head = self._head, []
        self._overhead = 0
        status = self._parser.get_status_code()
        if self._response is not None and status >= 200:
            headers = CIMultiDict(head)
            self._is_delimited = "Content-Length" in headers or "Transfer-Encoding" in headers
            self._response.begin(status, headers)

    def on_body(self, body: bytes) -> None:
        """Some of the body."""
        self._overhead = 0
        if self._response is not None and not self._response.feed(body) and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        """The last byte of a response."""
        response = self._response
        if response is None or not response.status:
            return  # an interim one: the response is still to come
        self._response = None
        self.listen_again()
        response.end(None)
        if self._parser.should_keep_alive():
            self._keeper.keep(self, self._origin)
        else:
            self.cut()
