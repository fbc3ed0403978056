"""How a retry finds its exchange again when this process does not have it. Each rung is tried once, in order.

    live         the hold is here: no ladder is needed
    reattached   the legacy session lives and its server remembers what it sent: read on. Nothing runs twice.
    replayed     run the call again and answer from the journal; only where policy allows it
    refused      say so, precisely

Which rung is right follows from the ticket alone; what each does is the driver's.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from weakref import WeakValueDictionary

from gateway.eras.answers import sift
from gateway.eras.asks import fingerprint
from gateway.eras.exchange import Exchange
from gateway.eras.questions import Entry
from gateway.eras.reruns import MOST_RUNS, Past
from gateway.eras.vocabulary import Ask, Kind
from gateway.errors import CallLost, GatewayError
from gateway.relay.driver import Driver, new_exchange
from gateway.relay.listener import Listener
from gateway.relay.place import Place
from gateway.relay.replays import ReplayPolicy
from gateway.relay.request import ClientRequest
from gateway.sealing.claims import Claims
from gateway.telemetry.names import Rung
from gateway.upstreams.pool import Caller
from gateway.upstreams.session import Session
from gateway.wire.jsonrpc import Params, decode_members

_PING_SECONDS: Final = 5.0

Reopen = Callable[[Caller, str, str], Awaitable[Session]]
"""Speak in a session of this id and revision that another process opened."""


class Ladder:
    """The way back for one upstream's exchanges."""

    def __init__(self, place: Place, replays: ReplayPolicy, reopen: Reopen) -> None:
        self._place = place
        self._replays = replays
        self._reopen = reopen
        self._climbing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def resume(
        self,
        listener: Listener,
        request: ClientRequest,
        claims: Claims,
        answers: Mapping[str, Params],
        digest: str,
    ) -> None:
        """Hand the round to its exchange, wherever that has to be brought back from.

        Raises:
            CallLost: it cannot be brought back.
        """
        # Two retries of one ticket must not bring it back twice.
        async with self._climbing.setdefault(claims.exchange, asyncio.Lock()):
            driver = self._place.ledger.find(claims.exchange) or await self._reattach(
                listener, request, claims
            )
            if driver is None:
                await self._replay(listener, request, claims, answers, digest)
                return
            if driver.is_stranded:
                driver.allow_rerun(allowed=await self._replays.allows(request))
        driver.resume(listener, request, claims.round, answers, digest)

    async def _reattach(self, listener: Listener, request: ClientRequest, claims: Claims) -> Driver | None:
        if not claims.is_whole or claims.session_id is None:
            return None
        if claims.request_id is None or claims.last_event_id is None:
            return None  # the call was not sent yet, or its stream has no memory
        place, caller = self._place, request.caller()
        try:
            session = await self._reopen(caller, claims.session_id, claims.version)
        except GatewayError:
            return None
        if not await self._answers(session):
            await session.close()
            return None
        place.pool.adopt(caller, session)
        exchange = Exchange.restored(
            place.policy, place.naming(request.target), _past(claims), may_rerun=False
        )
        driver = Driver(place, claims.exchange, request, session, exchange)
        if not driver.pick_up(claims.request_id, claims.last_event_id):
            place.pool.release(session, reusable=False)
            return None
        listener.rung = Rung.REATTACHED
        return driver

    async def _answers(self, session: Session) -> bool:
        """Does the server still know the session?"""
        try:
            async with asyncio.timeout(_PING_SECONDS):
                await session.call(self._place.ids.next(), "ping", {})
        except (GatewayError, TimeoutError):
            return False
        return True

    async def _replay(
        self,
        listener: Listener,
        request: ClientRequest,
        claims: Claims,
        answers: Mapping[str, Params],
        digest: str,
    ) -> None:
        listener.rung = Rung.REFUSED
        if not claims.is_whole:
            raise CallLost("journal_too_large", "the ticket had no room for what was asked and answered")
        if claims.runs >= MOST_RUNS:
            raise CallLost("asks_differ", f"run {claims.runs} times, and asked something else each time")
        if not await self._replays.allows(request):
            raise CallLost(
                "hold_lost", "no exchange for this ticket in this process, and policy allows no replay"
            )
        past = _past(claims)
        given = sift(past.open_asks, answers, self._place.policy.unfit)
        told = [
            Entry(key, past.open_asks[key].kind, fingerprint(past.open_asks[key]), answer)
            for key, answer in given.items()
        ]
        again = Past(past.round, past.runs + 1, [*past.journal, *told], {})
        session = await self._place.pool.lease(request.caller(), new=True)
        exchange = new_exchange(self._place, request, session, again)
        driver = Driver(self._place, claims.exchange, request, session, exchange)
        listener.rung, listener.round = Rung.REPLAYED, claims.round
        driver.begin_again(listener, (claims.round, digest))


def _past(claims: Claims) -> Past:
    return Past(
        round=claims.round,
        runs=claims.runs,
        journal=[
            Entry(entry.key, Kind(entry.kind), entry.digest, decode_members(entry.answer) or {})
            for entry in claims.journal
        ],
        open_asks={
            ask.key: Ask(ask.id, Kind(ask.kind), ask.method, decode_members(ask.params) or {})
            for ask in claims.pending
        },
    )
