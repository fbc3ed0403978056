"""Writes one round's answer: JSON if it is the first thing to say, SSE from the first notification or a long silence.

It knows no exchange; it takes what a listener gives until the last word.
"""

from typing import Final

from aiohttp import hdrs, web

from gateway.edge.cors import share
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
    response = web.Response(body=body_of(reply, request_id), status=reply.status, headers=headers)
    if reply.headers and reply.headers.get(hdrs.CONNECTION) == "close":
        response.force_close()
    return response


async def write_round(
    request: web.BaseRequest, listener: Ear, request_id: Id, keepalive: float
) -> tuple[web.StreamResponse, Reply]:
    """Answer a round as its listener hears it; returns what was answered, for the log."""
    heard = await listener.next(keepalive)
    if isinstance(heard, Reply):
        return json_response(heard, request_id), heard
    stream = web.StreamResponse(headers=_STREAM_HEADERS)
    share(request, stream)
    await stream.prepare(request)
    while not isinstance(heard, Reply):
        await stream.write(_KEEP_ALIVE if heard is None else encode_message(heard))
        heard = await listener.next(keepalive)
    # Always a JSON-RPC message last: TypeScript clients wait a minute for one that does not come.
    await stream.write(encode_message(body_of(heard, request_id)))
    await stream.write_eof()
    return stream, heard
