"""Streamable HTTP (2025-03-26 to 2025-11-25), the client's half: POST, the standing GET, DELETE. No MCP meaning.

What real servers do that decides the shape of this file:

* Python SDKs frame with CRLF, TypeScript with LF; some servers send no response
  headers before the first event. So nothing here times out on silence: the
  work clock of the exchange does.
* Only a failure to connect proves that nothing was sent. Every other failure of
  a POST is `UpstreamLost`, and nobody sends it again.
* A lost session is 404 by the specification and 400 in most servers' practice.
* Python servers leave Nagle's algorithm on: they hold the next packet back until
  ours is acknowledged, and the kernel takes 40 ms over that unless told to hurry.
"""

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import Final

import aiohttp
from aiohttp import hdrs

from gateway.errors import (
    GatewayError,
    UpstreamLost,
    UpstreamRefused,
    UpstreamSpokeNonsense,
    UpstreamUnauthorized,
    UpstreamUnreachable,
)
from gateway.upstreams.transport import Deliver, SessionGone
from gateway.wire import headers as names
from gateway.wire.jsonrpc import Failure, Id, Message, NotJson, NotJsonRpc, parse, parse_many
from gateway.wire.sse import EventTooLarge, SseParser

_DRAIN_SECONDS: Final = 1.0
"""After the answer: how long to read on for the end of the stream, so that the connection can be used again."""
_CLOSE_SECONDS: Final = 5.0
_RECONNECT_SECONDS: Final = (0.05, 0.2, 1.0, 3.0)
"""Pauses before the standing stream is opened again; after the last one the session counts as dead."""
_ERROR_BODY_BYTES: Final = 16 * 1024


class StreamableHttp:
    """One session's channel. The HTTP client is the upstream's and is shared; nothing else is."""

    __slots__ = ("_event_bytes", "_headers", "_http", "_url", "last_event_id", "session_id")

    def __init__(
        self, http: aiohttp.ClientSession, url: str, *, headers: Mapping[str, str], max_event_bytes: int
    ) -> None:
        self.session_id: str | None = None
        self.last_event_id: str | None = None
        self._http = http
        self._url = url
        self._event_bytes = max_event_bytes
        self._headers = {
            **headers,
            hdrs.CONTENT_TYPE: names.JSON,
            hdrs.ACCEPT: f"{names.JSON}, {names.EVENT_STREAM}",
        }

    def speak(self, version: str) -> None:
        """Name the revision in every request from now on, as 2025-06-18 and later demand."""
        self._headers[names.PROTOCOL_VERSION] = version

    async def request(self, request_id: Id, body: bytes, deliver: Deliver) -> None:
        """POST a request; deliver every message of its response until the answer, or the stream's end."""
        try:
            async with self._http.post(self._url, data=body, headers=self._headers) as response:
                if response.status >= 300:
                    await self._refused(response, request_id, deliver)
                    return
                if self.session_id is None:
                    self._take_session_id(response)
                _acknowledge(response)
                match names.media_type(response.headers.get(hdrs.CONTENT_TYPE)):
                    case names.EVENT_STREAM:
                        await self._read_events(response, deliver)
                    case names.JSON:
                        for message in _parsed(await self._read_body(response)):
                            deliver(message)
                    case other:
                        raise UpstreamSpokeNonsense(
                            f"HTTP {response.status} with {other or 'no content type'}"
                        )
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _translated(error) from error

    async def send(self, body: bytes) -> None:
        """POST a notification or an answer, and wait for the 202."""
        try:
            async with self._http.post(self._url, data=body, headers=self._headers) as response:
                if response.status >= 300:
                    await self._refused(response, None, lambda _: True)
                    return
                await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _translated(error) from error

    async def listen(self, deliver: Deliver, opened: Callable[[], None]) -> None:
        """Keep the GET stream open. Returns for a server that has none; raises when the session is gone."""
        failures = 0
        while True:
            try:
                if not await self._listen_once(deliver, opened):
                    return
                failures = 0
            except GatewayError:
                opened()
                if failures == len(_RECONNECT_SECONDS):
                    raise
            await asyncio.sleep(_RECONNECT_SECONDS[min(failures, len(_RECONNECT_SECONDS) - 1)])
            failures += 1

    async def close(self) -> None:
        """DELETE the session. The server may refuse, or be gone: the session is over either way."""
        if self.session_id is None:
            return
        try:
            async with asyncio.timeout(_CLOSE_SECONDS), self._http.delete(self._url, headers=self._headers):
                pass
        except (aiohttp.ClientError, TimeoutError):
            return

    async def _listen_once(self, deliver: Deliver, opened: Callable[[], None]) -> bool:
        """One GET, to its end. False: this server has no such stream, or the session is over."""
        wanted = {**self._headers, hdrs.ACCEPT: names.EVENT_STREAM}
        del wanted[hdrs.CONTENT_TYPE]
        try:
            async with self._http.get(self._url, headers=wanted) as response:
                opened()
                if response.status == 404 and self.session_id is not None:
                    raise SessionGone("the standing stream: HTTP 404")
                if names.media_type(response.headers.get(hdrs.CONTENT_TYPE)) != names.EVENT_STREAM:
                    return False
                parser = SseParser(self._event_bytes)
                async for chunk in response.content.iter_any():
                    for event in parser.feed(chunk):
                        if event.data:
                            for message in _parsed(event.data):
                                deliver(message)
        except EventTooLarge as error:
            raise UpstreamSpokeNonsense(str(error)) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _translated(error) from error
        return True

    async def _read_events(self, response: aiohttp.ClientResponse, deliver: Deliver) -> None:
        parser = SseParser(self._event_bytes)
        self.last_event_id = None
        answered = False
        try:
            async for chunk in response.content.iter_any():
                _acknowledge(response)
                for event in parser.feed(chunk):
                    if event.id is not None:
                        self.last_event_id = event.id
                    if event.data:
                        for message in _parsed(event.data):
                            answered = deliver(message) or answered
                if answered:
                    break
        except EventTooLarge as error:
            raise UpstreamSpokeNonsense(str(error)) from error
        if answered and not response.content.at_eof():
            await _drain(response)

    async def _read_body(self, response: aiohttp.ClientResponse) -> bytes:
        if (response.content_length or 0) > self._event_bytes:
            raise UpstreamSpokeNonsense(f"a body of {response.content_length} bytes")
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > self._event_bytes:
                raise UpstreamSpokeNonsense(f"a body of more than {self._event_bytes} bytes")
        return bytes(body)

    def _take_session_id(self, response: aiohttp.ClientResponse) -> None:
        session_id = response.headers.get(names.SESSION_ID)
        if session_id:
            self.session_id = session_id
            self._headers[names.SESSION_ID] = session_id

    async def _refused(
        self, response: aiohttp.ClientResponse, request_id: Id | None, deliver: Deliver
    ) -> None:
        """Say what an HTTP refusal means; a JSON-RPC error for this very request is an ordinary answer."""
        status = response.status
        if status in (401, 403):
            raise UpstreamUnauthorized(status, response.headers.get(hdrs.WWW_AUTHENTICATE))
        body = await response.content.read(_ERROR_BODY_BYTES)
        if self.session_id is not None and (status == 404 or (status == 400 and b"session" in body.lower())):
            raise SessionGone(f"HTTP {status}")
        try:
            message = parse(body)
        except (NotJson, NotJsonRpc):
            raise UpstreamRefused(status) from None
        if isinstance(message, Failure) and request_id is not None and message.id == request_id:
            deliver(message)
            return
        raise UpstreamRefused(status)


def _acknowledge(response: aiohttp.ClientResponse) -> None:
    """Tell the server now that its bytes have arrived, so that it sends on."""
    connection = response.connection
    if connection is not None and connection.transport is not None and hasattr(socket, "TCP_QUICKACK"):
        connection.transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read to the end, for a while. Servers with an event store may keep a stream open after the answer."""
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in response.content.iter_any():
                pass
    except (aiohttp.ClientError, TimeoutError):
        response.close()


def _parsed(data: bytes) -> list[Message]:
    try:
        return parse_many(data)
    except (NotJson, NotJsonRpc) as error:
        raise UpstreamSpokeNonsense(str(error)) from error


def _translated(error: Exception) -> GatewayError:
    """Whose fault, and could the request have run? Only a failed connect is certain that it did not."""
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return UpstreamUnreachable(type(error).__name__)
    return UpstreamLost(type(error).__name__)
