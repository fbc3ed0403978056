"""How a retry finds its exchange again when this process does not have it. Each rung is tried once, in order.

    live         the hold is here
    routed       another replica has it: the round is carried out there, and heard here
    reattached   the legacy session lives and its server remembers what it sent: read on. Nothing runs twice.
    replayed     run the call again and answer from the journal; only where policy allows it
    refused      say so, precisely

Which rung is right follows from the ticket alone; what each does is the driver's.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakValueDictionary

from gateway.eras.answers import parse_responses, sift
from gateway.eras.asks import fingerprint
from gateway.eras.exchange import Exchange
from gateway.eras.notifications import RoundFilter
from gateway.eras.policy import Unfit
from gateway.eras.questions import Entry
from gateway.eras.reruns import MOST_RUNS, Past
from gateway.eras.vocabulary import Ask, Kind
from gateway.errors import CallLost, GatewayError, Overloaded, StateRejected
from gateway.holds.directory import Standing
from gateway.relay.courier import Courier
from gateway.relay.driver import Driver
from gateway.relay.errands import OwnerGone
from gateway.relay.guests import UnknownExchange
from gateway.relay.letters import CarriedRound
from gateway.relay.listener import Listener, Reply
from gateway.relay.machines import new_exchange
from gateway.relay.place import Place
from gateway.relay.replays import ReplayPolicy
from gateway.relay.request import ClientRequest
from gateway.sealing.claims import Claims
from gateway.stores.protocol import Owner, StoreUnavailable
from gateway.telemetry.names import Rung
from gateway.upstreams.pool import Caller
from gateway.upstreams.session import Session
from gateway.wire.jsonrpc import Params, decode_members

_PING_SECONDS: Final = 5.0
_MOST_OWNERS: Final = 3
"""Owners that may die or change while one retry looks for its exchange."""
_TAKEN: Final = 1
_NEXT_ASKED: Final = 2

Reopen = Callable[[Caller, str, str], Awaitable[Session]]
"""Speak in a session of this id and revision that another process opened."""


@dataclass(frozen=True, slots=True)
class Retry:
    """A round with a ticket that was checked."""

    request: ClientRequest
    claims: Claims
    answers: Mapping[str, Params]
    digest: str
    """Of the answers: the same retry again is recognised by it."""


class Ladder:
    """The way back for one upstream's exchanges."""

    def __init__(self, place: Place, replays: ReplayPolicy, reopen: Reopen, courier: Courier | None) -> None:
        self._place = place
        self._replays = replays
        self._reopen = reopen
        self._courier = courier
        self._climbing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def climb(self, retry: Retry) -> Listener:
        """Hand the round to its exchange, wherever that is, or has to be brought back from.

        Raises:
            StateRejected: the ticket is of an earlier round.
            CallLost: the exchange cannot be brought back.
        """
        listener = new_listener(retry.request, Rung.LIVE)
        await self._find(retry, listener)
        return listener

    async def _find(self, retry: Retry, listener: Listener) -> None:
        # Two retries of one ticket, or one retry that comes to this twice, must not bring it back twice.
        async with self._climbing.setdefault(retry.claims.exchange, asyncio.Lock()):
            if not await self._live(retry, listener):
                await self._elsewhere(retry, listener)

    async def join(self, carried: CarriedRound) -> Listener:
        """The same for a client that another replica has: it has checked the ticket, and only *live* is left."""
        driver = self._place.ledger.find(carried.exchange)
        if driver is None:
            raise UnknownExchange
        request = carried.request(driver.request.principal)
        listener = new_listener(request, Rung.ROUTED)
        answers = parse_responses(request.params.get("inputResponses"))
        if driver.refuses(listener, carried.round, answers):
            return listener
        if not await self._may_deliver(driver, carried.round):
            raise UnknownExchange
        driver.resume(listener, request, carried.round, answers, carried.digest)
        return listener

    async def _live(self, retry: Retry, listener: Listener) -> bool:
        driver = self._place.ledger.find(retry.claims.exchange)
        if driver is None:
            return False
        if driver.refuses(listener, retry.claims.round, retry.answers):
            return True
        if not await self._may_deliver(driver, retry.claims.round):
            return False
        if driver.is_stranded:
            driver.allow_rerun(allowed=await self._replays.allows(retry.request))
        _resume(driver, retry, listener)
        return True

    async def _may_deliver(self, driver: Driver, round_: int) -> bool:
        """Is it still ours? A replica that was frozen for a while may have been given up by the others.

        Raises:
            Overloaded: nobody can say. The hold is untouched, and the same ticket is good again in a moment.
        """
        match await self._place.directory.note_taken(driver.exchange_id, round_):
            case Standing.OURS:
                return True
            case Standing.THEIRS:
                driver.disown()
                return False
            case Standing.UNKNOWN:
                raise Overloaded("this process was frozen, and the store is away")

    async def reconsider(self) -> None:
        """This process was frozen: let go of all that others have had to take over.

        Raises:
            StoreUnavailable: nobody can say.
        """
        for driver in self._place.ledger.everyone():
            # One whose client has no ticket yet is not written down, and nobody else can have it.
            if driver.passport.is_out and not await self._place.directory.is_mine(driver.exchange_id):
                driver.disown()

    async def _elsewhere(self, retry: Retry, listener: Listener) -> None:
        try:
            for _ in range(_MOST_OWNERS):
                owner = await self._place.directory.owner(retry.claims.exchange)
                if await self._carry(owner, retry, listener) or await self._take_over(owner, retry, listener):
                    return
        except StoreUnavailable as error:
            # Nobody knows who has it. The hold is untouched, and the same ticket is good again in a moment.
            raise Overloaded("the store is away") from error
        raise Overloaded("its replicas keep dying")

    async def _carry(self, owner: Owner | None, retry: Retry, listener: Listener) -> bool:
        """Have the round carried out where its exchange is. False: it is nowhere that answers."""
        directory, claims = self._place.directory, retry.claims
        if directory.is_nobodys(owner):
            return False
        # A store that was emptied knows no owner, but the ticket still names the one that it had.
        replica = claims.owner if owner is None else owner.replica
        if self._courier is None or directory.is_me(replica):
            return False
        listener.entrust(lambda orphan, _: self._inherit(orphan, retry))
        try:
            await self._courier.carry(
                replica,
                self._place.name,
                claims.exchange,
                claims.round,
                retry.digest,
                retry.request,
                listener,
            )
        except OwnerGone:
            return False
        listener.rung = Rung.ROUTED
        return True

    def _inherit(self, orphan: Listener, retry: Retry) -> None:
        """The replica that carried the round out has died in it."""
        self._place.background.start(self._adopt(orphan, retry), "inherit")

    async def _adopt(self, orphan: Listener, retry: Retry) -> None:
        try:
            await self._find(retry, orphan)
        except GatewayError as error:
            orphan.finish(Reply.of(error))

    async def _take_over(self, owner: Owner | None, retry: Retry, listener: Listener) -> bool:
        """Become the owner, then bring the exchange back. False: another replica was quicker."""
        directory, claims = self._place.directory, retry.claims
        if not self._place.tickets.is_current(claims):
            # Only by now, or it would not have come so far. What it did meanwhile may be written down no more.
            raise StateRejected("expired while its round was looked for")
        if directory.is_lost(owner):
            raise CallLost("hold_lost", "it was cancelled, or expired, where it was held")
        # How far had it come when its owner was last heard of? One stage further than this ticket's round: the
        # answers were taken. Two: the next questions were asked, and this client never got to see them.
        ahead = 0 if owner is None else owner.stage - 2 * claims.round
        if owner is not None and ahead > _NEXT_ASKED:
            if directory.is_done(owner) and not directory.is_me(owner.replica):
                # Nobody can tell whether this is the retry that is owed it, so nothing is started either way.
                raise CallLost("outcome_lost", "it ended, and the replica that had its outcome is gone")
            raise StateRejected("ticket of an earlier round")
        if not await directory.take_over(claims.exchange, owner, claims.round):
            return False
        # Answers that were taken may have reached the server already, or not: a call that may run again does so
        # at once, of any other only what comes next can be waited for.
        is_taken = ahead >= _TAKEN
        may_run_again = is_taken and await self._replays.allows(retry.request)
        driver = None if may_run_again else await self._reattach(retry.request, claims, is_taken=is_taken)
        if driver is None:
            self._end_session(retry.request, claims)
            await self._replay(retry, listener)
            return True
        # Written down before it is done: if this process dies over it, the next one must not do it again.
        if not is_taken and not await self._may_deliver(driver, claims.round):
            return False
        driver.passport.is_in_doubt = claims.is_in_doubt or ahead == _TAKEN
        listener.rung = Rung.REATTACHED
        _resume(driver, retry, listener)
        return True

    async def _reattach(self, request: ClientRequest, claims: Claims, *, is_taken: bool) -> Driver | None:
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
        if not session.may_be_read_on:
            await session.abandon()  # without a store it may be in use elsewhere
            return None
        place.pool.adopt(caller, session)
        past = _past(claims)
        if is_taken:
            past = replace(
                past, open_asks={}
            )  # a second delivery would be one too many: only the result is missing
        naming, declared = place.naming(request.target), request.capabilities
        exchange = Exchange.restored(place.policy, naming, past, may_rerun=False, declared=declared)
        driver = Driver(place, claims.exchange, request, session, exchange)
        if not driver.pick_up(claims.request_id, claims.last_event_id):
            place.drivers.discard(driver)
            place.pool.release(session, reusable=False)
            return None
        return driver

    def _end_session(self, request: ClientRequest, claims: Claims) -> None:
        """Whoever opened it is gone, and nobody else knows of it: the call in it would wait for ever.

        Without a store nobody can say that the owner is gone: it may be holding the call in there.
        """
        if claims.session_id is not None and self._place.directory.is_shared:
            ending = self._end_session_now(request.caller(), claims.session_id, claims.version)
            self._place.background.start(ending, "end-session")

    async def _end_session_now(self, caller: Caller, session_id: str, version: str) -> None:
        with contextlib.suppress(GatewayError):
            await (await self._reopen(caller, session_id, version)).close()

    async def _answers(self, session: Session) -> bool:
        """Does the server still know the session?"""
        try:
            async with asyncio.timeout(_PING_SECONDS):
                await session.call(self._place.ids.next(), "ping", {})
        except (GatewayError, TimeoutError):
            return False
        return True

    async def _replay(self, retry: Retry, listener: Listener) -> None:
        request, claims = retry.request, retry.claims
        again = told_so_far(retry, self._place.policy.unfit)
        if not await self._replays.allows(request):
            raise CallLost("hold_lost", "nobody has this exchange, and policy allows no replay")
        session = await self._place.pool.lease(request.caller(), new=True)
        exchange = new_exchange(self._place, request, session, again)
        driver = Driver(self._place, claims.exchange, request, session, exchange)
        listener.rung, listener.round = Rung.REPLAYED, claims.round
        driver.begin_again(listener, (claims.round, retry.digest))


def told_so_far(retry: Retry, unfit: Unfit) -> Past:
    """What another run of the call has to begin with: all that was answered, this round included.

    Raises:
        CallLost: the ticket does not say, or it was run too often.
    """
    claims = retry.claims
    if not claims.is_whole:
        raise CallLost("journal_too_large", "the ticket had no room for what was asked and answered")
    if claims.runs >= MOST_RUNS:
        raise CallLost("asks_differ", f"run {claims.runs} times, and asked something else each time")
    past = _past(claims)
    given = sift(past.open_asks, retry.answers, unfit)
    told = [
        Entry(key, past.open_asks[key].kind, fingerprint(past.open_asks[key]), answer)
        for key, answer in given.items()
    ]
    return Past(past.round, past.runs + 1, [*past.journal, *told], {})


def new_listener(request: ClientRequest, rung: Rung) -> Listener:
    """Someone to hear a round, as far as its client wants to hear of it."""
    return Listener(RoundFilter(request.progress_token, request.log_level), rung=rung)


def _resume(driver: Driver, retry: Retry, listener: Listener) -> None:
    driver.resume(listener, retry.request, retry.claims.round, retry.answers, retry.digest)


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
