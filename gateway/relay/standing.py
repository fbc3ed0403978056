r"""One caller's standing session: where the server is heard outside calls. It does not know who listens.

             take                     lost
    OPENING ------> UP <------> DOWN        (a pause before each try)
       \                         /
        refused                 not authorized any more
         \---------> ENDED <---/

A server that cannot be reached the first time is an answer for who wants to
listen. One that goes away later is waited for: the resources are subscribed to
again, and whoever listens is told that all of it may have changed. The same if
only the stream was interrupted.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from gateway.eras.discovery import Introduction
from gateway.errors import GatewayError, UpstreamChanged, UpstreamUnauthorized
from gateway.relay.lines import Line
from gateway.relay.place import Ids
from gateway.telemetry.logs import Log
from gateway.telemetry.names import LogEvent
from gateway.upstreams.background import Background
from gateway.upstreams.pool import Caller
from gateway.upstreams.session import Session
from gateway.wire.jsonrpc import Result

_PAUSES: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Before each try to be heard again; a session that lasted longer than the last of them starts afresh."""
_PING_SECONDS: Final = 30.0
"""Sessions that nobody uses are forgotten by some servers, and a stream that says nothing does not tell."""
_ANSWER_SECONDS: Final = 10.0
_AT_ONCE: Final = 8
"""Subscriptions that are asked for at the same time."""


class _Topic:
    """A resource that somebody wants to hear of."""

    __slots__ = ("count", "lock", "on")

    def __init__(self) -> None:
        self.count = 0
        self.lock = asyncio.Lock()
        """Subscribing and unsubscribing must not overtake each other."""
        self.on: Session | None = None
        """The session on which the server agreed to tell of it."""


class Standing:
    """Up from `start` to `close`, as far as the server lets it."""

    def __init__(
        self,
        caller: Caller,
        line: Line,
        *,
        ids: Ids,
        background: Background,
        log: Log,
        on_gap: "Callable[[Standing], None]",
        on_end: "Callable[[Standing, GatewayError], None]",
    ) -> None:
        self.caller = caller
        self.server: Introduction | None = None
        """How the server introduced itself last."""
        self._line = line
        self._ids = ids
        self._background = background
        self._log = log
        self._on_gap = on_gap
        self._on_end = on_end
        self._session: Session | None = None
        self._ready: asyncio.Future[Introduction] = asyncio.get_running_loop().create_future()
        self._topics: dict[str, _Topic] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to listen."""
        self._task = self._background.start(self._run(), "standing")

    async def close(self) -> None:
        """Stop listening; what was subscribed to on a session of its own ends with it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if not self._ready.done():
            self._ready.cancel()

    async def ready(self) -> Introduction:
        """Wait until the server is, or was once, heard.

        Raises:
            GatewayError: it could not be reached.
        """
        return await asyncio.shield(self._ready)

    @property
    def can_hear(self) -> bool:
        """Does the server have a stream to be heard on? In doubt it does: it had one."""
        return self._session is None or self._session.is_standing

    # --- resources ---------------------------------------------------------------------

    def hold(self, uris: Iterable[str]) -> None:
        """One more wants to hear of these."""
        for uri in uris:
            self._topics.setdefault(uri, _Topic()).count += 1

    def drop(self, uris: Iterable[str]) -> None:
        """One less does; with the last one the server is told."""
        for uri in uris:
            topic = self._topics[uri]
            topic.count -= 1
            if not topic.count:
                self._background.start(self._unsubscribe(uri, topic), "unsubscribe")

    async def subscribe(self, uri: str) -> bool:
        """Have the server tell of a resource that is held. False: it will not."""
        topic = self._topics.get(uri)
        if topic is None:
            return False  # nobody wants it any more
        async with self._turns, topic.lock:
            session = self._session
            if session is None:
                return True  # when the server is back it is asked, and until then nothing is missed
            if topic.count and topic.on is not session:
                topic.on = session if await self._request(session, "resources/subscribe", uri) else None
            return topic.on is session or session.is_dead

    async def _unsubscribe(self, uri: str, topic: _Topic) -> None:
        async with topic.lock:
            if not topic.count and topic.on is not None:
                session, topic.on = topic.on, None
                if session is self._session:
                    await self._request(session, "resources/unsubscribe", uri)
            if not topic.count and self._topics.get(uri) is topic:
                del self._topics[uri]

    async def _request(self, session: Session, method: str, uri: str) -> bool:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return isinstance(await session.call(self._ids.next(), method, {"uri": uri}), Result)
        except (GatewayError, TimeoutError):
            return False

    # --- the session -------------------------------------------------------------------

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        tries = 0
        while True:
            began = clock()
            try:
                session = await self._line.take(self.caller)
            except GatewayError as error:
                if not self._ready.done() or isinstance(error, UpstreamUnauthorized | UpstreamChanged):
                    self._fail(error)
                    return
            else:
                await self._attend(session)
                if clock() - began > _PAUSES[-1]:
                    tries = 0
            await asyncio.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
            tries += 1

    async def _attend(self, session: Session) -> None:
        """Be there until the session is lost."""
        told_before = session.on_gap

        def heard_again() -> None:
            if told_before is not None:
                told_before()
            self._on_gap(self)

        try:
            self.server = session.server
            self._session = session
            session.on_gap = heard_again
            if self._ready.done():
                await asyncio.gather(*(self.subscribe(uri) for uri in list(self._topics)))
                self._log.info(LogEvent.SESSION_OPENED, detail="listening again")
                self._on_gap(self)
            else:
                self._ready.set_result(session.server)
            while not session.is_dead:
                await self._watch(session)
            self._log.info(LogEvent.SESSION_LOST, detail="nobody can be heard any more")
        finally:
            self._session = None
            session.on_gap = told_before
            self._line.give_back(session)

    async def _watch(self, session: Session) -> None:
        try:
            async with asyncio.timeout(_PING_SECONDS):
                await session.death.wait()
        except TimeoutError:
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await session.call(self._ids.next(), "ping", {})
            except (GatewayError, TimeoutError):
                return  # busy, or dead: then it says so

    def _fail(self, error: GatewayError) -> None:
        if not self._ready.done():
            self._ready.set_exception(error)
            self._ready.exception()  # whoever waits will see it; it is not lost if nobody does any more
        self._on_end(self, error)
