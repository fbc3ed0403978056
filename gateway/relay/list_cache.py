"""Lists that were fetched, kept for those who ask next. It fetches nothing itself, and knows no session.

Off unless it is configured. Kept under everything that could make a difference
to a legacy server: the method, the parameters, and the caller; with `public` only
what the client can do is left of the caller, because servers offer tools by it.
Many who ask at once for what is not there cause one request. A list that the
server calls changed is gone at once, also for those who are waiting for it: what
is under way was perhaps read before the change, so it is given to nobody who
asks after it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from gateway.relay.listener import Reply
from gateway.relay.request import ClientRequest
from gateway.settings.upstream import Cache
from gateway.upstreams.background import Background
from gateway.upstreams.pool import Caller
from gateway.wire import canonical
from gateway.wire.jsonrpc import encode

Fetch: TypeAlias = Callable[[ClientRequest], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class _Key:
    method: str
    params: str
    """Digest of all parameters but `_meta`."""
    caller: Caller | str


@dataclass(frozen=True, slots=True)
class _Kept:
    reply: Reply
    until: float
    size: int


@dataclass(slots=True, eq=False)
class _Flight:
    """A request that is under way, and how many wait for it."""

    task: "asyncio.Task[Reply]"
    waiting: int = 0


class ListCache:
    """The lists of one upstream."""

    def __init__(self, settings: Cache, background: Background) -> None:
        self._settings = settings
        self._background = background
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._size = 0
        self._flights: dict[_Key, _Flight] = {}

    @property
    def is_on(self) -> bool:
        """Is anything kept at all?"""
        return self._settings.lists != "none"

    async def get(self, request: ClientRequest, fetch: Fetch) -> Reply:
        """The answer that is kept, or the one that `fetch` gives: once for all who want it now."""
        key = self._key(request)
        kept = self._kept.get(key)
        if kept is not None and kept.until > asyncio.get_running_loop().time():
            self._kept.move_to_end(key)
            return kept.reply
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(
                self._background.start(self._fetch(key, request, fetch), "fetch-list")
            )
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                flight.task.cancel()  # all have left
                self._land(key, flight.task)

    def drop(self, methods: Iterable[str]) -> None:
        """The server says that these have changed: whoever heard it, nothing of them is to be trusted."""
        gone = frozenset(methods)
        for key in [key for key in self._kept if key.method in gone]:
            self._remove(key)
        for key in [key for key in self._flights if key.method in gone]:
            del self._flights[key]

    def clear(self) -> None:
        """Nobody may have heard of changes for a while."""
        self._kept.clear()
        self._flights.clear()
        self._size = 0

    async def _fetch(self, key: _Key, request: ClientRequest, fetch: Fetch) -> Reply:
        task = asyncio.current_task()
        try:
            reply = await fetch(request)
        except BaseException:
            self._land(key, task)
            raise
        if self._land(key, task) and reply.result is not None:
            self._keep(key, reply)
        return reply

    def _land(self, key: _Key, task: "asyncio.Task[Reply] | None") -> bool:
        """A flight is over. False: it was too late, the list has changed meanwhile."""
        flight = self._flights.get(key)
        if flight is None or flight.task is not task:
            return False
        del self._flights[key]
        return True

    def _keep(self, key: _Key, reply: Reply) -> None:
        size = len(encode(reply.result))
        self._remove(key)
        if size > self._settings.size:
            return
        until = asyncio.get_running_loop().time() + self._settings.ttl
        self._kept[key] = _Kept(reply, until, size)
        self._size += size
        while self._size > self._settings.size:
            self._remove(next(iter(self._kept)))

    def _remove(self, key: _Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._size -= kept.size

    def _key(self, request: ClientRequest) -> _Key:
        params = {name: value for name, value in request.params.items() if name != "_meta"}
        caller = request.caller()
        is_public = self._settings.lists == "public"
        return _Key(
            request.method, canonical.digest(encode(params)), caller.capabilities if is_public else caller
        )
