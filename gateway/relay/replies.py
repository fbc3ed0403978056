"""The last word of a round, as a modern client wants it, from what the legacy side said. Knows no listener."""

from collections.abc import Mapping
from typing import Any, Final

from gateway.eras.discovery import Introduction
from gateway.eras.failures import to_modern_failure
from gateway.eras.local_refusals import unmet_by_failure, unmet_by_result
from gateway.eras.pages import without_unsafe_pages
from gateway.eras.results import to_modern_result
from gateway.eras.vocabulary import ASKING_METHODS, Abort, Complete, CompleteFailure, Ending
from gateway.errors import CallLost, CapabilityMissing, GatewayError, UpstreamTimedOut
from gateway.relay.listener import Reply, RpcError
from gateway.relay.request import ClientRequest
from gateway.settings.upstream import Caching
from gateway.telemetry.logs import get_logger
from gateway.telemetry.names import LogEvent, Outcome
from gateway.wire.jsonrpc import Failure, Raw
from gateway.wire.versions import META_SERVER_INFO

_NOBODY_HEARD: Final = (
    "The upstream server asked a question and then did not answer in time; it keeps no sessions, "
    "so what the client said may never have reached the call that asked"
)


def ending_reply(ending: Ending, request: ClientRequest, server: Introduction, caching: Caching) -> Reply:
    """How the exchange ended."""
    match ending:
        case Complete(result):
            return completed(result, request, server, caching)
        case CompleteFailure(failure):
            return failed(failure, request)
        case Abort(error):
            return Reply.of(error)


def too_late(ending: Abort, *, is_in_doubt: bool, is_unheard: bool) -> Abort:
    """If the call took too long, after answers that perhaps nobody heard: say so.

    Args:
        ending: As it is otherwise told.
        is_in_doubt: The process that took the answers died over them.
        is_unheard: The server keeps no sessions.
    """
    if not isinstance(ending.error, UpstreamTimedOut):
        return ending
    if is_in_doubt:
        return Abort(CallLost("answers_in_doubt", "they were taken, and no result came"))
    return Abort(UpstreamTimedOut(detail=_NOBODY_HEARD)) if is_unheard else ending


def completed(result: Raw, request: ClientRequest, server: Introduction, caching: Caching) -> Reply:
    """The upstream's result; one that is none becomes an error."""
    if request.method == "tools/call":
        unmet = unmet_by_result(result, request.capabilities)
        if unmet is not None:
            return Reply.of(CapabilityMissing(unmet, "the server did not ask"))
    ttl_ms, cache_scope = caching.hints(request.method)
    try:
        modern = to_modern_result(
            request.method,
            result,
            server_info=server.server_info,
            ttl_ms=ttl_ms,
            cache_scope=cache_scope,
            version=server.version,
        )
    except GatewayError as error:
        return Reply.of(error)
    return Reply(Outcome.COMPLETE, result=modern)


def failed(failure: Failure, request: ClientRequest) -> Reply:
    """The upstream's own error."""
    unmet = unmet_by_failure(failure, request.capabilities) if request.method in ASKING_METHODS else None
    if unmet is not None:
        return Reply.of(CapabilityMissing(unmet, "the server did not ask"))
    modern = to_modern_failure(without_unsafe_pages(failure), method=request.method, params=request.params)
    return Reply(
        Outcome.ERROR,
        error=RpcError(modern.code, modern.message, modern.data),
        status=modern.http_status,
        reason="upstream_error",
    )


def own_fault(cause: Exception) -> Reply:
    """A bug of ours: the client learns its id, the log has the rest under it."""
    reply = Reply.of(GatewayError("see internal_error"))
    get_logger().error(LogEvent.INTERNAL_ERROR, error_id=reply.error_id, exc_info=cause)
    return reply


def input_required(requests: Mapping[str, Any], ticket: str, server: Introduction) -> Reply:
    """The client is to answer these, if any, and to come back with the ticket."""
    result: dict[str, Any] = {"resultType": "input_required", "requestState": ticket}
    if requests:
        result["inputRequests"] = requests
    if server.server_info:
        result["_meta"] = {META_SERVER_INFO: server.server_info}
    return Reply(Outcome.INPUT_REQUIRED, result=result)
