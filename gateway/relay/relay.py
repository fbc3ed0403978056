"""One upstream, served: discovery, lists, and calls over as many rounds as they take. The only room with both sides.

discover   from what the server once said of itself: at once, whatever state it is in
fetch      a list, a completion: one request, one answer; questions are none of its business
call       tools/call, prompts/get, resources/read: an exchange, first round
retry      the same with a ticket: the ladder finds the exchange again
"""

import asyncio
from typing import Any, Final

from gateway.eras.answers import parse_responses
from gateway.eras.discovery import Introduction, discover_result
from gateway.eras.notifications import TOOLS_CHANGED, RoundFilter
from gateway.eras.policy import Undeclared, settle_without_client
from gateway.eras.requests import to_legacy_params
from gateway.eras.vocabulary import Ask, SendAnswer, SendRefusal
from gateway.errors import CallLost, GatewayError, InvalidParams, UpstreamTimedOut
from gateway.holds.ledger import Ledger
from gateway.relay.driver import Driver
from gateway.relay.listener import Listener, Reply
from gateway.relay.place import Ids, Place, RootsMemory, Shared, policy_of
from gateway.relay.replies import completed, failed
from gateway.relay.request import ANONYMOUS, ClientRequest
from gateway.relay.tickets import TicketOffice
from gateway.relay.tool_index import METHOD as TOOLS_LIST
from gateway.relay.tool_index import ToolIndex
from gateway.settings.model import Upstream
from gateway.telemetry.logs import get_logger
from gateway.telemetry.names import HandshakeOutcome, LogEvent, Outcome, Rung
from gateway.upstreams.background import Background
from gateway.upstreams.dialing import Dialer
from gateway.upstreams.pool import Caller, Pool
from gateway.upstreams.session import Session, open_session
from gateway.upstreams.transport import Channel, SessionGone
from gateway.wire import canonical
from gateway.wire.jsonrpc import Failure, Notification, Result, decode, encode
from gateway.wire.versions import MODERN

LISTING_METHODS: Final = frozenset(
    {"tools/list", "prompts/list", "resources/list", "resources/templates/list"}
)
"""Requests that leave nothing of their caller behind in a session."""

FETCHED_METHODS: Final = LISTING_METHODS | {"completion/complete"}

_DISCOVERY_SECONDS: Final = 1.0
"""How long the first discovery may wait for the server's introduction; clients fall back after ten."""


class Relay:
    """One upstream's traffic, from `start` to `stop`."""

    def __init__(self, name: str, settings: Upstream, shared: Shared) -> None:
        self.name = name
        self._settings = settings
        self._shared = shared
        self._metrics = shared.metrics
        self._gateway_info = {"name": "holdfast", "version": shared.version}
        self._log = get_logger().bind(upstream=name)
        self._known: Introduction | None = None
        self._introduction: asyncio.Task[None] | None = None
        self._dialer = Dialer(name, settings, version=shared.version, max_event_bytes=shared.max_event_bytes)
        self._background = Background()
        self._place = Place(
            name=name,
            settings=settings,
            policy=policy_of(settings),
            hold_seconds=min(settings.holds.ttl, shared.ticket_seconds),
            pool=Pool(settings.sessions, self._open_for),
            tickets=TicketOffice(
                shared.box, upstream=name, replica=shared.replica, ttl=shared.ticket_seconds, now=shared.now
            ),
            ids=Ids(shared.replica),
            roots=RootsMemory(settings.asks.roots_ttl, shared.now),
            metrics=shared.metrics,
            ledger=Ledger(settings.holds.max),
        )
        self.tools = ToolIndex(self.fetch, self._background, seconds=settings.call_timeout)
        """What calls of tools are held against before they go anywhere."""

    async def start(self) -> None:
        """Get ready; the upstream need not be there yet."""
        await self._dialer.start()
        self._place.pool.start()
        self._introduce(_NOBODY)

    async def stop(self) -> None:
        """Let go of every hold and every session, telling the upstream."""
        for driver in self._place.ledger.everyone():
            driver.give_up()
        await self._background.close()
        await self._place.background.settle(_STOP_SECONDS)
        await self._place.pool.close()
        await self._place.background.close()
        await self._dialer.close()

    # --- the modern surface ----------------------------------------------------------

    async def discover(self, request: ClientRequest) -> Reply:
        """What this server is. Never waits long, never fails because the server does."""
        if self._known is None:
            self._introduce(request.caller())
            if self._introduction is not None:
                await asyncio.wait([self._introduction], timeout=_DISCOVERY_SECONDS)
        caching = self._settings.caching
        result = discover_result(
            self._known,
            gateway_info=self._gateway_info,
            ttl_ms=round(caching.ttl * 1000),
            cache_scope=caching.scope,
        )
        return Reply(Outcome.COMPLETE, result=result)

    async def fetch(self, request: ClientRequest) -> Reply:
        """One request with one answer. A client that leaves cancels it."""
        try:
            answer, server = await self._ask_upstream(request)
        except SessionGone:
            # The server does not know the session, so it did not run the request: once more, on a new one.
            answer, server = await self._ask_upstream(request, new_session=True)
        if isinstance(answer, Failure):
            return failed(answer, request)
        reply = completed(answer.result, request, server, self._settings.caching)
        if request.method == TOOLS_LIST and reply.result is not None:
            self.tools.note(request, reply.result)
        return reply

    async def call(self, request: ClientRequest) -> Listener:
        """The first round of an exchange."""
        answers = parse_responses(request.params.get("inputResponses"))
        session = await self._place.pool.lease(request.caller())
        driver = Driver(self._place, self._place.ids.next(), request, session)
        listener = _listener(request, Rung.FIRST)
        driver.begin(listener, answers)
        return listener

    def retry(self, request: ClientRequest) -> Listener:
        """A later round: check the ticket, find the exchange, hand it the answers."""
        token = decode(request.params["requestState"])
        if not isinstance(token, str):
            raise InvalidParams(detail="requestState must be a string")
        claims = self._place.tickets.check(token, request)
        raw_answers = request.params.get("inputResponses")
        answers = parse_responses(raw_answers)
        driver = self._place.ledger.find(claims.exchange)
        if driver is None:
            raise CallLost("hold_lost", "no exchange for this ticket in this process")
        listener = _listener(request, Rung.LIVE)
        driver.resume(listener, request, claims.round, answers, canonical.digest(raw_answers))
        return listener

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

    async def _open_for(self, caller: Caller) -> Session:
        answered = asyncio.Event()

        async def greet(channel: Channel) -> Session:
            return await open_session(
                channel,
                request_id=self._place.ids.next(),
                client_info=decode(caller.client_info.encode()),
                capabilities=decode(caller.capabilities.encode()),
                on_early_ask=lambda session, ask: self._hear_early(session, ask, caller, answered),
                on_end=self._place.pool.forget,
                on_change=self._hear_change,
            )

        try:
            async with asyncio.timeout(self._settings.call_timeout):
                session = await self._dialer.dial(caller, greet)
        except TimeoutError:
            self._metrics.handshake(self.name, HandshakeOutcome.TIMED_OUT)
            raise UpstreamTimedOut("initialize") from None
        except GatewayError as error:
            self._metrics.handshake(self.name, HandshakeOutcome.REFUSED)
            self._log.warning(LogEvent.HANDSHAKE_FAILED, reason=error.reason, detail=str(error))
            raise
        self._metrics.handshake(self.name, HandshakeOutcome.OK)
        self._known = session.server
        if answered.is_set():
            await self._let_settle(session)
        return session

    async def _let_settle(self, session: Session) -> None:
        """The server asked at `initialized` and was told: that may decide what the first call can do."""
        try:
            await asyncio.sleep(self._settings.settle)
        except BaseException:
            await session.close()
            raise

    def _hear_early(self, session: Session, ask: Ask, caller: Caller, answered: asyncio.Event) -> None:
        """An ask outside any exchange: answered by policy, or kept for the next exchange of this session."""
        declared: dict[str, Any] = decode(caller.capabilities.encode())
        known_roots = self._place.roots.recall(caller.principal)
        match settle_without_client(ask, self._place.policy, declared, known_roots):
            case SendAnswer(Ask(id=ask_id), result) if ask_id is not None:
                answered.set()
                self._place.background.start(session.answer(ask_id, result), "early-answer")
            case (SendRefusal(Ask(id=ask_id), code, message)) | Undeclared(
                SendRefusal(Ask(id=ask_id), code, message)
            ) if ask_id is not None:
                self._place.background.start(session.refuse(ask_id, code, message), "early-refusal")
            case _:
                session.early_asks.append(ask)

    def _hear_change(self, _session: Session, notification: Notification) -> None:
        """The server is not what it was; whichever session said so, it is true for all."""
        if notification.method == TOOLS_CHANGED:
            self.tools.forget()

    def _introduce(self, caller: Caller) -> None:
        """Have the server introduce itself, once at a time, so that discovery has something to tell."""
        if self._introduction is None or self._introduction.done():
            self._introduction = self._background.start(self._meet(caller), "introduction")

    async def _meet(self, caller: Caller) -> None:
        session = await self._place.pool.lease(caller)
        self._place.pool.release(session, reusable=True)


_STOP_SECONDS: Final = 5.0
_NOBODY: Final = Caller(
    principal=ANONYMOUS,
    is_authenticated=False,
    capabilities="{}",
    client_info=encode({"name": "holdfast", "version": MODERN}).decode(),
    authorization=None,
)


def _listener(request: ClientRequest, rung: Rung) -> Listener:
    return Listener(RoundFilter(request.progress_token, request.log_level), rung=rung)
