"""Sessions with one upstream: opened, leased to one exchange at a time, kept for the next, closed.

A session is never given to another caller than the one it was opened for: the
key is principal, credentials, declared capabilities and client. The pool knows
nothing of what is done under a lease.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final

from gateway.errors import GatewayError, Overloaded
from gateway.settings.model import Sessions
from gateway.upstreams.background import Background
from gateway.upstreams.session import Session

_ROUNDS_OF_REAPING: Final = 4
"""How often in an idle time the idle sessions are looked through."""


@dataclass(frozen=True, slots=True)
class Caller:
    """For whom a session is: everything that the upstream could tell two callers apart by."""

    principal: str
    is_authenticated: bool
    capabilities: str
    """Canonical JSON of the declared client capabilities."""
    client_info: str
    """Canonical JSON of the client's own name and version."""
    authorization: str | None
    """The credential that goes upstream with every request of the session."""

    def __repr__(self) -> str:
        return f"Caller({self.principal!r})"  # a credential has no business in a log


class Pool:
    """Leases sessions. All bounds on sessions are kept here, none by the HTTP client."""

    def __init__(self, settings: Sessions, open_for: Callable[[Caller], Awaitable[Session]]) -> None:
        self._settings = settings
        self._open_for = open_for
        self._idle: dict[Caller, list[Session]] = {}
        self._idle_since: OrderedDict[Session, tuple[Caller, float]] = OrderedDict()
        self._owner: dict[Session, Caller] = {}
        self._taken = 0
        """Sessions idle, at work or being opened; parked ones are the holds' business."""
        self._queue: deque[asyncio.Future[None]] = deque()
        self._turns: dict[Caller, asyncio.Lock] = {}
        self._warming: set[Caller] = set()
        self._background = Background()
        self._is_closed = False

    def start(self) -> None:
        """Begin to close sessions that nobody uses."""
        self._background.start(self._reap(), "reap-sessions")

    # --- leases ------------------------------------------------------------------

    async def lease(self, caller: Caller) -> Session:
        """A session of this caller's own, for one exchange.

        Raises:
            Overloaded: none became free in time.
            UpstreamFault: none could be opened.
        """
        if self._settings.mode == "affinity":
            await self._take_turn(caller)
        try:
            session = self._pop_idle(caller)
            if session is None:
                session = await self._open(caller)
        except BaseException:
            self._end_turn(caller)
            raise
        self._keep_warm(caller, session)
        return session

    def release(self, session: Session, *, reusable: bool) -> None:
        """End a lease. A session that may still have something to say about its last call is not used again."""
        caller = self._owner[session]
        if reusable and not session.is_dead and not self._is_closed and self._may_reuse(caller, session):
            self._put_idle(caller, session)
        else:
            self._retire(session)
        self._end_turn(caller)

    def park(self) -> None:
        """A leased session is held now: it no longer counts against `sessions.max`."""
        self._free_place()

    def unpark(self) -> None:
        """A held session works again. A client that comes back is never made to queue."""
        self._taken += 1

    def counts(self) -> dict[str, int]:
        """How many sessions there are, by state."""
        return {"idle": len(self._idle_since), "open": len(self._owner)}

    async def close(self) -> None:
        """Close every session, and wait for the servers to take note."""
        self._is_closed = True
        for waiter in self._queue:
            if not waiter.done():
                waiter.set_exception(Overloaded("shutting down"))
        await self._background.close()
        await asyncio.gather(*(session.close() for session in list(self._owner)), return_exceptions=True)
        self._owner.clear()
        self._idle.clear()
        self._idle_since.clear()

    def forget(self, session: Session) -> None:
        """The session ended on the server's side. A leased one is left to its exchange to find out."""
        if session in self._idle_since:
            self._remove_idle(session)
            self._retire(session)

    # --- which session -----------------------------------------------------------

    def _may_reuse(self, caller: Caller, session: Session) -> bool:
        match self._settings.mode:
            case "pooled" | "affinity":
                return True
            case "fresh":
                return session.served_calls == 0
            case "auto":
                return session.served_calls == 0 or caller.is_authenticated or session.id is None

    def _pop_idle(self, caller: Caller) -> Session | None:
        stack = self._idle.get(caller)
        if not stack:
            return None
        session = stack[-1]
        self._remove_idle(session)
        return session

    def _put_idle(self, caller: Caller, session: Session) -> None:
        self._idle.setdefault(caller, []).append(session)
        self._idle_since[session] = (caller, asyncio.get_running_loop().time())
        self._wake_one()

    def _remove_idle(self, session: Session) -> None:
        caller, _ = self._idle_since.pop(session)
        stack = self._idle[caller]
        stack.remove(session)
        if not stack:
            del self._idle[caller]

    async def _open(self, caller: Caller) -> Session:
        await self._take_place()
        try:
            session = await self._open_for(caller)
        except BaseException:
            self._free_place()
            raise
        self._owner[session] = caller
        if self._is_closed:
            self._retire(session)
            raise Overloaded("shutting down")
        return session

    def _retire(self, session: Session) -> None:
        if self._owner.pop(session, None) is not None:
            self._free_place()
            self._background.start(session.close(), "close-session")

    # --- warm spares ---------------------------------------------------------------

    def _keep_warm(self, caller: Caller, session: Session) -> None:
        """Where a call uses a session up, have the next one ready before it is wanted."""
        if self._settings.warm == 0 or caller in self._warming or self._will_reuse(caller, session):
            return
        self._warming.add(caller)
        self._background.start(self._warm(caller), "warm-sessions")

    def _will_reuse(self, caller: Caller, session: Session) -> bool:
        match self._settings.mode:
            case "pooled" | "affinity":
                return True
            case "fresh":
                return False
            case "auto":
                return caller.is_authenticated or session.id is None

    async def _warm(self, caller: Caller) -> None:
        try:
            while len(self._idle.get(caller, ())) < self._settings.warm and self._taken < self._settings.max:
                self._put_idle(caller, await self._open(caller))
        except GatewayError:
            return  # the next call will find out for itself, and say so
        finally:
            self._warming.discard(caller)

    # --- bounds --------------------------------------------------------------------

    async def _take_place(self) -> None:
        if self._taken >= self._settings.max and self._idle_since:
            self._evict_oldest()
        if self._taken < self._settings.max and not self._queue:
            self._taken += 1
            return
        waiter = asyncio.get_running_loop().create_future()
        self._queue.append(waiter)
        try:
            async with asyncio.timeout(self._settings.wait):
                await waiter
        except BaseException as error:
            if waiter in self._queue:
                self._queue.remove(waiter)
            elif waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._free_place()  # it was given to us in the moment in which we gave up
            if isinstance(error, TimeoutError):
                raise Overloaded(f"no session became free in {self._settings.wait} s") from None
            raise

    def _free_place(self) -> None:
        self._taken -= 1
        self._wake_one()

    def _wake_one(self) -> None:
        """Let the one who waits longest have the place that is free, or that an idle session can make free."""
        if not self._queue:
            return
        if self._taken >= self._settings.max:
            if self._idle_since:
                self._evict_oldest()  # comes back here through `_free_place`
            return
        while self._queue:
            waiter = self._queue.popleft()
            if not waiter.done():
                self._taken += 1
                waiter.set_result(None)
                return

    def _evict_oldest(self) -> None:
        oldest = next(iter(self._idle_since))
        self._remove_idle(oldest)
        self._retire(oldest)

    # --- one session per caller, calls in turn ---------------------------------------

    async def _take_turn(self, caller: Caller) -> None:
        lock = self._turns.setdefault(caller, asyncio.Lock())
        try:
            async with asyncio.timeout(self._settings.wait):
                await lock.acquire()
        except TimeoutError:
            raise Overloaded("the caller's one session is busy") from None

    def _end_turn(self, caller: Caller) -> None:
        lock = self._turns.get(caller)
        if lock is None or not lock.locked():
            return
        lock.release()

    # --- idle sessions ---------------------------------------------------------------

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(self._settings.idle / _ROUNDS_OF_REAPING)
            for session in list(self._expired(asyncio.get_running_loop().time())):
                self._remove_idle(session)
                self._retire(session)
            self._turns = {
                caller: lock for caller, lock in self._turns.items() if lock.locked() or caller in self._idle
            }

    def _expired(self, now: float) -> Iterator[Session]:
        for session, (_, since) in self._idle_since.items():
            if now - since < self._settings.idle:
                return
            yield session
