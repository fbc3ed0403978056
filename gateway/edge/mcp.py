"""The endpoint of one upstream: read, classify, admit, relay, reply. It reads from top to bottom."""

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache, partial
from typing import Final

from aiohttp import hdrs, web

from gateway.edge.classify import Accepted, Legacy, Modern, Refusal, classify
from gateway.edge.origins import origin_allowed
from gateway.edge.principals import Doorkeeper
from gateway.edge.reply import json_response, write_round
from gateway.eras.subscriptions import METHOD as LISTEN
from gateway.eras.vocabulary import ASKING_METHODS
from gateway.errors import (
    BodyTooLarge,
    GatewayError,
    MethodNotAllowed,
    OriginRefused,
    Overloaded,
    StateRejected,
)
from gateway.relay.listener import Ear, Listener, Reply
from gateway.relay.relay import FETCHED_METHODS, Relay
from gateway.relay.request import ClientRequest
from gateway.settings.model import Limits
from gateway.telemetry.logs import Round, get_logger, round_finished
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import LogEvent, Outcome, Rung
from gateway.wire import headers as names
from gateway.wire.versions import MODERN

DISCOVER: Final = "server/discover"
_TOOLS_CALL: Final = "tools/call"
_PARAM_PREFIX: Final = names.PARAM_PREFIX.lower()
_NO_HEADERS: Final[Mapping[str, list[str]]] = {}
_CANCELLED: Final = Reply(Outcome.CANCELLED, status=499)
SERVED_METHODS: Final = frozenset({DISCOVER, LISTEN, *FETCHED_METHODS, *ASKING_METHODS})


class Endpoint:
    """Serves modern clients of one upstream."""

    def __init__(
        self,
        relay: Relay,
        *,
        doorkeeper: Doorkeeper,
        limits: Limits,
        listen_host: str,
        metrics: Metrics,
        new_error_id: Callable[[], str],
    ) -> None:
        self._relay = relay
        self._doorkeeper = doorkeeper
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
        self._metrics = metrics
        self._new_error_id = new_error_id
        self._is_draining = False
        self._log = get_logger()

    def drain(self) -> None:
        """Begin nothing new. A client that comes back with its answers is still served: so its call can end."""
        self._is_draining = True

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one HTTP request."""
        started = time.perf_counter()
        try:
            self._check_door(request)
            verdict = classify(request.headers, await request.read(), served_methods=SERVED_METHODS)
        except web.HTTPRequestEntityTooLarge:
            verdict = Refusal(BodyTooLarge(f"more than {self._limits.body} bytes"), None)
        except GatewayError as error:
            verdict = Refusal(error, None)
        match verdict:
            case Modern():
                return await self._serve(request, verdict, started)
            case Accepted():
                return web.Response(status=202)
            case Legacy():
                return self._refuse(verdict.refusal(), started)
            case Refusal():
                return self._refuse(verdict, started)

    async def _serve(self, request: web.BaseRequest, modern: Modern, started: float) -> web.StreamResponse:
        """One round, whatever happens in it; one log line at its end."""
        client_request = ClientRequest(
            id=modern.id,
            method=modern.method,
            params=modern.params,
            target=modern.name or "",
            principal=self._doorkeeper.admit(request.headers.get(hdrs.AUTHORIZATION)),
            capabilities=modern.capabilities,
            client_info=modern.client_info,
            log_level=modern.log_level,
            progress_token=modern.progress_token,
            param_headers=_param_headers(request) if modern.method == _TOOLS_CALL else _NO_HEADERS,
        )
        heard: Ear | None = None
        reply = _CANCELLED  # unless something better is said below
        error_id: str | None = None
        try:
            if self._is_draining and "requestState" not in modern.params:
                raise Overloaded("draining")
            if modern.method in ASKING_METHODS:
                heard = await self._begin(client_request)
            elif modern.method == LISTEN:
                heard = self._relay.listen(client_request)
            if heard is not None:
                response, reply = await write_round(request, heard, modern.id, self._limits.keepalive)
                return response
            fetch: Callable[[ClientRequest], Awaitable[Reply]] = (
                self._relay.discover if modern.method == DISCOVER else self._relay.fetch
            )
            reply = await fetch(client_request)
            return json_response(reply, modern.id)
        except GatewayError as error:
            reply = Reply.of(error)
            return json_response(reply, modern.id)
        except ConnectionError:
            return web.Response(status=499)  # the client left while we wrote; nobody reads this
        except Exception as error:  # noqa: BLE001 - the last resort: our bug must not become a stack trace on the wire
            error_id = self._new_error_id()
            self._log.error(LogEvent.INTERNAL_ERROR, error_id=error_id, exc_info=error)
            reply = Reply.of(GatewayError("see internal_error", data={"errorId": error_id}))
            return json_response(reply, modern.id)
        finally:
            if heard is not None:
                heard.left()  # changes nothing after the last word
            self._note(modern.method, client_request.target, reply, started, heard, error_id)

    async def _begin(self, request: ClientRequest) -> Listener:
        if request.method == _TOOLS_CALL and not self._relay.tools.has_no_say(request):
            await self._relay.tools.check(request)
        if "requestState" not in request.params:
            return await self._relay.call(request)
        try:
            return await self._relay.retry(request)
        except StateRejected as error:
            self._metrics.state_rejected(self._relay.name, "rejected")
            self._log.warning(LogEvent.STATE_REJECTED, upstream=self._relay.name, detail=str(error))
            raise

    def _check_door(self, request: web.BaseRequest) -> None:
        if not self._is_allowed(request.headers.get(hdrs.ORIGIN), request.headers.get(hdrs.HOST)):
            raise OriginRefused(f"Origin {request.headers.get(hdrs.ORIGIN)!r}")
        if request.method != hdrs.METH_POST:
            raise MethodNotAllowed(request.method)

    def _refuse(self, refusal: Refusal, started: float) -> web.Response:
        reply = Reply.of(refusal.error)
        self._note(None, None, reply, started)
        return json_response(reply, refusal.id)

    def _note(
        self,
        method: str | None,
        target: str | None,
        reply: Reply,
        started: float,
        heard: Ear | None = None,
        error_id: str | None = None,
    ) -> None:
        seconds = time.perf_counter() - started
        self._metrics.round_finished(self._relay.name, method, reply.outcome, seconds)
        line = Round(
            upstream=self._relay.name,
            method=method,
            target=target or None,
            status=reply.status,
            outcome=reply.outcome,
            reason=reply.reason,
            detail=reply.detail,
            duration_ms=seconds * 1000,
            era=MODERN,
            exchange=heard.exchange_id if heard is not None else None,
            round=heard.round if heard is not None else None,
            rung=heard.rung if heard is not None and method is not None else Rung.FIRST if method else None,
            error_id=error_id,
        )
        round_finished(line)


def _param_headers(request: web.BaseRequest) -> Mapping[str, list[str]]:
    """The `Mcp-Param-*` lines, by what follows the prefix, in lower case."""
    if _PARAM_PREFIX not in " ".join(request.headers).lower():
        return _NO_HEADERS
    found: dict[str, list[str]] = {}
    for name, value in request.headers.items():
        if name[: len(_PARAM_PREFIX)].lower() == _PARAM_PREFIX:
            found.setdefault(name[len(_PARAM_PREFIX) :].lower(), []).append(value)
    return found
