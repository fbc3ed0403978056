"""The address to which a client over HTTP+SSE speaks: in the `endpoint` event of its stream, and in its requests."""

from collections.abc import AsyncIterator, Callable
from typing import Final

from gateway.wire.sse import EventTooLarge, SseParser

ADDRESS: Final = "holdfast"
"""The query parameter that carries an upstream's own address."""
_MOST_BEFORE_ENDPOINT: Final = 64 * 1024


def address_in(query: str) -> str | None:
    """The sealed address in a query, if there is one."""
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if name == ADDRESS:
            return value
    return None


async def with_own_endpoint(
    chunks: AsyncIterator[bytes], own_address: Callable[[str], str]
) -> AsyncIterator[bytes]:
    """The stream, with the address in its `endpoint` event changed; all else byte by byte as it came."""
    parser = SseParser(_MOST_BEFORE_ENDPOINT)
    held: bytes | None = b""
    async for chunk in chunks:
        if held is None:
            yield chunk
            continue
        held += chunk
        try:
            found = next((event for event in parser.feed(chunk) if event.event == "endpoint"), None)
        except EventTooLarge:
            found = None
        if found is not None:
            theirs = found.data
            at = held.index(theirs, held.index(b"endpoint"))
            yield held[:at] + own_address(theirs.decode().strip()).encode() + held[at + len(theirs) :]
            held = None
        elif len(held) > _MOST_BEFORE_ENDPOINT:
            yield held
            held = None
    if held:
        yield held
