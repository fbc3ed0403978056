"""Everything the gateway refuses or fails to do, as one tree.

    GatewayError
      ClientFault                the caller can mend it                        4xx
        MalformedJson            the body is not JSON                          400  -32700
        InvalidRequest           not one JSON-RPC request or notification      400  -32600
        InvalidParams            parameters missing or of the wrong shape      400  -32602
        StateRejected            the sealed state did not verify (frozen text) 400  -32602
        HeaderMismatch           headers and body disagree                     400  -32020
        CapabilityMissing        the call needs what the client cannot do      400  -32021
        UnsupportedVersion       a protocol revision that we do not speak      400  -32022
        MethodNotFound           no such method in this revision               404  -32601
        Unauthorized             no credential, or a bad one                   401
        Forbidden                known, but not for this                       403
        OriginRefused            a foreign Origin or Host                      403
        MethodNotAllowed         not POST                                      405
        NotAcceptable            Accept lacks JSON or SSE                      406
        BodyTooSlow              it did not arrive in time                     408
        BodyBroken               it ended or went wrong on the way             400
        BodyTooLarge             over the configured limit                     413
        UnsupportedMediaType     a body that is not application/json           415
      CallLost                   the exchange cannot go on; start again        200  -31001
      UpstreamFault              the legacy server misbehaved                  200  -32603
        UpstreamUnreachable      no byte of the request was sent
        UpstreamLost             the stream ended in mid-call
        UpstreamTimedOut         it took longer than `call_timeout`
        UpstreamSpokeNonsense    an answer that is not MCP
        UpstreamRefused          an HTTP refusal of the whole request
        UpstreamUnauthorized     401 or 403: passed on with its challenge      401/403
        UpstreamChanged          it is of another era now, and ran nothing
      Overloaded                 we chose to shed this request                 503
        UpstreamDown             it could not be reached lately: not tried
        RateLimited              this caller, or all together, call too often  429  -31002

Each class fixes how it looks on the wire (`rpc_code`, `http_status`) and in
metrics (`reason`). Text given to the constructor is for our own log; the client
sees `public`, or `detail` where one is given because it helps the caller and
tells nothing that the caller did not send.

Upstream failures are HTTP 200: TypeScript clients read a JSON-RPC error only
from 2xx or 400, and a failed tool is not a failed gateway. So is a bug of ours,
which is a plain GatewayError with -32603: the client is to read its `errorId`.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self


class GatewayError(Exception):
    """Base of the tree; never raised itself."""

    rpc_code: ClassVar[int] = -32603
    http_status: int = 200
    reason: ClassVar[str] = "internal"
    public: ClassVar[str] = "Internal error"
    headers: Mapping[str, str] = MappingProxyType({})
    """HTTP response headers that belong to this refusal."""

    def __init__(
        self, log_text: str = "", *, detail: str | None = None, data: dict[str, Any] | None = None
    ) -> None:
        super().__init__(log_text or detail or self.public)
        self.message = detail or self.public
        self.data = data
        self.error_id: str | None = None
        """Under which the client and the log speak of it; given when it is made known to either."""

    def bare(self) -> Self:
        """Itself without where it came from: who keeps that keeps all that was at work there."""
        self.__traceback__ = self.__cause__ = self.__context__ = None
        return self


class ClientFault(GatewayError):
    """The caller can mend it."""

    rpc_code = -32600
    http_status = 400
    reason = "client_fault"
    public = "Invalid request"


class MalformedJson(ClientFault):
    """The body is not JSON."""

    rpc_code = -32700
    reason = "malformed_json"
    public = "Parse error"


class InvalidRequest(ClientFault):
    """The body is JSON, but not one JSON-RPC request or notification."""

    reason = "invalid_request"


class InvalidParams(ClientFault):
    """Parameters are missing or of the wrong shape."""

    rpc_code = -32602
    reason = "invalid_params"
    public = "Invalid params"


class StateRejected(ClientFault):
    """The echoed `requestState` is not one that we sealed for this caller and call, or it is too old.

    One frozen answer for every cause: an attacker learns nothing from it. The
    constructor's text is the true cause and goes to the log only; so does the
    error's id, and the log has the JSON-RPC id of the request beside it.
    """

    rpc_code = -32602
    reason = "invalid_request_state"
    public = "Invalid or expired requestState"

    def __init__(self, log_text: str = "") -> None:
        super().__init__(log_text, data={"reason": "invalid_request_state"})


class HeaderMismatch(ClientFault):
    """A header is missing, doubled, undecodable, or says something else than the body."""

    rpc_code = -32020
    reason = "header_mismatch"
    public = "Headers do not match the request body"


class CapabilityMissing(ClientFault):
    """The call needs a client capability that this request did not declare."""

    rpc_code = -32021
    reason = "capability_missing"
    public = "The request needs a client capability that was not declared"

    def __init__(self, required: dict[str, Any], log_text: str = "") -> None:
        named = ", ".join(
            f"{name}.{part}" if part else name for name, parts in required.items() for part in parts or ("",)
        )
        detail = f"{self.public}: {named}" if named else None
        super().__init__(log_text, detail=detail, data={"requiredCapabilities": required})


class UnsupportedVersion(ClientFault):
    """A protocol revision that we do not speak."""

    rpc_code = -32022
    reason = "unsupported_version"
    public = "Unsupported protocol version"

    def __init__(self, requested: str, supported: tuple[str, ...]) -> None:
        data = {"supported": list(supported), "requested": requested}
        super().__init__(f"requested {requested!r}", data=data)


class MethodNotFound(ClientFault):
    """No such method in this revision; the only error that is an HTTP 404."""

    rpc_code = -32601
    http_status = 404
    reason = "method_not_found"
    public = "Method not found"


class Unauthorized(ClientFault):
    """No credential, or one that does not verify. Which of the two and why is in the log, and in the challenge."""

    http_status = 401
    reason = "unauthorized"
    public = "Authentication required"

    def __init__(self, log_text: str = "", *, challenge: str | None = None) -> None:
        super().__init__(log_text)
        self.headers = _challenging(challenge)


class Forbidden(Unauthorized):
    """The caller is known, or cannot be known from where it calls; this is not for it."""

    http_status = 403
    reason = "forbidden"
    public = "Not allowed"


class OriginRefused(ClientFault):
    """A foreign `Origin` or `Host`: a browser was tricked, or a name was rebound."""

    http_status = 403
    reason = "origin_refused"
    public = "Forbidden origin"
    public_for_host: ClassVar[str] = "Forbidden host"


class MethodNotAllowed(ClientFault):
    """This revision has only POST."""

    http_status = 405
    reason = "method_not_allowed"
    public = "Method not allowed"
    headers = MappingProxyType({"Allow": "POST"})


class NotAcceptable(ClientFault):
    """`Accept` must list both media types."""

    http_status = 406
    reason = "not_acceptable"
    public = "Accept must list application/json and text/event-stream"


class BodyTooSlow(ClientFault):
    """The body did not arrive within `limits.body_timeout`."""

    http_status = 408
    reason = "body_too_slow"
    public = "The request body did not arrive in time"
    headers = MappingProxyType({"Connection": "close"})  # what still comes is not waited for


class BodyBroken(ClientFault):
    """The body went wrong as HTTP: a bad chunk, or an early end."""

    reason = "body_broken"
    public = "The request body is broken"
    headers = MappingProxyType({"Connection": "close"})  # where the next request would begin nobody can tell


class BodyTooLarge(ClientFault):
    """Over the configured limit."""

    http_status = 413
    reason = "body_too_large"
    public = "Request body too large"


class UnsupportedMediaType(ClientFault):
    """A body that is not `application/json`, or is compressed."""

    http_status = 415
    reason = "unsupported_media_type"
    public = "Content-Type must be application/json"


class CallLost(GatewayError):
    """The last rung of the ladder: this exchange cannot go on, and was not run again.

    The code lies outside the ranges that JSON-RPC and MCP reserve.
    """

    rpc_code = -31001
    http_status = 200
    reason = "call_lost"
    public = "This call is lost and may have had side effects; start it again only if that does no harm"
    harmless: ClassVar[str] = "This call is lost and had no side effects; start it again"
    late: ClassVar[str] = "The question was not answered in time"

    def __init__(self, cause: str, log_text: str = "", *, side_effects_possible: bool = True) -> None:
        told = self.public if side_effects_possible else self.harmless
        super().__init__(
            log_text or cause,
            detail=f"{self.late}. {told}" if cause == "hold_expired" else told,
            data={"reason": cause, "sideEffectsPossible": side_effects_possible, "canStartAgain": True},
        )


class UpstreamFault(GatewayError):
    """The legacy server failed or misbehaved."""

    http_status = 200
    reason = "upstream_fault"
    public = "The upstream server failed"


class UpstreamUnreachable(UpstreamFault):
    """No connection: nothing was sent, so trying again is safe."""

    reason = "upstream_unreachable"
    public = "The upstream server cannot be reached"


class UpstreamLost(UpstreamFault):
    """The stream ended in mid-call: the call may have run, so it is not sent again."""

    reason = "upstream_lost"
    public = "The upstream server closed the connection before it answered; the call may have run"


class UpstreamTimedOut(UpstreamFault):
    """The call took longer than `call_timeout`, time while held not counted."""

    reason = "upstream_timed_out"
    public = "The upstream server did not answer in time"


class UpstreamSpokeNonsense(UpstreamFault):
    """An answer that is not MCP, or over a size limit."""

    reason = "upstream_protocol"
    public = "The upstream server sent an answer that is not valid MCP"


class UpstreamRefused(UpstreamFault):
    """The upstream answered the HTTP request with an error status and no JSON-RPC error for it."""

    reason = "upstream_refused"
    public = "The upstream server refused the request"

    def __init__(self, status: int, log_text: str = "") -> None:
        super().__init__(log_text or f"HTTP {status}", data={"upstreamStatus": status})
        self.status = status


class UpstreamUnauthorized(UpstreamFault):
    """401 or 403 from the upstream: passed on with its challenge, so that the client can log in."""

    rpc_code = -32600
    reason = "upstream_unauthorized"
    public = "The upstream server did not accept the credentials"

    def __init__(self, status: int, challenge: str | None = None) -> None:
        super().__init__(f"HTTP {status}")
        self.http_status = status
        self.headers = _challenging(challenge)


class UpstreamChanged(UpstreamFault):
    """The upstream turned out to be of another era than it was; it refused the request, so it did not run."""

    reason = "upstream_changed"
    public = "The upstream server was replaced by another version; send the request again"


class Overloaded(GatewayError):
    """We chose to shed this request."""

    http_status = 503
    reason = "overloaded"
    public = "The gateway is at its limit; try again shortly"
    headers: Mapping[str, str] = MappingProxyType({"Retry-After": "1"})


class UpstreamDown(Overloaded):
    """The upstream could not be reached several times in a row, and is left alone for a while."""

    reason = "circuit_open"
    public = "The upstream server cannot be reached at the moment; try again shortly"

    def __init__(self, log_text: str = "", *, seconds: float = 1.0) -> None:
        super().__init__(log_text)
        self.headers = _retry_after(seconds)


class RateLimited(Overloaded):
    """More requests than `rate` allows. Nothing was taken: the same request, ticket and all, is good later.

    The code lies outside the ranges that JSON-RPC and MCP reserve.
    """

    rpc_code = -31002
    http_status = 429
    reason = "rate_limited"
    public = "Too many requests; try again later"

    def __init__(self, seconds: float) -> None:
        self.headers = _retry_after(seconds)
        told = {"retryAfter": int(self.headers["Retry-After"])}
        super().__init__(f"to be tried again after {seconds:.3f} s", data=told)


def _challenging(challenge: str | None) -> Mapping[str, str]:
    """How to come back with a credential."""
    return {"WWW-Authenticate": challenge} if challenge else {}


def _retry_after(seconds: float) -> Mapping[str, str]:
    return {"Retry-After": str(max(1, math.ceil(seconds)))}
