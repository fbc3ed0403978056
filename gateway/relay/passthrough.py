"""Hands on requests that need no bridge between the eras: legacy clients, and all clients of a modern upstream.

    the upstream listens and speaks the client's transport     as it is, both ways
    both speak HTTP+SSE                                         as it is, but for the address in `endpoint`
    it speaks another transport                                 message by message (`legacy_sessions`, and
                                                                `sse_visits` for clients over HTTP+SSE)

The address that an HTTP+SSE server gives its client is sealed into one of ours:
a client cannot make up an address of the upstream, and any replica can read it.
"""

import asyncio
import base64
import binascii
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from gateway.errors import UpstreamChanged, UpstreamTimedOut
from gateway.relay.endpoint import ADDRESS, address_in, with_own_endpoint
from gateway.relay.era import UpstreamEra
from gateway.relay.legacy_sessions import LegacySessions
from gateway.relay.modern_process import ModernProcess
from gateway.relay.passage import Knock, Passage, end_to_end
from gateway.relay.request import ClientRequest
from gateway.relay.sse_visits import VISIT, Visits
from gateway.sealing.envelope import Envelope, LetterRefused
from gateway.settings.certificates import client_context
from gateway.settings.upstream import Upstream
from gateway.upstreams.dialing import Dialer, Transport, own_headers
from gateway.upstreams.forwarding import Forwarder, chunks_of, lines_of
from gateway.upstreams.http1_connection import Response
from gateway.wire import headers as names
from gateway.wire.jsonrpc import Failure, NotJson, NotJsonRpc, decode, parse

_MOST_OF_A_REFUSAL: Final = 64 * 1024
_WANTS_SESSION: Final = 400
_REFUSALS: Final = frozenset({400, 404, 405})
_LEGACY_REFUSALS: Final = frozenset({-32600, -32000, -32001, -32022})
"""What legacy servers say to a request without a session; a modern one may mean something else by it."""
_SESSION_ID: Final = names.SESSION_ID.lower()
_HANDSHAKE_SECONDS: Final = 2.0
"""How long a visitor waits who may be none. Clients of Streamable HTTP that ask for a stream before they have a session
(the AI SDK's) ask again once they have one, but only if none was given to them by then."""
_WITHOUT_LENGTH: Final = frozenset({"content-length"})


class Passthrough:
    """Hands requests on to one upstream, from `start` to `close`."""

    def __init__(
        self,
        name: str,
        settings: Upstream,
        dialer: Dialer,
        envelope: Envelope,
        meet: "Callable[[], asyncio.Task[None]]",
        doubt: Callable[[], None],
        gateway_info: Mapping[str, str],
    ) -> None:
        self._dialer = dialer
        self._envelope = envelope
        self._addressee = f"endpoint/{name}"
        self._meet = meet
        self._patience = settings.connect_timeout
        self._standing: set[asyncio.Task[object]] = set()
        self._is_ending = False
        self.forwarder = forwarder_to(settings)
        self._metadata_place: str | None = None
        self._process = ModernProcess(
            lambda: dialer.connect(None), doubt, gateway_info, list_seconds=settings.call_timeout
        )
        sessions = settings.sessions
        self._sessions = LegacySessions(
            dialer.connect,
            most=sessions.max,
            idle=sessions.idle,
            patience=settings.call_timeout,
            new_id=lambda: secrets.token_hex(16),
        )

        self._visits = Visits(
            dialer.connect,
            most=sessions.max,
            patience=settings.call_timeout,
            new_id=lambda: secrets.token_hex(16),
        )

    async def start(self) -> None:
        """Get ready; the upstream need not be there yet."""
        if self.forwarder is not None:
            await self.forwarder.start()
        self._sessions.start()

    async def close(self) -> None:
        """Close what is still open."""
        await self._visits.close()
        await self._process.close()
        await self._sessions.close()
        if self.forwarder is not None:
            await self.forwarder.close()

    def end_streams(self) -> None:
        """End the streams that would never end by themselves; their clients open others, elsewhere."""
        self._is_ending = True
        self._visits.end_idle()
        self._process.end_streams()
        for task in self._standing:
            task.cancel()

    @contextlib.asynccontextmanager
    async def pass_legacy(self, knock: Knock) -> AsyncIterator[Passage]:
        """The response to a legacy client's request.

        Raises:
            UpstreamFault: there is none.
        """
        transport = await self._transport()
        is_visitor = knock.is_visit(to_streamable_http=transport == "streamable-http")
        address = address_in(knock.query)
        passing: AbstractAsyncContextManager[Passage]
        if address is not None and address.startswith(VISIT):
            passing = _held(await self._visits.post(knock, address))
        elif address is not None:
            passing = self._to_endpoint(knock)
        elif is_visitor:
            if transport != "sse" and knock.shows_version:
                await asyncio.sleep(_HANDSHAKE_SECONDS)
            passing = self._event_stream(knock) if transport == "sse" else self._visited(knock)
        elif transport == "streamable-http":
            passing = self._passed_or_visited(knock) if knock.may_be_visit else self.pass_on(knock)
        else:
            passing = _held(await self._sessions.serve(knock))
        async with passing as passage:
            if knock.verb == "GET" and not is_visitor:
                with self._stands():
                    yield passage
            else:
                yield passage

    @contextlib.asynccontextmanager
    async def pass_on(self, knock: Knock) -> AsyncIterator[Passage]:
        """The upstream's response, as it is."""
        if knock.owner is not None and knock.session_id is not None:
            theirs = self._opened(knock.session_id, f"session/{knock.owner}")
            if theirs is None:
                yield Passage.refused(404, -32001, "Session not found")
                return
            knock = _with_session(knock, theirs)
        async with self._forwarder().sent(
            knock.verb, knock.headers, knock.body, query=knock.query
        ) as response:
            passage = _as_it_is(response)
            if knock.owner is not None and names.SESSION_ID in response.headers:
                passage = self._bound(passage, response.headers[names.SESSION_ID], knock.owner)
            yield passage

    async def check(self, request: ClientRequest) -> None:
        """Say of a call's `Mcp-Param-*` headers what a modern upstream that is a process cannot."""
        if self.forwarder is None:
            await self._process.check(request)

    @contextlib.asynccontextmanager
    async def pass_modern(self, knock: Knock, era: UpstreamEra) -> AsyncIterator[Passage]:
        """A modern upstream's response, as it is.

        Raises:
            UpstreamChanged: the refusal is that of a legacy server, which it has become.
        """
        if self.forwarder is None:
            async with _held(await self._process.serve(knock)) as passage:
                yield passage
            return
        async with self._forwarder().sent(
            knock.verb, knock.headers, knock.body, query=knock.query
        ) as response:
            if response.status not in _REFUSALS:
                yield _as_it_is(response)
                return
            start = await _start_of(response)
            if not _is_modern_refusal(start):
                era.doubt()
                await era.settle(knock.authorization)
                # No modern server gives out session ids, whatever it may have said of itself a moment ago.
                if not era.is_modern or names.SESSION_ID in response.headers:
                    raise UpstreamChanged("it refuses as a legacy server")
            yield _as_it_is(response, start)

    # --- HTTP+SSE ------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _event_stream(self, knock: Knock) -> AsyncIterator[Passage]:
        forwarder = self._forwarder()
        async with forwarder.sent(knock.verb, knock.headers, knock.body, query=knock.query) as response:

            def own_address(theirs: str) -> str:
                place = forwarder.place_of(theirs, response.url)
                return f"{knock.path}?{ADDRESS}={self._sealed(place, knock.owner or '')}"

            yield Passage(
                response.status,
                end_to_end(list(lines_of(response)), without=_WITHOUT_LENGTH),
                with_own_endpoint(chunks_of(response), own_address),
                response.reason,
            )

    @contextlib.asynccontextmanager
    async def _to_endpoint(self, knock: Knock) -> AsyncIterator[Passage]:
        place = self._opened(address_in(knock.query) or "", knock.owner or "")
        if place is None or self.forwarder is None:
            yield Passage.refused(404, -32001, "Session not found")
            return
        async with self.forwarder.sent(knock.verb, knock.headers, knock.body, place=place) as response:
            yield _as_it_is(response)

    def _sealed(self, text: str, owner: str) -> str:
        """What only this owner can use, here or at another replica; nobody's own is for whoever has it."""
        sealed = self._envelope.seal(text.encode(), self._to(owner))
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def _to(self, owner: str) -> str:
        return f"{self._addressee}/{owner}" if owner else self._addressee

    def _opened(self, text: str, owner: str) -> str | None:
        try:
            sealed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            return self._envelope.open(sealed, self._to(owner)).decode()
        except (binascii.Error, LetterRefused, ValueError):
            return None

    def _bound(self, passage: Passage, theirs: str, owner: str) -> Passage:
        """The same response, with the session's id sealed for the one who opened it."""
        sealed = self._sealed(theirs, f"session/{owner}")
        others = [(name, value) for name, value in passage.headers if name.lower() != _SESSION_ID]
        return replace(passage, headers=[*others, (names.SESSION_ID, sealed)])

    # --- where to log in -----------------------------------------------------------------

    def is_own_metadata(self, url: str) -> bool:
        """Is it where the upstream itself has its protected-resource metadata?"""
        if self.forwarder is None or not self.forwarder.is_own(url):
            return False
        parts = urlsplit(url)
        self._metadata_place = f"{parts.path}?{parts.query}" if parts.query else parts.path
        return True

    async def resource_metadata(self) -> dict[str, Any] | None:
        """The upstream's protected-resource metadata, from where it said or from where that belongs.

        Raises:
            UpstreamFault: it cannot be reached.
        """
        forwarder = self._forwarder()
        usual = (f"{names.WELL_KNOWN}{forwarder.path.rstrip('/')}", names.WELL_KNOWN)
        for place in dict.fromkeys([*([self._metadata_place] if self._metadata_place else []), *usual]):
            try:
                async with (
                    asyncio.timeout(self._patience),
                    forwarder.sent("GET", [("Accept", names.JSON)], b"", place=place) as response,
                ):
                    if response.status != 200:
                        continue
                    found = _object(await _start_of(response))
            except TimeoutError:
                raise UpstreamTimedOut("its metadata") from None
            if found is not None:
                return found
        return None

    # --- another transport ---------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _passed_or_visited(self, knock: Knock) -> AsyncIterator[Passage]:
        """The stream of a client without a session; a visit where the server wants a session id to be shown.

        To a client of Streamable HTTP it would have given one, once that had made its handshake. A server without
        session ids that has no stream says 405, so that this proves nothing.
        """
        async with self.pass_on(knock) as passage:
            if passage.status != _WANTS_SESSION:
                yield passage
                return
        await asyncio.sleep(_HANDSHAKE_SECONDS)
        async with self._visited(knock) as passage:
            yield passage

    def _visited(self, knock: Knock) -> AbstractAsyncContextManager[Passage]:
        return _held(self._visits.begin(knock, lambda visit: f"{knock.path}?{ADDRESS}={visit}"))

    # --- which way -----------------------------------------------------------------------

    async def _transport(self) -> Transport:
        """What the upstream speaks. Not known yet: the handshake that was to find it out is tried again."""
        if self._dialer.transport is None:
            await asyncio.wait([self._meet()], timeout=self._patience)
        return self._dialer.transport or "streamable-http"

    def _forwarder(self) -> Forwarder:
        if self.forwarder is None:
            raise AssertionError("a command has no address")
        return self.forwarder

    @contextlib.contextmanager
    def _stands(self) -> Iterator[None]:
        task = asyncio.current_task()
        if task is None or self._is_ending:
            yield
            return
        self._standing.add(task)
        try:
            yield
        finally:
            self._standing.discard(task)


def forwarder_to(settings: Upstream) -> Forwarder | None:
    """The way to an upstream for what is not ours; None: it is a command."""
    if settings.url is None:
        return None
    return Forwarder(
        settings.url,
        connect_timeout=settings.connect_timeout,
        tls=client_context(settings.tls) if settings.tls.is_set else None,
        own_headers=own_headers(settings),
    )


@contextlib.asynccontextmanager
async def _held(passage: Passage) -> AsyncIterator[Passage]:
    """One of our own: told when nobody reads it any more."""
    try:
        yield passage
    finally:
        if passage.left is not None:
            passage.left()


def _as_it_is(response: Response, start: bytes = b"") -> Passage:
    chunks = _after(start, response) if start else chunks_of(response)
    return Passage(response.status, end_to_end(list(lines_of(response))), chunks, response.reason)


async def _after(start: bytes, response: Response) -> AsyncIterator[bytes]:
    yield start
    async for chunk in chunks_of(response):
        yield chunk


async def _start_of(response: Response) -> bytes:
    """The whole body of an ordinary refusal, or as much of a longer one as is needed to know."""
    start = bytearray()
    async for chunk in chunks_of(response):
        start += chunk
        if len(start) > _MOST_OF_A_REFUSAL:
            break
    return bytes(start)


def _with_session(knock: Knock, session_id: str) -> Knock:
    others = [(name, value) for name, value in knock.headers if name.lower() != _SESSION_ID]
    return replace(knock, headers=[*others, (names.SESSION_ID, session_id)], session_id=session_id)


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        found = decode(body)
    except NotJson:
        return None
    return found if isinstance(found, dict) else None


def _is_modern_refusal(body: bytes) -> bool:
    try:
        answer = parse(body)
    except (NotJson, NotJsonRpc):
        return False
    return isinstance(answer, Failure) and answer.code not in _LEGACY_REFUSALS
