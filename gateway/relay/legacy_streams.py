"""One stream of a bridged legacy session: what is to be written to a client, in order, until an end. No HTTP."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from gateway.upstreams.backlog import Backlog
from gateway.wire.jsonrpc import (
    Failure,
    Message,
    Notification,
    Request,
    Result,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
)
from gateway.wire.sse import encode_comment, encode_message

_MOST_WAITING: Final = 1024
"""Messages that a slow reader may be behind; beyond it the oldest go. An answer is always the newest."""
_KEEPALIVE_SECONDS: Final = 15.0
_KEEPALIVE: Final = encode_comment("keep-alive")


class LegacyStream:
    """Messages for one response stream."""

    __slots__ = ("_is_ended", "_waiting", "_wake", "has_reader", "token")

    def __init__(self, token: object = None) -> None:
        self.token = token
        """The progress token of the request that this stream answers."""
        self.has_reader = True
        """May anything but the answer go out on it?"""
        self._waiting = Backlog(_MOST_WAITING)
        self._is_ended = False
        self._wake = asyncio.Event()

    @property
    def is_full(self) -> bool:
        """Is its reader so far behind that one more message is one too many?"""
        return len(self._waiting) >= _MOST_WAITING

    def put(self, message: Message) -> None:
        """Have it written."""
        self._waiting.put(message)
        self._wake.set()

    def end(self) -> None:
        """Nothing follows."""
        self._is_ended = True
        self._wake.set()

    async def first(self, patience: float = _KEEPALIVE_SECONDS) -> Message | None:
        """The first message, if it is also the last; None: there is more to come, or nothing came in time."""
        try:
            async with asyncio.timeout(patience):
                while not self._waiting and not self._is_ended:
                    await self._news()
        except TimeoutError:
            return None
        return self._waiting.take() if self._waiting.is_one_answer else None

    async def events(self) -> AsyncIterator[bytes]:
        """What is to be written, as server-sent events, to the end."""
        while True:
            while self._waiting:
                yield encode_message(encoded(self._waiting.take()))
            if self._is_ended:
                return
            try:
                async with asyncio.timeout(_KEEPALIVE_SECONDS):
                    await self._news()
            except TimeoutError:
                yield _KEEPALIVE

    async def _news(self) -> None:
        self._wake.clear()
        await self._wake.wait()


def encoded(message: Message) -> bytes:
    """The message as bytes; what we do not read of it is as it came."""
    match message:
        case Request():
            return encode_request(message.id, message.method, message.params or None)
        case Notification():
            return encode_notification(message.method, message.params or None)
        case Result():
            return encode_result(message.id, message.result)
        case Failure():
            return encode_error(message.id, message.code, message.message, message.data)
