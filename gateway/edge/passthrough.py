"""Takes a request that is not ours to answer from its connection, and writes the response to it. It knows no MCP.

What a client sends goes on as it is, but for what concerns only its connection
to us. `Host` is the upstream's own and `Origin` stays here: both were checked
against *our* names at the door, and a server that checks them knows only its
own. Who asked, and for which name, is told in `X-Forwarded-*`.
"""

import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from operator import attrgetter
from typing import Final

from aiohttp import hdrs, web
from multidict import CIMultiDict

from gateway.edge.request_ids import sign
from gateway.errors import ClientFault, GatewayError, Overloaded, UpstreamFault, UpstreamTimedOut
from gateway.relay.passage import HeaderLines, Knock, Passage, end_to_end
from gateway.wire import headers as names
from gateway.wire.jsonrpc import Id, encode_error

_OURS: Final = frozenset({"host", "origin", "content-length", "expect", "x-forwarded-for"})
_NONE: Final[frozenset[str]] = frozenset()
_AUTHORIZATION: Final = hdrs.AUTHORIZATION.lower()
_NO_BODY: Final = frozenset({204, 304})


def knock_of(
    request: web.BaseRequest, body: bytes, *, owner: str | None = None, withheld: frozenset[str] = _NONE
) -> Knock:
    """The client's request, ready to be handed on; without the headers that are withheld from the upstream."""
    headers = request.headers
    return Knock(
        verb=request.method,
        path=request.raw_path.partition("?")[0],
        query=request.raw_path.partition("?")[2],
        headers=[*end_to_end(list(headers.items()), without=_OURS | withheld), *_forwarded(request)],
        body=body,
        session_id=headers.get(names.SESSION_ID),
        authorization=None if _AUTHORIZATION in withheld else headers.get(hdrs.AUTHORIZATION),
        owner=owner,
        shows_version=names.PROTOCOL_VERSION in headers,
    )


class _AsItCame(web.StreamResponse):
    """Has the type that the upstream gave its body, or none: aiohttp would make one up."""

    async def _prepare_headers(self) -> None:
        is_typed = hdrs.CONTENT_TYPE in self.headers
        await super()._prepare_headers()
        if not is_typed:
            self.headers.popall(hdrs.CONTENT_TYPE, None)


async def write_passage(
    request: web.BaseRequest,
    passing: AbstractAsyncContextManager[Passage],
    headers_of: Callable[[Passage], HeaderLines] = attrgetter("headers"),
) -> web.StreamResponse:
    """Write the upstream's response as it comes, under the headers that are to be written for it.

    Raises:
        GatewayError: there is none; nothing was written.
    """
    response: web.StreamResponse | None = None
    try:
        async with passing as passage:
            response = _AsItCame(
                status=passage.status, reason=passage.reason, headers=CIMultiDict(headers_of(passage))
            )
            sign(request, response)
            await response.prepare(request)
            if passage.status not in _NO_BODY:
                async with contextlib.aclosing(passage.chunks) as chunks:  # type: ignore[type-var]
                    async for chunk in chunks:
                        await response.write(chunk)
            await response.write_eof()
    except GatewayError:
        if response is None:
            raise
        # It broke off, and the client is to see just that: an end would look like the whole.
        response.force_close()
        if request.transport is not None:
            request.transport.abort()
    return response


def refusal(error: GatewayError, request_id: Id | None) -> web.Response:
    """How a legacy client is told that there is no response: by the status, as by any other gateway."""
    data = error.data if error.error_id is None else {**(error.data or {}), "errorId": error.error_id}
    return web.Response(
        status=_status(error),
        body=encode_error(request_id, error.rpc_code, error.message, data),
        headers=error.headers,
        content_type=names.JSON,
    )


def _status(error: GatewayError) -> int:
    match error:
        case UpstreamTimedOut():
            return 504
        case Overloaded():
            return error.http_status
        case UpstreamFault() if error.http_status == 200:
            return 502
        case UpstreamFault() | ClientFault():
            return error.http_status
        case _:
            return 500


def _forwarded(request: web.BaseRequest) -> list[tuple[str, str]]:
    headers = request.headers
    before = headers.getall(hdrs.X_FORWARDED_FOR, [])
    peer = [request.remote] if request.remote else []
    lines: list[tuple[str, str]] = (
        [(hdrs.X_FORWARDED_FOR, ", ".join([*before, *peer]))] if before or peer else []
    )
    # Whoever stands before us saw the client's own address line; where nobody does, we did.
    if hdrs.X_FORWARDED_PROTO not in headers:
        lines.append((hdrs.X_FORWARDED_PROTO, request.scheme))
    if hdrs.X_FORWARDED_HOST not in headers and hdrs.HOST in headers:
        lines.append((hdrs.X_FORWARDED_HOST, headers[hdrs.HOST]))
    return lines
