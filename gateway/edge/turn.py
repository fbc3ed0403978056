"""One request on its way through an endpoint: what came, what became of it, and the one line the log has of it."""

import time
from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import hdrs, web

from gateway.edge.refusals import Refusals
from gateway.edge.request_ids import id_of
from gateway.relay.listener import Ear, Reply
from gateway.relay.request import ClientRequest
from gateway.telemetry.logs import Round, get_logger, round_finished
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import Outcome, Rung
from gateway.wire import headers as names
from gateway.wire.versions import MODERN

CANCELLED: Final = Reply(Outcome.CANCELLED, status=499)
LEGACY: Final = "legacy"
NO_HEADERS: Final[Mapping[str, list[str]]] = {}
_PARAM_PREFIX: Final = names.PARAM_PREFIX.lower()


class Turn:
    """One modern request on its way through, and what became of it."""

    __slots__ = ("asked", "body", "heard", "reply", "request")

    def __init__(self, request: web.BaseRequest, body: bytes, asked: ClientRequest) -> None:
        self.request = request
        self.body = body
        self.asked = asked
        self.heard: Ear | None = None
        self.reply = CANCELLED  # unless something better is said

    def readdressed(self, refusals: Refusals) -> Callable[[Reply], Reply]:
        """What becomes of an upstream's refusal of the caller's credentials."""
        return lambda reply: refusals.reply(reply, self.request.headers.get(hdrs.HOST))


class Notes:
    """What operators are told of one upstream's requests."""

    __slots__ = ("_log", "_metrics", "_upstream")

    def __init__(self, upstream: str, metrics: Metrics) -> None:
        self._upstream = upstream
        self._metrics = metrics
        self._log = get_logger()

    def round(
        self,
        request: web.BaseRequest,
        method: str | None,
        target: str | None,
        reply: Reply,
        started: float,
        heard: Ear | None = None,
        *,
        era: str = MODERN,
    ) -> None:
        """Count it, and write its line."""
        seconds = time.perf_counter() - started
        self._metrics.round_finished(self._upstream, method, reply.outcome, seconds)
        rung = _rung(heard, reply)
        if rung is not Rung.FIRST:
            self._metrics.round_found(self._upstream, rung)
        line = Round(
            upstream=self._upstream,
            method=method,
            target=target or None,
            status=reply.status,
            outcome=reply.outcome,
            reason=reply.reason,
            detail=reply.detail,
            duration_ms=seconds * 1000,
            era=era,
            exchange=heard.exchange_id if heard is not None else None,
            round=heard.round if heard is not None else None,
            rung=rung if method else None,
            error_id=reply.error_id,
            http_request_id=id_of(request),
        )
        round_finished(line)


def _rung(heard: Ear | None, reply: Reply) -> Rung:
    """How the round found its exchange; without anybody to hear it, a call that is lost was not found at all."""
    if heard is not None:
        return heard.rung
    return Rung.REFUSED if reply.outcome is Outcome.LOST else Rung.FIRST


def handed_on(status: int) -> Reply:
    """What is known of a request that somebody else answered."""
    return Reply(Outcome.COMPLETE if status < 400 else Outcome.ERROR, status=status)


def param_headers(request: web.BaseRequest) -> Mapping[str, list[str]]:
    """The `Mcp-Param-*` lines, by what follows the prefix, in lower case."""
    if _PARAM_PREFIX not in " ".join(request.headers).lower():
        return NO_HEADERS
    found: dict[str, list[str]] = {}
    for name, value in request.headers.items():
        if name[: len(_PARAM_PREFIX)].lower() == _PARAM_PREFIX:
            found.setdefault(name[len(_PARAM_PREFIX) :].lower(), []).append(value)
    return found
