"""The endpoint of one upstream: read, classify, admit, relay, reply. It reads from top to bottom."""

import time
from collections.abc import Callable, Container
from functools import lru_cache, partial
from typing import Final

from aiohttp import hdrs, web

from gateway.edge.body import read_body
from gateway.edge.classify import Accepted, Legacy, Modern, Refusal, Verdict, classify, is_legacy_visit
from gateway.edge.cors import ANYONE, is_question, note_page, permission
from gateway.edge.doorway import Doorway
from gateway.edge.origins import host_allowed, origin_allowed
from gateway.edge.passthrough import knock_of, refusal, write_passage
from gateway.edge.principals import ownership
from gateway.edge.rates import RateLimit
from gateway.edge.refusals import Refusals
from gateway.edge.reply import json_response, write_round
from gateway.edge.request_ids import note_id, sign
from gateway.edge.turn import CANCELLED, LEGACY, NO_HEADERS, Notes, Turn, handed_on, param_headers
from gateway.eras.subscriptions import METHOD as LISTEN
from gateway.eras.vocabulary import ASKING_METHODS
from gateway.errors import (
    CallLost,
    GatewayError,
    HeaderMismatch,
    MethodNotAllowed,
    OriginRefused,
    Overloaded,
    RateLimited,
    StateRejected,
    UpstreamChanged,
)
from gateway.relay.endpoint import address_in
from gateway.relay.listener import Ear, Listener, Reply
from gateway.relay.passage import HeaderLines, Knock, Passage
from gateway.relay.relay import FETCHED_METHODS, Relay
from gateway.relay.replies import own_fault
from gateway.relay.request import ClientRequest, Principal
from gateway.settings.model import Limits
from gateway.settings.upstream import Rate
from gateway.telemetry.logs import get_logger
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import LogEvent, Outcome
from gateway.wire import headers as names
from gateway.wire.versions import LEGACY_VERSIONS

DISCOVER: Final = "server/discover"
_TOOLS_CALL: Final = "tools/call"
_ONCE: Final = (hdrs.HOST, hdrs.ORIGIN, hdrs.AUTHORIZATION, names.SESSION_ID, names.PROTOCOL_VERSION)
_NONE: Final[list[str]] = []
_INITIALIZE: Final = "initialize"
_MODERN_REFUSALS: Final = frozenset({-32020, -32022})
"""Codes with which only a modern server refuses a request, before it looks at what is asked."""
_LOST: Final = frozenset({Outcome.LOST, Outcome.UPSTREAM_FAILED})
SERVED_METHODS: Final = frozenset({DISCOVER, LISTEN, *FETCHED_METHODS, *ASKING_METHODS})


class _Everything:
    """Contains every method: what a modern upstream serves is its own to say."""

    def __contains__(self, method: object) -> bool:
        return True


_EVERYTHING: Final = _Everything()


class Endpoint:
    """Serves the clients of one upstream, modern ones and, unless they are refused, legacy ones."""

    def __init__(
        self,
        relay: Relay,
        *,
        doorway: Doorway,
        limits: Limits,
        listen_host: str,
        metrics: Metrics,
        rate: Rate | None = None,
        passes_legacy: bool = True,
    ) -> None:
        self._relay = relay
        rates = RateLimit(rate or Rate(), time.monotonic)
        self._rates = rates if rates.is_on else None
        self._passes_legacy = passes_legacy
        self._door = doorway.door
        self._binds = doorway.auth.authenticates
        self._refusals = Refusals(doorway, relay.passthrough.is_own_metadata)
        self._limits = limits
        # The same few pairs of Host and Origin come again and again.
        self._is_allowed = lru_cache(maxsize=256)(
            partial(
                origin_allowed,
                listen_host=listen_host,
                allowed_origins=limits.allowed_origins,
                allowed_hosts=limits.allowed_hosts,
            )
        )
        self._is_own_name = partial(host_allowed, listen_host=listen_host, allowed_hosts=limits.allowed_hosts)
        self._page = ANYONE if ANYONE in limits.allowed_origins else None
        self._verbs = "GET, POST, DELETE" if passes_legacy else "POST"
        self._metrics = metrics
        self._notes = Notes(relay.name, metrics)
        self._is_draining = False
        self._log = get_logger()

    def drain(self) -> None:
        """Begin nothing new. A client that comes back with its answers is still served: so its call can end."""
        self._is_draining = True

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one HTTP request."""
        note_id(request)
        response = await self._answer(request)
        if not response.prepared:
            sign(request, response)
        return response

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        started = time.perf_counter()
        body = b""
        try:
            self._check_door(request)
            if is_question(request) and hdrs.ORIGIN in request.headers:
                return permission(
                    request.headers.getall(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, []), verbs=self._verbs
                )
            body = await read_body(request, self._limits.body_timeout)
            verdict = self._verdict(request, body)
        except GatewayError as error:
            verdict = Refusal(error, None)
        match verdict:
            case Modern():
                try:
                    caller = self._door.admit(request) or await self._door.admit_later(request)
                except GatewayError as error:
                    return self._refuse(request, Refusal(error, verdict.id), started)
                if not self._relay.era.is_certain:
                    await self._relay.era.settle(self._shown(request))
                return await self._serve(request, body, verdict, caller, started)
            case Legacy() if self._passes_legacy:
                return await self._pass_on(request, body, verdict, started)
            case Accepted():
                return web.Response(status=202)
            case Legacy():
                return self._refuse(request, verdict.refusal(), started)
            case Refusal():
                return self._refuse(request, verdict, started)

    def _verdict(self, request: web.BaseRequest, body: bytes) -> Verdict:
        # Taking a URL apart for its query costs something, and hardly any has one.
        if self._passes_legacy and "?" in request.raw_path and address_in(request.query_string) is not None:
            return Legacy(None, None, LEGACY_VERSIONS[-1])
        if request.method != hdrs.METH_POST:
            if self._passes_legacy and is_legacy_visit(request.headers, request.method):
                return Legacy(None, None, LEGACY_VERSIONS[-1])
            raise MethodNotAllowed(request.method)
        served: Container[str] = _EVERYTHING if self._relay.era.is_modern else SERVED_METHODS
        return classify(request.headers, body, served_methods=served, passes_legacy=self._passes_legacy)

    async def _serve(
        self, request: web.BaseRequest, body: bytes, modern: Modern, caller: Principal, started: float
    ) -> web.StreamResponse:
        """One round, whatever happens in it; one log line at its end."""
        client_request = ClientRequest(
            id=modern.id,
            method=modern.method,
            params=modern.params,
            target=modern.name or "",
            principal=caller,
            capabilities=modern.capabilities,
            client_info=modern.client_info,
            log_level=modern.log_level,
            progress_token=modern.progress_token,
            param_headers=param_headers(request) if modern.method == _TOOLS_CALL else NO_HEADERS,
        )
        turn = Turn(request, body, client_request)
        try:
            if self._is_draining and "requestState" not in modern.params:
                raise Overloaded("draining")
            if self._rates is not None and not (
                modern.method == DISCOVER and self._relay.has_met(client_request)
            ):
                self._check_rate(request, client_request.principal)
            return await (self._hand_on(turn) if self._is_theirs(client_request) else self._bridge(turn))
        except GatewayError as error:
            turn.reply = self._refusals.reply(Reply.of(error), request.headers.get(hdrs.HOST))
            return json_response(turn.reply, modern.id)
        except ConnectionError:
            return web.Response(status=499)  # the client left while we wrote; nobody reads this
        except Exception as error:  # noqa: BLE001 - the last resort: our bug must not become a stack trace on the wire
            turn.reply = own_fault(error)
            return json_response(turn.reply, modern.id)
        finally:
            if turn.heard is not None:
                turn.heard.left()  # changes nothing after the last word
            self._notes.round(request, modern.method, client_request.target, turn.reply, started, turn.heard)

    # --- a legacy upstream ---------------------------------------------------------------

    async def _bridge(self, turn: Turn) -> web.StreamResponse:
        asked = turn.asked
        try:
            if asked.method in ASKING_METHODS:
                turn.heard = await self._begin(asked)
            elif asked.method == LISTEN:
                turn.heard = self._relay.listen(asked)
            if turn.heard is not None:
                response = await self._write(turn, turn.heard)
            else:
                discovers = asked.method == DISCOVER
                turn.reply = await (self._relay.discover(asked) if discovers else self._relay.fetch(asked))
                response = json_response(turn.reply, asked.id)
        except (UpstreamChanged, CallLost):
            if "requestState" not in asked.params:
                return await self._hand_on(turn)
            if not await self._is_upgraded(turn):
                raise
            return await self._run_upgraded(turn)
        if turn.reply.error is not None and not response.prepared and await self._has_changed(turn):
            is_held = "requestState" in asked.params
            return await (self._run_upgraded(turn) if is_held else self._hand_on(turn))
        return response

    async def _is_upgraded(self, turn: Turn) -> bool:
        era = self._relay.era
        if not era.is_modern:
            era.doubt()  # a call that is lost is reason enough
            await era.settle(self._shown(turn.request), urgent=True)
        return era.is_modern

    async def _run_upgraded(self, turn: Turn) -> web.StreamResponse:
        """Run a call that a legacy server held, by the modern server that has taken its place."""
        knock = self._knock(turn.request, turn.body, turn.asked.principal)
        turn.heard = await self._relay.run_upgraded(turn.asked, knock)
        return await self._write(turn, turn.heard)

    async def _write(self, turn: Turn, heard: Ear) -> web.StreamResponse:
        limits = self._limits
        response, turn.reply = await write_round(
            turn.request,
            heard,
            turn.asked.id,
            limits.keepalive,
            limits.write_timeout,
            turn.readdressed(self._refusals),
        )
        return response

    async def _begin(self, request: ClientRequest) -> Listener:
        if request.method == _TOOLS_CALL and not self._relay.tools.has_no_say(request):
            await self._relay.tools.check(request)
        if "requestState" not in request.params:
            return await self._relay.call(request)
        try:
            return await self._relay.retry(request)
        except StateRejected as error:
            self._metrics.state_rejected(self._relay.name, "rejected")
            # The answer has no error id, being the same for every cause; the client knows it by its request's.
            self._log.warning(
                LogEvent.STATE_REJECTED, upstream=self._relay.name, request_id=request.id, detail=str(error)
            )
            raise

    # --- what is handed on ---------------------------------------------------------------

    def _is_theirs(self, asked: ClientRequest) -> bool:
        """Is it for a modern upstream to answer? What was held when it was a legacy one is still ours."""
        return self._relay.era.is_modern and not ("requestState" in asked.params and self._relay.knows(asked))

    async def _has_changed(self, turn: Turn) -> bool:
        """Did a legacy upstream fail a call, without having run it, because it is a modern one now?

        Of what was held it is enough that it is lost: whether it may run again is policy.
        """
        reply, era = turn.reply, self._relay.era
        if reply.error is None:
            return False
        if "requestState" in turn.asked.params:
            return reply.outcome in _LOST and await self._is_upgraded(turn)
        if reply.reason != UpstreamChanged.reason:
            data = reply.error.data
            if not isinstance(data, dict) or data.get("upstreamCode") not in _MODERN_REFUSALS:
                return False
            era.doubt()
            await era.settle(self._shown(turn.request))
        return era.is_modern

    async def _hand_on(self, turn: Turn) -> web.StreamResponse:
        if turn.asked.method == _TOOLS_CALL:
            await self._relay.passthrough.check(turn.asked)
        knock = self._knock(turn.request, turn.body, turn.asked.principal)
        passing = self._relay.passthrough.pass_modern(knock, self._relay.era)
        try:
            response = await write_passage(turn.request, passing, self._headers_for(turn.request))
        except UpstreamChanged:
            if turn.heard is not None:
                raise
            return await self._bridge(turn)
        turn.reply = handed_on(response.status)
        return response

    async def _pass_on(
        self, request: web.BaseRequest, body: bytes, legacy: Legacy, started: float
    ) -> web.StreamResponse:
        """One request of a legacy client; one log line at its end."""
        reply = CANCELLED
        try:
            if self._is_draining and (legacy.method == _INITIALIZE or request.method == hdrs.METH_GET):
                raise Overloaded("draining")
            caller = self._door.admit(request) or await self._door.admit_later(request)
            if self._rates is not None:
                self._check_rate(request, caller)
            passing = self._relay.passthrough.pass_legacy(self._knock(request, body, caller))
            response = await write_passage(request, passing, self._headers_for(request))
            reply = handed_on(response.status)
            return response  # noqa: TRY300 - it reads from top to bottom
        except GatewayError as error:
            told = self._refusals.error(error, request.headers.get(hdrs.HOST))
            reply = Reply.of(told)
            return refusal(told, legacy.id)
        except ConnectionError:
            return web.Response(status=499)
        except Exception as error:  # noqa: BLE001 - as above
            reply = own_fault(error)
            return json_response(reply, legacy.id)
        finally:
            self._notes.round(request, legacy.method or request.method, None, reply, started, era=LEGACY)

    def _knock(self, request: web.BaseRequest, body: bytes, caller: Principal) -> Knock:
        owner = ownership(caller) if self._binds and caller.is_authenticated else None
        return knock_of(request, body, owner=owner, withheld=self._door.withheld)

    def _headers_for(self, request: web.BaseRequest) -> Callable[[Passage], HeaderLines]:
        host = request.headers.get(hdrs.HOST)
        return lambda passage: self._refusals.passing(passage.status, passage.headers, host)

    def _shown(self, request: web.BaseRequest) -> str | None:
        """The credential of this request that its upstream may see."""
        return None if "authorization" in self._door.withheld else request.headers.get(hdrs.AUTHORIZATION)

    def _check_rate(self, request: web.BaseRequest, principal: Principal) -> None:
        """Refuse one request too many before anything is looked up or taken: it can be sent again as it is."""
        if self._rates is None:
            return
        # Nobody in particular is somebody at an address: one of them must not use up what all have.
        caller = principal.id if principal.is_authenticated else f"@{request.remote}"
        seconds = self._rates.wait(caller)
        if seconds > 0:
            raise RateLimited(seconds)

    def _check_door(self, request: web.BaseRequest) -> None:
        for name in _ONCE:
            if len(request.headers.getall(name, _NONE)) > 1:
                # Whoever reads the other line, on the way or behind us, would see another request.
                raise HeaderMismatch(detail=f"{name} appears more than once")
        origin = request.headers.get(hdrs.ORIGIN)
        host = request.headers.get(hdrs.HOST)
        if not self._is_allowed(origin, host):
            if not self._is_own_name(host):
                text = f"Host {host!r} is none of ours: see limits.allowed_hosts"
                raise OriginRefused(text, detail=OriginRefused.public_for_host)
            raise OriginRefused(f"Origin {origin!r} is none that may call: see limits.allowed_origins")
        if origin is not None:
            note_page(request, self._page or origin)

    def _refuse(self, request: web.BaseRequest, refusal: Refusal, started: float) -> web.Response:
        reply = Reply.of(refusal.error)
        self._notes.round(request, None, None, reply, started)
        return json_response(reply, refusal.id)
