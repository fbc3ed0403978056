"""HTTP+SSE (2024-11-05), the client's half: one GET stream that carries everything, POSTs beside it. No MCP meaning.

What real servers do that decides the shape of this file:

* The session is the stream. Its end is the session's end, whatever the server
  still answers to a POST: 404, 400, 202, or nothing at all, ever.
* The response to a POST says that the message was taken, not what came of it.
  Most servers send it at once, some (Java) only when they are done with the call:
  so nobody waits for it who has the answer, and a slow one is no failure.
* The `endpoint` event is data of the server's choosing. It may be relative or
  absolute; what leaves the origin is refused, because our credentials go there.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import aiohttp
from aiohttp import hdrs
from yarl import URL

from gateway.errors import (
    GatewayError,
    UpstreamLost,
    UpstreamRefused,
    UpstreamSpokeNonsense,
    UpstreamTimedOut,
    UpstreamUnauthorized,
)
from gateway.telemetry.logs import Log
from gateway.telemetry.names import LogEvent
from gateway.upstreams.background import Background
from gateway.upstreams.http1 import Http1
from gateway.upstreams.http1_connection import Response
from gateway.upstreams.http_client import challenge_of, is_same_origin, kind_of, requested, translated
from gateway.upstreams.one_stream import OneStream
from gateway.upstreams.readable import may_answer
from gateway.upstreams.transport import Deliver, SessionGone
from gateway.wire import headers as names
from gateway.wire.jsonrpc import Id, NotJson, NotJsonRpc, parse_many
from gateway.wire.sse import EventTooLarge, SseEvent, SseParser

_ENDPOINT_SECONDS: Final = 10.0
"""How long the first event may take, which says where to POST."""
_ACCEPT_SECONDS: Final = 10.0
"""How long a server may take to accept a notification or an answer."""
_BODY_BYTES: Final = 16 * 1024
_SESSION_PARAMETERS: Final = ("sessionId", "session_id")


class HttpSse:
    """One session's channel, once `open` has returned."""

    __slots__ = (
        "_background",
        "_endpoint",
        "_event_bytes",
        "_headers",
        "_http",
        "_log",
        "_stream",
        "_url",
        "last_event_id",
        "session_id",
    )

    has_one_stream = True

    def __init__(
        self,
        http: Http1,
        url: str,
        *,
        headers: Mapping[str, str],
        max_event_bytes: int,
        log: Log,
    ) -> None:
        self.session_id: str | None = None
        self.last_event_id: str | None = None
        self._http = http
        self._url = URL(url)
        self._endpoint: URL | None = None
        self._headers = dict(headers)
        self._event_bytes = max_event_bytes
        self._log = log
        self._stream = OneStream()
        self._background = Background()

    async def open(self) -> None:
        """Open the stream, and wait until the server has said where to POST.

        Raises:
            UpstreamFault: it did not.
        """
        endpoint: asyncio.Future[URL] = asyncio.get_running_loop().create_future()
        self._background.start(self._read(endpoint), "event-stream")
        try:
            async with asyncio.timeout(_ENDPOINT_SECONDS):
                self._endpoint = await endpoint
        except TimeoutError:
            await self.close()
            raise UpstreamTimedOut("no endpoint event came") from None
        except BaseException:
            await self.close()
            raise
        self.session_id = _session_id(self._endpoint)

    @property
    def has_overheard(self) -> bool:
        """Did the stream bring the answer to a question that was not asked here?"""
        return self._stream.has_overheard

    def speak(self, version: str) -> None:
        """This transport has no header for it."""

    def authorize(self, authorization: str) -> None:
        """Show the server this credential with every POST from now on; the stream was let in with the old one."""
        self._headers[hdrs.AUTHORIZATION] = authorization

    async def request(self, request_id: Id, body: bytes, deliver: Deliver) -> None:
        """POST a request; its answer comes on the stream."""
        answered = self._stream.expect(request_id, deliver)
        posted = self._background.start(self._post(body), "post")
        try:
            await asyncio.wait([answered, posted], return_when=asyncio.FIRST_COMPLETED)
            if not answered.done():
                await posted  # raises if the request was refused
            await answered
        except BaseException:
            posted.cancel()
            raise
        finally:
            self._stream.forget(request_id)

    async def send(self, body: bytes) -> None:
        """POST a notification or an answer, and wait until it is taken."""
        self._stream.check()
        try:
            async with asyncio.timeout(_ACCEPT_SECONDS):
                await self._post(body)
        except TimeoutError:
            # everything's server never answers a POST to a session that it does not know.
            raise UpstreamTimedOut("a POST was not answered") from None

    async def listen(self, deliver: Deliver, opened: Callable[[], None]) -> None:
        """Deliver what the server says of its own accord; raises when the stream, and so the session, ends."""
        await self._stream.listen(deliver, opened)

    async def close(self) -> None:
        """Hang up. That is how a server is told."""
        self._stream.end(UpstreamLost("closed by us"))
        await self._background.close()

    # --- the stream ------------------------------------------------------------------

    async def _read(self, endpoint: "asyncio.Future[URL]") -> None:
        wanted = {**self._headers, hdrs.ACCEPT: names.EVENT_STREAM, hdrs.CACHE_CONTROL: "no-store"}
        ending: GatewayError = UpstreamLost("the event stream ended")
        try:
            async with requested(
                self._http, hdrs.METH_GET, self._url, headers=wanted, kept=self._headers
            ) as response:
                await self._check_stream(response)
                await self._read_events(response, endpoint)
        except EventTooLarge as error:
            ending = UpstreamSpokeNonsense(str(error))
        except (aiohttp.ClientError, TimeoutError) as error:
            ending = translated(error)
        except GatewayError as error:
            ending = error
        finally:
            if not endpoint.done():
                endpoint.set_exception(ending)
            self._stream.end(ending)

    async def _check_stream(self, response: Response) -> None:
        if response.status >= 300:
            raise await self._refusal(response)
        kind = kind_of(response)
        if kind != names.EVENT_STREAM:
            raise UpstreamSpokeNonsense(f"GET: HTTP {response.status} with {kind or 'no content type'}")

    async def _read_events(self, response: Response, endpoint: "asyncio.Future[URL]") -> None:
        parser = SseParser(self._event_bytes)
        async for chunk in response.iter_any():
            response.acknowledge()
            for event in parser.feed(chunk):
                if event.event == "endpoint":
                    if not endpoint.done():
                        endpoint.set_result(self._resolved(event, response.url))
                elif event.event == "message" and event.data:
                    self._hear(event.data)

    def _resolved(self, event: SseEvent, base: URL) -> URL:
        try:
            place = base.join(URL(event.data.decode().strip()))
        except ValueError:
            raise UpstreamSpokeNonsense("the endpoint event has no URL") from None
        if not is_same_origin(place, self._url):
            raise UpstreamSpokeNonsense("the endpoint event names another origin")
        return place

    def _hear(self, data: bytes) -> None:
        try:
            messages = parse_many(data)
        except (NotJson, NotJsonRpc) as error:
            self._log.warning(LogEvent.UPSTREAM_PROTOCOL, detail=str(error), size=len(data))
            if may_answer(data):
                self._stream.spoil(UpstreamSpokeNonsense(str(error)))
            return
        for message in messages:
            self._stream.hear(message)

    # --- messages to the server --------------------------------------------------------

    async def _post(self, body: bytes) -> None:
        if self._endpoint is None:
            raise AssertionError("not open")
        wanted = {**self._headers, hdrs.CONTENT_TYPE: names.JSON}
        try:
            async with requested(
                self._http, hdrs.METH_POST, self._endpoint, headers=wanted, body=body, kept=self._headers
            ) as response:
                if response.status >= 300:
                    raise await self._refusal(response)
                response.acknowledge()
                await response.read(_BODY_BYTES)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise translated(error) from error

    async def _refusal(self, response: Response) -> GatewayError:
        status = response.status
        if status in (401, 403):
            return UpstreamUnauthorized(status, challenge_of(response))
        body = await response.read(_BODY_BYTES)
        if self._endpoint is not None and (
            status in (404, 410) or (status == 400 and b"session" in body.lower())
        ):
            return SessionGone(f"HTTP {status}")
        return UpstreamRefused(status)


def _session_id(endpoint: URL) -> str:
    """What tells this session from others. It is part of the address, and never sent as a header."""
    for name in _SESSION_PARAMETERS:
        if name in endpoint.query:
            return endpoint.query[name]
    return endpoint.path_qs
