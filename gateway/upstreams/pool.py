"""Sessions with one upstream: opened, leased to one exchange at a time, kept for the next, closed.

A session is never given to another caller than the one it was opened for: the
key is principal, credentials, declared capabilities and client. The pool knows
nothing of what is done under a lease.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from gateway.errors import GatewayError, Overloaded
from gateway.settings.upstream import Sessions
from gateway.telemetry.names import SessionState
from gateway.upstreams.background import Background
from gateway.upstreams.openings import Openings
from gateway.upstreams.session import Session
from gateway.upstreams.turns import Turns

_ROUNDS_OF_REAPING: Final = 4
"""How often in an idle time the idle sessions are looked through."""
_TURN_SECONDS: Final = 60.0
"""How long a call waits where there is room for its session, but only so many can be opened at once."""
_FAREWELL_SECONDS: Final = 6.0
"""How long sessions that were let go just before the end may take to be ended at the server too."""


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
    _hash: int = field(init=False, repr=False, compare=False)
    """Made once: a call looks for its caller's sessions, turns and spares, and each time by this."""

    def __post_init__(self) -> None:
        key = (self.principal, self.is_authenticated, self.capabilities, self.client_info, self.authorization)
        object.__setattr__(self, "_hash", hash(key))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Caller({self.principal!r})"  # a credential has no business in a log


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    """A call in the queue. It is given a session of its caller's, or None: a place in which to open one."""

    caller: Caller
    given: "asyncio.Future[Session | None]"


class Pool:
    """Leases sessions. All bounds on sessions are kept here, none by the HTTP client."""

    def __init__(
        self,
        settings: Sessions,
        open_for: Callable[[Caller], Awaitable[Session]],
        *,
        most_opening: int | None = None,
    ) -> None:
        self._settings = settings
        self._most_opening = most_opening or settings.max
        """How many are opened at once. Whoever waits for its turn is given one that becomes free before."""
        self._open_for = open_for
        self._openings = Openings(self._open_now, self._retire)
        self._idle: dict[Caller, list[Session]] = {}
        self._idle_since: OrderedDict[Session, tuple[Caller, float]] = OrderedDict()
        self._owner: dict[Session, Caller] = {}
        self._attached: set[Session] = set()
        """Sessions that somebody listens on beside the calls: not idle, even if no call uses them."""
        self._renewed: set[Session] = set()
        """Leased sessions that show the server another credential by now than their callers have."""
        self._taken = 0
        """Sessions idle, at work or being opened; parked ones are the holds' business."""
        self._opening = 0
        self._queue: deque[_Waiter] = deque()
        self._turns = Turns(settings.wait)
        """Under `affinity` a caller has one session."""
        self._warming: set[Caller] = set()
        self._background = Background()
        self._farewells = Background()
        self._is_closed = False

    def start(self) -> None:
        """Begin to close sessions that nobody uses."""
        self._background.start(self._reap(), "reap-sessions")

    # --- leases ------------------------------------------------------------------

    async def lease(self, caller: Caller, *, new: bool = False, spares: bool = True) -> Session:
        """A session of this caller's own, for one exchange.

        Args:
            caller: Whose.
            new: Open one. For a caller whose idle session turned out to be gone: the others may be as well.
            spares: Have the next one opened ahead, where this one will be used up.

        Raises:
            Overloaded: none became free in time.
            UpstreamFault: none could be opened.
        """
        if self._is_closed:
            raise Overloaded("shutting down")
        if self._settings.mode == "affinity":
            await self._turns.take(caller)
        try:
            session = None if new else self._pop_idle(caller)
            if session is None:
                session = await self._open(caller, new=new)
        except BaseException:
            self._turns.end(caller)
            raise
        if spares:
            self._keep_warm(caller, session)
        return session

    def release(self, session: Session, *, reusable: bool) -> None:
        """End a lease. A session that may still have something to say about its last call is not used again."""
        caller = self._owner.get(session)
        if caller is None:
            return  # closed with all the others
        is_sound = reusable and not session.is_dead and session not in self._renewed
        if is_sound and not self._is_closed and self._may_reuse(caller, session):
            self._put_idle(caller, session)
        else:
            self._retire(session)
        self._turns.end(caller)

    def authorize(self, session: Session, authorization: str) -> None:
        """Who called came back with this credential. With another than before, it is for this call and no later one."""
        session.authorize(authorization)
        caller = self._owner.get(session)
        is_other = caller is not None and caller.authorization != authorization
        (self._renewed.add if is_other else self._renewed.discard)(session)

    def park(self) -> None:
        """A leased session is held now: it no longer counts against `sessions.max`."""
        self._free_place()

    def unpark(self) -> None:
        """A held session works again. A client that comes back is never made to queue."""
        self._taken += 1

    def adopt(self, caller: Caller, session: Session) -> None:
        """A session that another process opened is leased here now; like one that comes back from a hold."""
        self._owner[session] = caller
        self._taken += 1

    def disown(self, session: Session) -> None:
        """Another process has the session now: forget a leased one, without a word to the server."""
        self._renewed.discard(session)
        caller = self._owner.pop(session, None)
        if caller is not None:
            self._free_place()
            self._turns.end(caller)
            self._background.start(session.abandon(), "abandon-session")

    async def attach(self, caller: Caller) -> Session:
        """The one session of a caller under `affinity`, to be heard beside the calls that it serves.

        It is not closed for being idle until `detach`. If a call ends it, its `death` says so.
        """
        session = next((mine for mine, owner in self._owner.items() if owner == caller), None)
        if session is None or session.is_dead:
            session = await self.lease(caller)
            self.release(session, reusable=True)
        self._attached.add(session)
        return session

    def detach(self, session: Session) -> None:
        """Nobody listens on it any more."""
        self._attached.discard(session)
        self._wake_one()  # now it may go, if it is idle and another needs its place

    def counts(self) -> dict[str, int]:
        """How many sessions there are, by state."""
        return {"idle": len(self._idle_since), "open": len(self._owner)}

    def states(self) -> dict[SessionState, int]:
        """How many are in which part of their life."""
        idle, opening = len(self._idle_since), self._opening
        leased = self._taken - idle - opening
        counts = (opening, idle, leased, len(self._owner) - idle - leased)
        return dict(zip(SessionState, counts, strict=True))

    async def close(self) -> None:
        """Close every session, and wait for the servers to take note."""
        self._is_closed = True
        while self._queue:
            waiter = self._queue.popleft()
            if not waiter.given.done():
                waiter.given.set_exception(Overloaded("shutting down"))
        await self._background.close()
        await self._openings.close()
        for session in self._owner:
            self._farewells.start(session.close(), "close-session")
        self._owner.clear()
        self._idle.clear()
        self._idle_since.clear()
        # Not cut short: a session that was let go a moment ago is still to be ended at the server.
        await self._farewells.settle(_FAREWELL_SECONDS)
        await self._farewells.close()

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
        first = self._first_in_queue()
        if first is not None and first.caller == caller:
            self._queue.popleft().given.set_result(session)  # no handshake for what is at hand
            return
        self._idle.setdefault(caller, []).append(session)
        self._idle_since[session] = (caller, asyncio.get_running_loop().time())
        if self._taken > self._settings.max:
            self._evict_oldest()  # holds brought back more than there may be
        else:
            self._wake_one()

    def _remove_idle(self, session: Session) -> None:
        caller, _ = self._idle_since.pop(session)
        stack = self._idle[caller]
        stack.remove(session)
        if not stack:
            del self._idle[caller]

    async def _open(self, caller: Caller, *, new: bool = False) -> Session:
        given = await self._take_place(caller)
        if given is not None:
            if not new and not given.is_dead:
                return given
            self._retire(given, keep_place=True)
            self._opening += 1
        return await self._openings.open(caller)

    async def _open_now(self, caller: Caller) -> Session:
        try:
            session = await self._open_for(caller)
        except BaseException:
            self._free_place(unopened=True)
            raise
        self._opening -= 1
        self._owner[session] = caller
        self._wake_one()
        if self._is_closed:
            self._retire(session)
            raise Overloaded("shutting down")
        return session

    def _retire(self, session: Session, *, keep_place: bool = False) -> None:
        self._attached.discard(session)
        self._renewed.discard(session)
        if self._owner.pop(session, None) is not None:
            self._farewells.start(session.close(), "close-session")
            if not keep_place:
                self._free_place()

    # --- warm spares ---------------------------------------------------------------

    def _keep_warm(self, caller: Caller, session: Session) -> None:
        """Where a call uses a session up, have the next one ready before it is wanted."""
        if self._is_closed or caller in self._warming or self._will_reuse(caller, session):
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

    async def _take_place(self, caller: Caller) -> Session | None:
        """Wait for a place in which to open a session; sometimes one of the caller's own becomes free before."""
        if self._taken >= self._settings.max and self._idle_since:
            self._evict_oldest()
        if self._first_in_queue() is None and self._take_room():
            return None
        seconds = self._settings.wait if self._taken >= self._settings.max else _TURN_SECONDS
        waiter = _Waiter(caller, asyncio.get_running_loop().create_future())
        self._queue.append(waiter)
        try:
            async with asyncio.timeout(seconds):
                return await waiter.given
        except BaseException as error:
            self._leave_queue(waiter)
            if isinstance(error, TimeoutError):
                raise Overloaded(f"no session became free in {seconds} s") from None
            raise

    def _take_room(self) -> bool:
        """A place, and the turn to open a session in it, if both can be had."""
        has_room = self._taken < self._settings.max and self._opening < self._most_opening
        self._taken += has_room
        self._opening += has_room
        return has_room

    def _leave_queue(self, waiter: _Waiter) -> None:
        if waiter in self._queue:
            self._queue.remove(waiter)
        elif waiter.given.done() and not waiter.given.cancelled() and waiter.given.exception() is None:
            # It was given something in the very moment in which it gave up.
            session = waiter.given.result()
            if session is None:
                self._free_place(unopened=True)
            else:
                self._put_idle(waiter.caller, session)

    def _free_place(self, *, unopened: bool = False) -> None:
        self._opening -= unopened
        self._taken -= 1
        self._wake_one()

    def _wake_one(self) -> None:
        """Let the one who waits longest have the place that is free, or that an idle session can make free."""
        first = self._first_in_queue()
        if first is None:
            return
        if self._take_room():
            self._queue.popleft()
            first.given.set_result(None)
        elif self._taken >= self._settings.max and self._idle_since:
            self._evict_oldest()  # comes back here through `_free_place`

    def _first_in_queue(self) -> _Waiter | None:
        while self._queue and self._queue[0].given.done():
            self._queue.popleft()  # gave up, and has not had the time to say so
        return self._queue[0] if self._queue else None

    def _evict_oldest(self) -> None:
        oldest = next((session for session in self._idle_since if session not in self._attached), None)
        if oldest is not None:
            self._remove_idle(oldest)
            self._retire(oldest)

    # --- idle sessions ---------------------------------------------------------------

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(self._settings.idle / _ROUNDS_OF_REAPING)
            for session in list(self._expired(asyncio.get_running_loop().time())):
                self._remove_idle(session)
                self._retire(session)

    def _expired(self, now: float) -> Iterator[Session]:
        for session, (_, since) in self._idle_since.items():
            if now - since < self._settings.idle:
                return
            if session not in self._attached:
                yield session
