"""One upstream, served: discovery, lists, and calls over as many rounds as they take. The only room with both sides.

discover   from what the server once said of itself: at once, whatever state it is in
fetch      a list, a completion: one request, one answer, and no questions
call       tools/call, prompts/get, resources/read: an exchange, first round
retry      the same with a ticket: the ladder finds the exchange again
listen     what changes at the server, told for as long as the client wants to hear it
"""

import asyncio
import os
import time
from collections.abc import Mapping
from typing import Any, Final

from gateway.eras.answers import parse_responses
from gateway.eras.discovery import Introduction, discover_result
from gateway.eras.notifications import TOOLS_CHANGED
from gateway.eras.requests import check_cursor, to_legacy_params
from gateway.eras.subscriptions import change_of
from gateway.eras.vocabulary import Ask
from gateway.errors import (
    InvalidParams,
    StateRejected,
    UpstreamChanged,
    UpstreamTimedOut,
)
from gateway.holds.directory import Directory
from gateway.holds.ledger import Ledger
from gateway.relay.driver import Driver
from gateway.relay.early_asks import answer_early
from gateway.relay.era import UpstreamEra, asking_for_era
from gateway.relay.fuse import Fuse
from gateway.relay.greeter import Greeter, Hearers
from gateway.relay.handover import HandOver
from gateway.relay.introductions import Introductions
from gateway.relay.ladder import Ladder, Retry, new_listener
from gateway.relay.lines import OwnLine, SharedLine
from gateway.relay.list_cache import ListCache
from gateway.relay.listener import Listener, Reply
from gateway.relay.passage import Knock
from gateway.relay.passthrough import Passthrough
from gateway.relay.place import Place, RootsMemory, Shared, policy_of
from gateway.relay.replays import ReplayPolicy
from gateway.relay.replies import completed, failed
from gateway.relay.request import ANONYMOUS, ClientRequest
from gateway.relay.subscription import Subscription
from gateway.relay.subscriptions import Subscriptions
from gateway.relay.tickets import TicketOffice, ticket_in
from gateway.relay.tool_index import METHOD as TOOLS_LIST
from gateway.relay.tool_index import ToolIndex
from gateway.relay.upgrade import Upgrade
from gateway.settings.upstream import Sessions, Upstream
from gateway.telemetry.logs import get_logger
from gateway.telemetry.names import Outcome, Rung
from gateway.upstreams.background import Background
from gateway.upstreams.breaker import Breaker
from gateway.upstreams.dialing import Dialer
from gateway.upstreams.flag import Flag
from gateway.upstreams.pool import Caller, Pool
from gateway.upstreams.session import Session
from gateway.upstreams.transport import SessionGone
from gateway.wire import canonical
from gateway.wire.jsonrpc import Failure, Notification, Result, encode
from gateway.wire.versions import MODERN

_LISTS: Final = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
LISTING_METHODS: Final = frozenset(_LISTS)
"""Requests that leave nothing of their caller behind in a session."""
FETCHED_METHODS: Final = LISTING_METHODS | {"completion/complete"}


class Relay:
    """One upstream's traffic, from `start` to `stop`."""

    def __init__(self, name: str, settings: Upstream, shared: Shared) -> None:
        self.name = name
        self._settings = settings
        self._shared = shared
        self._gateway_info = {"name": "holdfast", "version": shared.version}
        log = get_logger().bind(upstream=name)
        self._dialer = Dialer(name, settings, version=shared.version, max_event_bytes=shared.max_event_bytes)
        self._background = Background()
        self._introductions = Introductions(self._meet, self._background)
        self.passthrough = Passthrough(
            name,
            settings,
            self._dialer,
            shared.envelope,
            lambda: self._introductions.ask(_NOBODY),
            lambda: self.era.doubt(),  # noqa: PLW0108 - it is made a few lines below
            self._gateway_info,
        )
        """Everything that needs no bridge between the eras."""
        self.era = UpstreamEra(
            "legacy" if settings.transport == "sse" else settings.era,
            asking_for_era(self.passthrough.forwarder, self._dialer, shared.version, settings.sessions.end),
            self._background,
            log=log,
        )
        hearers = Hearers(self._hear_early_ask, self._hear_change, self._hear_gap, self._hear_end)
        self._greeter = Greeter(name, settings, shared, self._dialer, self.era, self._introductions, hearers)
        replays = ReplayPolicy(settings, self._fetch)
        breaker = Breaker(time.monotonic, failures=settings.breaker.failures, seconds=settings.breaker.open)
        self._place = Place(
            name=name,
            settings=settings,
            policy=policy_of(settings),
            hold_seconds=min(settings.holds.ttl, shared.ticket_seconds),
            pool=Pool(
                _pooled(settings),
                Fuse(name, breaker, self._greeter.open, shared.metrics).open,
                most_opening=_MOST_STARTING if settings.command else None,
            ),
            tickets=TicketOffice(
                shared.box, upstream=name, replica=shared.replica, ttl=shared.ticket_seconds, now=shared.now
            ),
            ids=shared.ids,
            roots=RootsMemory(settings.asks.roots_ttl, shared.now),
            metrics=shared.metrics,
            ledger=Ledger(settings.holds.max, settings.holds.per_principal, settings.holds.bytes),
            directory=Directory(
                shared.store, replica=shared.replica, seconds=shared.ticket_seconds, lease=shared.lease
            ),
            doubt=self.era.doubt,
            may_rerun=replays.allows_at_once,
        )
        shared.metrics.watch_sessions(name, self._place.pool.states)
        self.tools = ToolIndex(self._fetch, self._background, seconds=settings.call_timeout)
        """What the headers of a tool call are compared with before it goes anywhere."""
        self._ladder = Ladder(self._place, replays, self._greeter.reopen, shared.courier)
        self.farewell = HandOver(self._place, replays)
        """What becomes of its exchanges when this process stops."""
        self._lists = ListCache(settings.cache, self._background)
        self._upgrade = Upgrade(
            self._place,
            lambda knock: self.passthrough.pass_modern(knock, self.era),
            most_bytes=shared.max_event_bytes,
        )
        is_shared = settings.sessions.mode == "affinity"
        self._subscriptions = Subscriptions(
            name,
            settings.subscriptions,
            SharedLine(self._place.pool) if is_shared else OwnLine(self._place, self._greeter.open),
            ids=self._place.ids,
            metrics=shared.metrics,
            log=log,
            server_info=self._server_info,
        )

    async def start(self) -> None:
        """Get ready; the upstream need not be there yet."""
        if self._shared.courier is not None:
            self._shared.courier.serve(self.name, self._ladder.join, self._ladder.reconsider)
        await self._dialer.start()
        await self.passthrough.start()
        self._place.pool.start()
        self._background.start(self._get_to_know(), "introduction")

    def end_subscriptions(self) -> None:
        """Say a proper goodbye to all who listen; others do not get in any more."""
        self._subscriptions.end()
        self.passthrough.end_streams()

    async def stop(self) -> None:
        """Let go of every hold and every session, telling the upstream."""
        for driver in self._place.ledger.everyone():
            driver.give_up()
        await self._background.close()
        await self._subscriptions.close()
        await self._place.background.settle(_STOP_SECONDS)
        await self._place.pool.close()
        await self._place.background.close()
        await self.passthrough.close()
        await self._dialer.close()

    # --- the modern surface ----------------------------------------------------------

    async def discover(self, request: ClientRequest) -> Reply:
        """What this server is. Never waits long, never fails because the server does.

        Raises:
            UpstreamChanged: it turned out to be a modern one, which says itself what it is.
        """
        was_modern = self.era.is_modern
        known = await self._introductions.of(request.caller())
        if self.era.is_modern and not was_modern:
            raise UpstreamChanged("it is a modern server")
        ttl_ms, cache_scope = self._settings.caching.hints(request.method)
        result = discover_result(
            None if known is None else known.server,
            gateway_info=self._gateway_info,
            ttl_ms=ttl_ms,
            cache_scope=cache_scope,
            subscriptions=known is not None and known.can_be_heard,
        )
        return Reply(Outcome.COMPLETE, result=result)

    def has_met(self, request: ClientRequest) -> bool:
        """Does discovery cost nothing for this caller, the server having introduced itself before?"""
        return self._introductions.knows(request.principal.id)

    async def fetch(self, request: ClientRequest) -> Reply:
        """One request with one answer. A client that leaves cancels it."""
        if request.method not in LISTING_METHODS:
            return await self._fetch(request)
        check_cursor(request.params)
        if not self._lists.is_on:
            return await self._fetch(request)
        reply = await self._lists.get(request, self._fetch)
        self._note_tools(request, reply)  # it may have been fetched by another
        return reply

    def listen(self, request: ClientRequest) -> Subscription:
        """Tell this client of changes, until it has heard enough."""
        return self._subscriptions.listen(request)

    async def _fetch(self, request: ClientRequest) -> Reply:
        try:
            answer, server = await self._ask_upstream(request)
        except SessionGone:
            # The server does not know the session, so it did not run the request: once more, on a new one.
            self.era.doubt()
            answer, server = await self._ask_upstream(request, new_session=True)
        if isinstance(answer, Failure):
            return failed(answer, request)
        reply = completed(answer.result, request, server, self._settings.caching)
        self._note_tools(request, reply)
        return reply

    def _note_tools(self, request: ClientRequest, reply: Reply) -> None:
        if request.method == TOOLS_LIST and reply.result is not None:
            self.tools.note(request, reply.result)

    async def call(self, request: ClientRequest) -> Listener:
        """The first round of an exchange."""
        answers = parse_responses(request.params.get("inputResponses"))
        session = await self._place.pool.lease(request.caller())
        driver = Driver(self._place, self._place.ids.next(), request, session)
        listener = new_listener(request, Rung.FIRST)
        driver.begin(listener, answers)
        return listener

    async def retry(self, request: ClientRequest) -> Listener:
        """A later round: check the ticket, find the exchange, hand it the answers."""
        return await self._ladder.climb(self._retry(request))

    async def run_upgraded(self, request: ClientRequest, knock: Knock) -> Listener:
        """The same where the exchange was lost with its legacy server, and a modern one has taken its place.

        Raises:
            CallLost: it is not to be run again.
        """
        return await self._upgrade.run(self._retry(request), knock)

    def _retry(self, request: ClientRequest) -> Retry:
        claims = self._place.tickets.check(ticket_in(request), request)
        raw_answers = request.params.get("inputResponses")
        return Retry(request, claims, parse_responses(raw_answers), canonical.digest(raw_answers))

    def knows(self, request: ClientRequest) -> bool:
        """Does it come with a ticket of ours? A modern upstream gives out its own."""
        try:
            return bool(self._place.tickets.check(ticket_in(request), request))
        except (InvalidParams, StateRejected):
            return False

    # --- sessions ---------------------------------------------------------------------

    async def _ask_upstream(
        self, request: ClientRequest, *, new_session: bool = False
    ) -> tuple[Result | Failure, Introduction]:
        place = self._place
        session = await place.pool.lease(request.caller(), new=new_session)
        request_id = place.ids.next()
        if request.method not in LISTING_METHODS:
            session.served_calls += 1
        is_clean = False
        try:
            params = to_legacy_params(
                request.method, request.params, version=session.server.version, progress_token=None
            )
            async with asyncio.timeout(self._settings.call_timeout):
                answer = await session.call(request_id, request.method, params)
            is_clean = True
        except TimeoutError:
            raise UpstreamTimedOut(request.method) from None
        finally:
            if not is_clean and not session.is_dead:
                cancelled = {"requestId": request_id, "reason": "Nobody waits for it any more"}
                place.background.start(session.notify("notifications/cancelled", cancelled), "cancelled")
            place.pool.release(session, reusable=is_clean)
        return answer, session.server

    def _hear_early_ask(self, session: Session, ask: Ask, caller: Caller, answered: Flag) -> None:
        answer_early(self._place, session, ask, caller, answered)

    def _hear_change(self, caller: Caller, notification: Notification) -> None:
        """The server is not what it was; whichever session said so, what we keep of it is kept no longer."""
        if notification.method == TOOLS_CHANGED:
            self.tools.forget()
        change = change_of(notification)
        if change is not None:
            self._lists.drop(change.lists)
            self._subscriptions.hear(caller, change)

    def _hear_gap(self) -> None:
        """The server could not be heard for a while: what it said then of its lists is not known."""
        self._lists.clear()
        self.tools.forget()

    def _hear_end(self, session: Session) -> None:
        """A server that drops sessions may have been started anew, with other lists."""
        self._hear_gap()
        self.era.doubt()
        self._place.pool.forget(session)

    def _server_info(self) -> Mapping[str, Any]:
        known = self._introductions.latest
        return (known and known.server_info) or self._gateway_info

    async def _get_to_know(self) -> None:
        await self._greeter.settle_era(None)
        # Where there is room for one session only, it is the first client's: some servers end with their first.
        if not self.era.is_modern and self._settings.sessions.max > 1:
            self._introductions.ask(_NOBODY)

    async def _meet(self, caller: Caller) -> None:
        session = await self._place.pool.lease(caller, spares=False)
        self._place.pool.release(session, reusable=True)


_STOP_SECONDS: Final = 5.0
_MOST_STARTING: Final = max(16, 4 * (os.cpu_count() or 1))
"""Processes of a server that start at once: more than there are cores, for most only wait for a network or a disk. A
burst of calls would start one each, and none would be ready in time; those that are ready serve it meanwhile."""
_NOBODY: Final = Caller(
    principal=ANONYMOUS,
    is_authenticated=False,
    capabilities="{}",
    client_info=encode({"name": "holdfast", "version": MODERN}).decode(),
    authorization=None,
)


def _pooled(settings: Upstream) -> Sessions:
    # A server that is started for each session has spare processes, which serve every caller as well.
    return settings.sessions.model_copy(update={"warm": 0}) if settings.command else settings.sessions
