"""Sends to the legacy server what an exchange has to say besides its call, in order. It knows no meaning."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.errors import GatewayError, UpstreamFault, UpstreamTimedOut
from gateway.telemetry.logs import get_logger
from gateway.telemetry.names import LogEvent
from gateway.upstreams.background import Background

_SEND_SECONDS: Final = 10.0
"""How long a server may take to accept an answer or a notification."""


async def _always() -> bool:
    return True


class Outbox:
    """Sends in order, each after the one before was taken; a failure is told and the rest goes on."""

    __slots__ = ("_background", "_may_send", "_on_failure", "_sender", "_waiting")

    def __init__(
        self,
        background: Background,
        on_failure: Callable[[GatewayError], None],
        may_send: Callable[[], Awaitable[bool]] = _always,
    ) -> None:
        """`may_send` is asked each time, right before; what may not be sent is dropped."""
        self._background = background
        self._on_failure = on_failure
        self._may_send = may_send
        self._waiting: deque[Callable[[], Awaitable[None]]] | None = None
        self._sender: asyncio.Task[None] | None = None

    @property
    def is_empty(self) -> bool:
        """Has everything been sent?"""
        return self._sender is None

    def put(self, send: Callable[[], Awaitable[None]]) -> None:
        """Send this after all that was put in before."""
        if self._waiting is None:
            self._waiting = deque()
        self._waiting.append(send)
        if self._sender is None:
            self._sender = self._background.start(self._run(self._waiting), "outbox")

    async def _run(self, waiting: deque[Callable[[], Awaitable[None]]]) -> None:
        try:
            while waiting:
                try:
                    send = waiting.popleft()
                    async with asyncio.timeout(_SEND_SECONDS):
                        if await self._may_send():
                            await send()
                except TimeoutError:
                    self._on_failure(UpstreamTimedOut("an answer was not taken in time"))
                except GatewayError as error:
                    self._on_failure(error)
                except Exception as error:  # noqa: BLE001 - our bug must not keep the session from being let go
                    get_logger().error(LogEvent.INTERNAL_ERROR, where="outbox", exc_info=error)
                    self._on_failure(UpstreamFault("the answer could not be sent"))
        finally:
            self._sender = None
            self._waiting = None
