"""The messages that a Streamable HTTP server sends, as events or as a body. It reads no stream."""

from gateway.errors import UpstreamSpokeNonsense
from gateway.telemetry.logs import get_logger
from gateway.telemetry.names import LogEvent
from gateway.upstreams.transport import Deliver
from gateway.wire.jsonrpc import Message, NotJson, NotJsonRpc, parse_many
from gateway.wire.sse import SseEvent


def deliver_readable(event: SseEvent, deliver: Deliver) -> None:
    """Deliver what is in an event of the standing stream; what is not readable goes to the log."""
    try:
        for message in messages_in(event):
            deliver(message)
    except UpstreamSpokeNonsense as error:
        # It names no call that could fail of it, and what follows may be readable.
        get_logger().warning(LogEvent.UPSTREAM_PROTOCOL, detail=str(error))


def messages_in(event: SseEvent) -> list[Message]:
    """Nothing if it is not of MCP's kind, or only primes the stream: reference servers tell that again as `{}`.

    Raises:
        UpstreamSpokeNonsense: what it holds is no message.
    """
    return parsed(event.data) if event.data not in (b"", b"{}") and event.event == "message" else []


def parsed(data: bytes) -> list[Message]:
    """One message, or a batch.

    Raises:
        UpstreamSpokeNonsense: it is neither.
    """
    try:
        return parse_many(data)
    except (NotJson, NotJsonRpc) as error:
        raise UpstreamSpokeNonsense(str(error)) from error
