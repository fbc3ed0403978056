"""What a server said, as messages; and what becomes of that which is none. It knows no stream.

Servers send heartbeats, log lines and `[DONE]` among their messages. SDK clients pass over what they cannot read;
only what may be the answer that is waited for must not be passed over, or its request would wait in vain.
"""

from gateway.errors import UpstreamSpokeNonsense
from gateway.telemetry.logs import get_logger
from gateway.telemetry.names import LogEvent
from gateway.upstreams.transport import Deliver
from gateway.wire.jsonrpc import Message, NotJson, NotJsonRpc, parse_many
from gateway.wire.sse import SseEvent


def messages(event: SseEvent) -> list[Message]:
    """Nothing if it is not of MCP's kind, or only primes the stream: reference servers tell that again as `{}`.

    Raises:
        UpstreamSpokeNonsense: it may have been the answer, and cannot be read.
    """
    if event.data in (b"", b"{}") or event.event != "message":
        return []
    try:
        return parsed(event.data)
    except UpstreamSpokeNonsense as error:
        if may_answer(event.data):
            raise
        get_logger().warning(LogEvent.UPSTREAM_PROTOCOL, detail=str(error), size=len(event.data))
        return []


def deliver_readable(event: SseEvent, deliver: Deliver) -> None:
    """Deliver what is in an event of the standing stream; what is not readable goes to the log."""
    try:
        for message in messages(event):
            deliver(message)
    except UpstreamSpokeNonsense as error:
        # It names no call that could fail of it, and what follows may be readable.
        get_logger().warning(LogEvent.UPSTREAM_PROTOCOL, detail=str(error))


def parsed(data: bytes) -> list[Message]:
    """All of it.

    Raises:
        UpstreamSpokeNonsense: it cannot be read.
    """
    try:
        return parse_many(data)
    except (NotJson, NotJsonRpc) as error:
        raise UpstreamSpokeNonsense(str(error)) from error


def may_answer(unreadable: bytes) -> bool:
    """Could this have been meant as the answer to a request?"""
    return b'"jsonrpc"' in unreadable and (b'"result"' in unreadable or b'"error"' in unreadable)
