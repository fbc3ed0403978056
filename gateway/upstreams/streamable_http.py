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
import contextlib
import itertools
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final

import aiohttp
from aiohttp import hdrs
from multidict import CIMultiDict, istr
from yarl import URL

from gateway.errors import (
    GatewayError,
    UpstreamLost,
    UpstreamRefused,
    UpstreamSpokeNonsense,
    UpstreamUnauthorized,
    UpstreamUnreachable,
)
from gateway.upstreams.farewell import Ending, end_session
from gateway.upstreams.flag import Flag
from gateway.upstreams.http1 import Http1
from gateway.upstreams.http1_connection import Response
from gateway.upstreams.http_client import challenge_of, kind_of, sent
from gateway.upstreams.http_refusals import failure_in, is_about_session, refusal_of
from gateway.upstreams.readable import deliver_readable, messages, parsed
from gateway.upstreams.recall import Recall
from gateway.upstreams.transport import Deliver, OnlyTaken, SessionGone, SpeaksHttpSse
from gateway.wire import headers as names
from gateway.wire.jsonrpc import Id, Request
from gateway.wire.sse import EventTooLarge, SseEvent, SseParser

# Of the kind that the HTTP client would make of them anew for each request.
_PROTOCOL_VERSION: Final = istr(names.PROTOCOL_VERSION)
_SESSION_ID: Final = istr(names.SESSION_ID)
_BOTH: Final = f"{names.JSON}, {names.EVENT_STREAM}"
_RECONNECT_SECONDS: Final = (0.05, 0.2, 1.0, 3.0)
"""Pauses before the standing stream is opened again. If it still breaks after the last one the session counts
as dead; if it only ends, it is opened again at that pace. One that lasted longer than that starts afresh."""
_REPOLL_SECONDS: Final = (5.0, 10.0, 20.0, 40.0)
"""How long a resumed stream may be quiet before it is asked for again; after these, a minute each time."""
_MOST_FRUITLESS: Final = 60
"""Resumptions in a row that end at once with nothing new: the server does not have the rest."""
_LONGEST_PAUSE_SECONDS: Final = 1.0
"""Between two of these, unless the server wants more."""
_ASKED_SECONDS: Final = 3.0
"""How much longer that pause may be while the server waits for an answer of ours."""
_LONGEST_RETRY_SECONDS: Final = 10.0
_LONGEST_EVENT_ID: Final = 4096
"""Characters. It is sent back as a header, and travels in tickets."""
_NOT_NOW: Final = (409, 429)
"""409: the server has not noticed yet that the stream before this one has ended."""


_TOLD: Final = Flag()
_TOLD.set()


class StreamableHttp:
    """One session's channel. The HTTP client is the upstream's and is shared; nothing else is."""

    __slots__ = (
        "_event_bytes",
        "_headers",
        "_http",
        "_is_reading",
        "_last_event_id",
        "_recall",
        "_retry_seconds",
        "_told",
        "_url",
        "ending",
        "session_id",
    )

    has_one_stream = False

    def __init__(
        self,
        http: Http1,
        url: str,
        *,
        headers: Mapping[str, str],
        max_event_bytes: int,
        recall: Recall | None = None,
    ) -> None:
        self.session_id: str | None = None
        self._last_event_id: str | None = None
        self._recall = recall or Recall()
        self.ending: Ending = "auto"
        self._is_reading = False
        """Is a call under way? What is asked beside it must not change where its stream is read on."""
        self._told = _TOLD
        """Down from a question on the call's stream to the next word of ours."""
        self._retry_seconds = _RECONNECT_SECONDS[1]
        self._http = http
        self._url = URL(url)
        self._event_bytes = max_event_bytes
        self._headers = CIMultiDict(headers)
        self._headers[hdrs.CONTENT_TYPE] = names.JSON
        self._headers[hdrs.ACCEPT] = _BOTH

    @property
    def last_event_id(self) -> str | None:
        """Where the running call's stream can be read on; None if that is certain to be in vain."""
        return None if self._recall.is_kept is False else self._last_event_id

    @property
    def may_remember(self) -> bool:
        """Does nothing that the server answered speak against its keeping what it sends?"""
        return self._recall.is_credible

    def speak(self, version: str) -> None:
        """Name the revision in every request from now on, as 2025-06-18 and later demand."""
        self._headers[_PROTOCOL_VERSION] = version

    def authorize(self, authorization: str) -> None:
        """Show the server this credential from now on."""
        self._headers[hdrs.AUTHORIZATION] = authorization

    def adopt(self, session_id: str, version: str) -> None:
        """Speak in a session that another process opened."""
        self.session_id = session_id
        self._headers[names.SESSION_ID] = session_id
        self.speak(version)

    def request(self, request_id: Id, body: bytes, deliver: Deliver) -> Coroutine[Any, Any, None]:
        """POST a request; deliver every message of its response until the answer, or the stream's end."""
        # The body is in no frame of the coroutine: a large one would stay for as long as the call is held.
        return self._request(request_id, self._sent(hdrs.METH_POST, self._headers, body), deliver)

    async def _request(self, request_id: Id, posted: sent, deliver: Deliver) -> None:
        is_beside, self._is_reading = self._is_reading, True
        if not is_beside:
            self._last_event_id, self._told = None, _TOLD
        try:
            async with posted as response:
                if response.status >= 300:
                    await self._refused(response, request_id, deliver)
                    return
                if self.session_id is None:
                    self._take_session_id(response)
                response.acknowledge()
                match kind_of(response):
                    case names.EVENT_STREAM:
                        is_answered = await self._read_to_answer(response, deliver, is_beside=is_beside)
                    case names.JSON:
                        for message in parsed(await self._read_body(response)):
                            deliver(message)
                        is_answered = True
                    case other:
                        problem = OnlyTaken if response.status == 202 else UpstreamSpokeNonsense
                        raise problem(f"HTTP {response.status} with {other or 'no content type'}")
            if not is_answered and not is_beside and self.last_event_id is not None:
                # A server that hangs up says when it wants to be asked again.
                await self._pause(self._retry_seconds)
                await self._read_on(self.last_event_id, deliver)
        finally:
            if not is_beside:
                self._is_reading = False

    async def resume(self, last_event_id: str, deliver: Deliver) -> None:
        """Go on reading a call's stream where it broke off, or where another reader left it, to the answer.

        A server may close the stream on purpose (SEP-1699), the network by accident, and one server's
        store registers the wrong stream so that only asking again brings the answer.
        """
        self._is_reading = True
        try:
            await self._read_on(last_event_id, deliver)
        finally:
            self._is_reading = False

    async def _read_on(self, last_event_id: str, deliver: Deliver) -> None:
        self._last_event_id = last_event_id
        fruitless = 0
        for patience in itertools.chain(_REPOLL_SECONDS, itertools.repeat(60.0)):
            seen = self._last_event_id
            if not seen:
                break  # the server took it back
            try:
                async with asyncio.timeout(patience):
                    is_answered = await self._resume_once(deliver)
            except TimeoutError:
                continue
            if is_answered:
                return
            is_waiting = is_answered is False and not self._told.is_set()
            fruitless = 0 if is_waiting or self._last_event_id != seen else fruitless + 1
            if fruitless == _MOST_FRUITLESS:
                break
            # A Python server that still has the reader before, frozen as it may be, only tells what it has stored.
            slower = min(self._retry_seconds * (fruitless + 1), _LONGEST_PAUSE_SECONDS)
            await self._pause(max(self._retry_seconds, slower))
        raise UpstreamLost("the stream broke off, and reading on brought no answer")

    async def _pause(self, seconds: float) -> None:
        """Before the server is asked for more; it has nothing to tell, mostly, while it waits for an answer of ours.

        PHP servers hang up when they have asked, and run the call on when they are answered: a person may take long.
        """
        await asyncio.sleep(seconds)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ASKED_SECONDS):
                await self._told.wait()

    async def _resume_once(self, deliver: Deliver) -> bool | None:
        """One GET from where we are. True: it brought the answer; None: it brought nobody who would."""
        wanted = {**self._wanting_events(), names.LAST_EVENT_ID: self._last_event_id or ""}
        try:
            async with self._sent(hdrs.METH_GET, wanted) as response:
                if response.status in _NOT_NOW or response.status >= 500:
                    return None
                if kind_of(response) != names.EVENT_STREAM:
                    raise UpstreamLost(f"reading on: HTTP {response.status}")
                return await self._read_to_answer(response, deliver)
        except UpstreamUnreachable:
            return None

    async def send(self, body: bytes) -> None:
        """POST a notification or an answer, and wait for the 202."""
        async with self._sent(hdrs.METH_POST, self._headers, body) as response:
            if response.status >= 300:
                await self._refused(response, None, lambda _: True)
            self._told.set()
            response.let_end()

    async def listen(self, deliver: Deliver, opened: Callable[[], None]) -> None:
        """Keep the GET stream open. Returns for a server that has none; raises when the session is gone."""
        clock = asyncio.get_running_loop().time
        tries, was_open = 0, False
        while True:
            began, broken = clock(), None
            try:
                async with self._sent(hdrs.METH_GET, self._wanting_events()) as response:
                    if not self._is_standing(response, was_open=was_open):
                        opened()
                        return
                    was_open = True
                    opened()
                    await self._read_standing(response, deliver)
            except SessionGone:
                raise
            except GatewayError as error:
                if not was_open:
                    opened()
                broken = error.bare()
            if clock() - began > _RECONNECT_SECONDS[-1]:
                tries = 0
            if broken is not None and tries == len(_RECONNECT_SECONDS):
                if was_open:
                    raise broken
                return  # it never was: calls do without, as with a server that says so
            await asyncio.sleep(_RECONNECT_SECONDS[min(tries, len(_RECONNECT_SECONDS) - 1)])
            tries = min(tries + 1, len(_RECONNECT_SECONDS))

    async def close(self) -> None:
        """End the session, there too if that may be."""
        if self.session_id is not None:
            spoken = self._headers.get(_PROTOCOL_VERSION)
            await end_session(self.session_id, spoken, self.ending, self._knocked)

    def _knocked(self, verb: str, own: Mapping[str, str], body: bytes | None) -> sent:
        headers = self._headers.copy()
        headers.update(own)
        return self._sent(verb, headers, body)

    def _sent(self, verb: str, headers: Mapping[str, str], body: bytes | None = None) -> sent:
        return sent(self._http, verb, self._url, headers=headers, body=body, kept=self._headers)

    def _is_standing(self, response: Response, *, was_open: bool) -> bool:
        """Is this the standing stream? False: this server has none. Raises for what may be mended, or is lost."""
        status = response.status
        if status in _NOT_NOW or status >= 500:
            raise UpstreamRefused(status)
        if status < 300 and kind_of(response) == names.EVENT_STREAM:
            return True
        if was_open:
            raise SessionGone(f"the standing stream: HTTP {status}, where it was open before")
        return False  # 405 by the specification; 404 where a framework was given no route for it

    async def _read_standing(self, response: Response, deliver: Deliver) -> None:
        parser = SseParser(self._event_bytes)
        try:
            while chunk := await response.readany():
                for event in parser.feed(chunk):
                    deliver_readable(event, deliver)
        except EventTooLarge as error:
            for event in error.events:  # were complete before it
                deliver_readable(event, deliver)
            raise UpstreamSpokeNonsense(str(error)) from error

    async def _read_to_answer(self, response: Response, deliver: Deliver, *, is_beside: bool = False) -> bool:
        """Read a call's stream. False: it ended or broke off before the answer."""
        parser = SseParser(self._event_bytes)
        answered = has_begun = False
        try:
            while not answered and (chunk := await response.readany()):
                response.acknowledge()
                events = parser.feed(chunk)
                if not has_begun and events:
                    has_begun = True
                    if events[0].event == "endpoint":
                        raise SpeaksHttpSse("the stream began with an endpoint")
                answered = self._take(events, deliver, is_beside=is_beside)
        except EventTooLarge as error:
            answered = self._take(error.events, deliver, is_beside=is_beside)  # were complete before it
            if not answered:
                raise UpstreamSpokeNonsense(str(error)) from error
        except aiohttp.ClientPayloadError:
            if is_beside or self.last_event_id is None:
                raise
        if answered:
            response.let_end()
        return answered

    def _wanting_events(self) -> CIMultiDict[str]:
        wanted = self._headers.copy()
        wanted[hdrs.ACCEPT] = names.EVENT_STREAM
        del wanted[hdrs.CONTENT_TYPE]
        return wanted

    def _take(self, events: Iterable[SseEvent], deliver: Deliver, *, is_beside: bool = False) -> bool:
        """Deliver events of a call's stream. True: the answer was among them."""
        answered = False
        for event in events:
            before = self._last_event_id
            if event.id is not None and not is_beside:
                is_header = 0 < len(event.id) <= _LONGEST_EVENT_ID and names.is_field_value(event.id)
                # There is no reading on from one that no header may carry.
                self._last_event_id = event.id if is_header else None
            if event.retry is not None:
                self._retry_seconds = min(event.retry / 1000, _LONGEST_RETRY_SECONDS)
            for message in messages(event):
                if isinstance(message, Request) and not is_beside:
                    self._told = Flag()
                if deliver(message):
                    answered = True
                    self._recall.note_answer(
                        event.id, session_id=self.session_id, is_numbered=before is not None
                    )
            if answered and not is_beside:
                # Until somebody has heard it, a ticket must not lead past the answer: no store tells it again.
                self._last_event_id = before
        return answered

    async def _read_body(self, response: Response) -> bytes:
        body = await response.readany()
        if not response.is_read:
            parts = bytearray(body)
            while len(parts) <= self._event_bytes and (part := await response.readany()):
                parts += part
            body = bytes(parts)
        if len(body) > self._event_bytes:
            raise UpstreamSpokeNonsense(f"a body of more than {self._event_bytes} bytes")
        return body

    def _take_session_id(self, response: Response) -> None:
        session_id = response.headers.get(names.SESSION_ID)
        if session_id:
            if not names.is_visible(session_id):  # it would be a header of ours from now on
                raise UpstreamSpokeNonsense("a session id that is not visible ASCII")
            self.session_id = session_id
            self._headers[_SESSION_ID] = session_id

    async def _refused(self, response: Response, request_id: Id | None, deliver: Deliver) -> None:
        """Say what an HTTP refusal means; a JSON-RPC error for this very request is an ordinary answer."""
        status = response.status
        if status in (401, 403):
            raise UpstreamUnauthorized(status, challenge_of(response))
        body = await refusal_of(response)
        failure = failure_in(body)
        if self.session_id is not None and (
            status == 404 or (status == 400 and is_about_session(failure, request_id, body))
        ):
            raise SessionGone(f"HTTP {status}")
        if failure is None or request_id is None or failure.id != request_id:
            raise UpstreamRefused(status)
        deliver(failure)
