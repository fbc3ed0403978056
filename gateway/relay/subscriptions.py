"""All clients of one upstream that listen, and the standing sessions that they share. It decides who joins which.

One standing session for each caller, shared by all of this caller's listeners.
A list that changes is told by some servers only to the session in which it was
changed, so whatever any session of a principal hears is told to all listeners of
that principal, and to nobody else's.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gateway.eras.subscriptions import Change, Interest, closing_result, offered, parse_interest
from gateway.errors import GatewayError, Overloaded
from gateway.relay.clocks import Alarm
from gateway.relay.lines import Line
from gateway.relay.listener import Reply
from gateway.relay.place import Ids
from gateway.relay.request import ClientRequest
from gateway.relay.standing import Standing
from gateway.relay.subscription import Subscription
from gateway.settings.upstream import Subscriptions as Limits
from gateway.telemetry.logs import Log
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import Outcome
from gateway.upstreams.background import Background
from gateway.upstreams.pool import Caller

_NOTHING: Final = Interest()


@dataclass(slots=True, eq=False)
class _Shared:
    """A standing session and who listens on it."""

    standing: Standing
    idle: Alarm
    listeners: set[Subscription] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class _Seat:
    """What a listener takes up."""

    caller: Caller
    shared: _Shared | None = None
    uris: tuple[str, ...] = ()
    """Held at the standing session."""
    joining: "asyncio.Task[None] | None" = None
    lifetime: Alarm | None = None


class Subscriptions:
    """From the first `listen` to `close`."""

    def __init__(
        self,
        name: str,
        limits: Limits,
        line: Line,
        *,
        ids: Ids,
        metrics: Metrics,
        log: Log,
        server_info: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._name = name
        self._limits = limits
        self._line = line
        self._ids = ids
        self._metrics = metrics
        self._log = log
        self._server_info = server_info
        self._background = Background()
        self._seats: dict[Subscription, _Seat] = {}
        self._by_principal: Counter[str] = Counter()
        self._shared: dict[str, dict[Caller, _Shared]] = {}
        """By principal, then by caller."""
        self._is_closed = False

    # --- the client's side -----------------------------------------------------------

    def listen(self, request: ClientRequest) -> Subscription:
        """Begin to listen. What is honoured, or why nothing can be, is said by what is returned.

        Raises:
            InvalidParams: the filter is malformed, or what the client says of itself.
            Overloaded: there are too many already.
        """
        wanted = parse_interest(request.params, most_uris=self._limits.resources)
        caller = request.caller()
        self._check_room(caller)
        subscription = Subscription(request.id, wanted, self._vacate)
        seat = self._seats[subscription] = _Seat(caller)
        self._by_principal[caller.principal] += 1
        self._metrics.subscriptions(self._name, len(self._seats))
        if self._limits.lifetime:
            seat.lifetime = Alarm(lambda: self._end(subscription))
            seat.lifetime.set(self._limits.lifetime)
        if wanted:
            seat.joining = self._background.start(self._join(subscription, seat), "listen")
        else:
            subscription.promise(_NOTHING)
        return subscription

    def hear(self, caller: Caller, change: Change) -> None:
        """A session of this caller was told something."""
        for shared in self._shared.get(caller.principal, {}).values():
            for subscription in shared.listeners:
                subscription.tell(change)

    def end(self) -> None:
        """The gateway stops: end all gracefully, and let nobody in."""
        self._is_closed = True
        for subscription in list(self._seats):
            self._end(subscription)

    async def close(self) -> None:
        """Let go of the standing sessions too."""
        self.end()
        for shared in [shared for callers in self._shared.values() for shared in callers.values()]:
            shared.idle.stop()
            await shared.standing.close()
        self._shared.clear()
        await self._background.close()
        await self._line.close()

    # --- coming and going --------------------------------------------------------------

    def _check_room(self, caller: Caller) -> None:
        if self._is_closed:
            raise Overloaded("shutting down")
        if len(self._seats) >= self._limits.max:
            raise Overloaded(f"{len(self._seats)} subscriptions")
        # Who is not authenticated is one principal with all others who are not: that is no one to be counted.
        mine = self._by_principal[caller.principal]
        if caller.is_authenticated and mine >= self._limits.per_principal:
            raise Overloaded(f"{mine} subscriptions of one principal")

    async def _join(self, subscription: Subscription, seat: _Seat) -> None:
        shared = self._seat(subscription, seat)
        standing = shared.standing
        try:
            server = await standing.ready()
        except GatewayError as error:
            self._end(subscription, Reply.of(error))
            return
        offer = offered(subscription.wanted, server.capabilities) if standing.can_hear else _NOTHING
        seat.uris = offer.uris
        standing.hold(offer.uris)
        taken = await asyncio.gather(*(standing.subscribe(uri) for uri in offer.uris))
        seat.uris = tuple(uri for uri, is_taken in zip(offer.uris, taken, strict=True) if is_taken)
        standing.drop([uri for uri, is_taken in zip(offer.uris, taken, strict=True) if not is_taken])
        promised = replace(offer, uris=seat.uris)
        subscription.promise(promised)
        if not promised:
            self._unseat(subscription, seat)  # it will not hear anything, so nothing need be kept up for it

    def _seat(self, subscription: Subscription, seat: _Seat) -> _Shared:
        caller = seat.caller
        callers = self._shared.setdefault(caller.principal, {})
        shared = callers.get(caller)
        if shared is None:
            standing = Standing(
                caller,
                self._line,
                ids=self._ids,
                background=self._background,
                log=self._log,
                on_gap=self._heard_again,
                on_end=self._lost,
            )
            shared = callers[caller] = _Shared(standing, Alarm(lambda: self._retire(standing)))
            standing.start()
        shared.idle.stop()
        shared.listeners.add(subscription)
        seat.shared = shared
        return shared

    def _unseat(self, subscription: Subscription, seat: _Seat) -> None:
        shared, seat.shared = seat.shared, None
        if shared is None:
            return
        uris, seat.uris = seat.uris, ()
        shared.standing.drop(uris)
        shared.listeners.discard(subscription)
        if not shared.listeners:
            shared.idle.set(self._limits.idle)

    def _end(self, subscription: Subscription, reply: Reply | None = None) -> None:
        """The last word, gracefully unless another one is given."""
        if reply is None:
            result = closing_result(subscription.id, self._server_info())
            reply = Reply(Outcome.COMPLETE, result=result)
            if not subscription.is_acknowledged:
                reply = Reply.of(Overloaded("shutting down"))
        self._vacate(subscription)
        subscription.finish(reply)

    def _vacate(self, subscription: Subscription) -> None:
        seat = self._seats.pop(subscription, None)
        if seat is None:
            return
        if seat.joining is not None and seat.joining is not asyncio.current_task():
            seat.joining.cancel()
        if seat.lifetime is not None:
            seat.lifetime.stop()
        principal = seat.caller.principal
        self._by_principal[principal] -= 1
        if not self._by_principal[principal]:
            del self._by_principal[principal]
        self._metrics.subscriptions(self._name, len(self._seats))
        self._unseat(subscription, seat)

    # --- standing sessions ---------------------------------------------------------------

    def _heard_again(self, standing: Standing) -> None:
        shared = self._of(standing)
        for subscription in shared.listeners if shared is not None else ():
            subscription.tell_everything()

    def _lost(self, standing: Standing, error: GatewayError) -> None:
        """It will not be heard again: say why to those who listen."""
        shared = self._forget(standing)
        for subscription in list(shared.listeners) if shared is not None else ():
            self._end(subscription, Reply.of(error))

    def _retire(self, standing: Standing) -> None:
        if self._forget(standing) is not None:
            self._background.start(standing.close(), "retire-standing")

    def _of(self, standing: Standing) -> _Shared | None:
        shared = self._shared.get(standing.caller.principal, {}).get(standing.caller)
        return shared if shared is not None and shared.standing is standing else None

    def _forget(self, standing: Standing) -> _Shared | None:
        shared = self._of(standing)
        if shared is not None:
            shared.idle.stop()
            callers = self._shared[standing.caller.principal]
            del callers[standing.caller]
            if not callers:
                del self._shared[standing.caller.principal]
        return shared
