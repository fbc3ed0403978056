"""What is to be sent to the legacy server beside the call itself, one after the other. It knows no meaning.

Nor does it keep whom to tell of a failure for longer than there is something to send: whoever has an outbox is told,
and the two would keep each other alive.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from gateway.errors import GatewayError, UpstreamFault, UpstreamTimedOut
from gateway.telemetry.logs import get_logger
from gateway.telemetry.names import LogEvent
from gateway.upstreams.background import Background

_SEND_SECONDS: Final = 10.0
"""How long a server may take to accept an answer or a notification."""


async def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class _Letter:
    send: Callable[[], Awaitable[None]]
    on_failure: Callable[[GatewayError], None]
    may_send: Callable[[], Awaitable[bool]]


class Outbox:
    """Sends in order, each after the one before was taken; a failure is told and the rest goes on."""

    __slots__ = ("_background", "_sender", "_waiting")

    def __init__(self, background: Background) -> None:
        self._background = background
        self._waiting: deque[_Letter] | None = None
        self._sender: asyncio.Task[None] | None = None

    @property
    def is_empty(self) -> bool:
        """Has everything been sent?"""
        return self._sender is None

    def put(
        self,
        send: Callable[[], Awaitable[None]],
        on_failure: Callable[[GatewayError], None],
        may_send: Callable[[], Awaitable[bool]] = _always,
    ) -> None:
        """Send this after all that was put in before. `may_send` is asked right before; what may not be is dropped."""
        if self._waiting is None:
            self._waiting = deque()
        self._waiting.append(_Letter(send, on_failure, may_send))
        if self._sender is None:
            self._sender = self._background.start(self._run(self._waiting), "outbox")

    async def _run(self, waiting: deque[_Letter]) -> None:
        try:
            while waiting:
                letter = waiting.popleft()
                try:
                    async with asyncio.timeout(_SEND_SECONDS):
                        if await letter.may_send():
                            await letter.send()
                except TimeoutError:
                    letter.on_failure(UpstreamTimedOut("an answer was not taken in time"))
                except GatewayError as error:
                    letter.on_failure(error)
                except Exception as error:  # noqa: BLE001 - our bug must not keep the session from being let go
                    get_logger().error(LogEvent.INTERNAL_ERROR, where="outbox", exc_info=error)
                    letter.on_failure(UpstreamFault("the answer could not be sent"))
        finally:
            self._sender = None
            self._waiting = None
