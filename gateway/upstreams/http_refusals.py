"""What a Streamable HTTP server says when it refuses: as much of it as matters, and whether it is about the session."""

import asyncio
import contextlib
from typing import Final

import aiohttp

from gateway.upstreams.http1_connection import Response
from gateway.wire.jsonrpc import Failure, Id, NotJson, NotJsonRpc, parse

_BODY_BYTES: Final = 16 * 1024
_BODY_SECONDS: Final = 1.0
_SESSION_CODES: Final = (-32000, -32001, -32600)
"""What servers put into a refusal of the session, besides leaving the id out."""


async def refusal_of(response: Response) -> bytes:
    """As much of its body as may matter. The status says enough if it does not come."""
    body = bytearray()
    with contextlib.suppress(aiohttp.ClientError, TimeoutError):
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in response.iter_any():
                body += chunk
                if len(body) > _BODY_BYTES:
                    break
    return bytes(body)


def failure_in(body: bytes) -> Failure | None:
    """The JSON-RPC error that it is, if it is one."""
    try:
        message = parse(body)
    except (NotJson, NotJsonRpc):
        return None
    return message if isinstance(message, Failure) else None


def is_about_session(failure: Failure | None, request_id: Id | None, body: bytes) -> bool:
    """Is a 400 the server's way to say that it does not know the session?

    Bodies are JSON with a foreign id, null or none, plain text, or HTML. An
    error with our own id may be a tool's, which ran: it must look like a refusal.
    """
    if failure is None or request_id is None or failure.id != request_id:
        return b"session" in body.lower()
    return failure.code in _SESSION_CODES and "session" in failure.message.lower()
