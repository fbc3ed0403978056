"""Writes the answer of a round: as JSON if nothing came before it, as SSE after a notification or a long silence.

It knows no exchange; it takes what a listener gives until the last word.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from aiohttp import hdrs, web

from gateway.edge.message import JsonMessage
from gateway.edge.request_ids import sign
from gateway.relay.listener import Ear, Reply
from gateway.wire import headers as names
from gateway.wire.jsonrpc import Id, encode_error, encode_result
from gateway.wire.sse import encode_comment, encode_message

_STREAM_HEADERS: Final = {
    "Content-Type": names.EVENT_STREAM,
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",  # nginx would keep events back otherwise
}
_JSON_HEADERS: Final[dict[str, str]] = {hdrs.CONTENT_TYPE: names.JSON}
_KEEP_ALIVE: Final = encode_comment("keep-alive")
_MORE_THAN_A_BUFFER: Final = 64 * 1024
"""Less than this is written at once, whether it is read or not."""


def body_of(reply: Reply, request_id: Id | None) -> bytes:
    """The JSON-RPC message that ends a round."""
    if reply.error is not None:
        return encode_error(request_id, reply.error.code, reply.error.message, reply.error.data)
    if reply.result is None or request_id is None:
        raise AssertionError("a reply with neither result nor error")
    return encode_result(request_id, reply.result)


def json_response(reply: Reply, request_id: Id | None) -> web.Response:
    """The whole answer at once, with the status that belongs to it."""
    headers = {**_JSON_HEADERS, **reply.headers} if reply.headers else _JSON_HEADERS
    response = JsonMessage(body=body_of(reply, request_id), status=reply.status, headers=headers)
    if reply.headers and reply.headers.get(hdrs.CONNECTION) == "close":
        response.force_close()
    return response


async def write_round(
    request: web.BaseRequest,
    listener: Ear,
    request_id: Id,
    keepalive: float,
    patience: float = 30.0,
    readdressed: Callable[[Reply], Reply] | None = None,
) -> tuple[web.StreamResponse, Reply]:
    """Answer a round as its listener hears it; returns what was answered, for the log.

    While a client does not read, its listener keeps a bounded number of notifications and the last word. One that
    has read nothing for `patience` seconds is cut off. `readdressed` has the last say on a refusal that still has
    its own status.

    Raises:
        ConnectionError: the client is gone, or does not read.
    """
    heard = await listener.next(keepalive)
    if isinstance(heard, Reply):
        if readdressed is not None and heard.status in (401, 403):
            heard = readdressed(heard)
        response = json_response(heard, request_id)
        if len(response.body or b"") > _MORE_THAN_A_BUFFER:  # type: ignore[arg-type] # it is bytes, we made it
            await _sent(request, _whole(response, request), patience)
        return response, heard
    stream = web.StreamResponse(headers=_STREAM_HEADERS)
    sign(request, stream)
    await stream.prepare(request)
    while not isinstance(heard, Reply):
        await _sent(request, stream.write(_KEEP_ALIVE if heard is None else encode_message(heard)), patience)
        heard = await listener.next(keepalive)
    # Always a JSON-RPC message last: TypeScript clients wait a minute for one that does not come.
    await _sent(request, stream.write(encode_message(body_of(heard, request_id))), patience)
    await _sent(request, stream.write_eof(), patience)
    return stream, heard


async def _whole(response: web.Response, request: web.BaseRequest) -> None:
    sign(request, response)
    await response.prepare(request)
    await response.write_eof()


async def _sent(request: web.BaseRequest, writing: Coroutine[Any, Any, None], patience: float) -> None:
    """Write, for as long as the client reads."""
    try:
        async with asyncio.timeout(patience):
            await writing
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()  # closing would wait for the client to read
        raise ConnectionResetError("the client does not read") from None
