"""Answers to what a server asks of whoever is there: pongs and refusals. It knows no session and no call.

The way to say them is not kept: it is the owner's, and the two would keep each other alive.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from gateway.upstreams.background import Background
from gateway.wire.jsonrpc import Request, encode_error, encode_result

METHOD_NOT_FOUND: Final = -32601
_MOST: Final = 32
"""On their way at once. A server that asks for more gets no answer: it does not read them."""
Send: TypeAlias = Callable[[bytes], Awaitable[None]]


class Courtesies:
    """Gives answers beside everything else, if the server takes them at all."""

    __slots__ = ("_background", "_number")

    def __init__(self, background: Background) -> None:
        self._background = background
        self._number = 0

    def pong(self, ping: Request, send: Send) -> None:
        """Somebody is there."""
        self._say(encode_result(ping.id, {}), send)

    def refuse(
        self, request: Request, send: Send, code: int = METHOD_NOT_FOUND, why: str = "Method not found"
    ) -> None:
        """Whoever is there does not do that."""
        self._say(encode_error(request.id, code, why), send)

    def _say(self, body: bytes, send: Send) -> None:
        if self._number < _MOST:
            self._number += 1
            self._background.start(self._said(body, send), "courtesy")

    async def _said(self, body: bytes, send: Send) -> None:
        try:
            await send(body)
        finally:
            self._number -= 1
