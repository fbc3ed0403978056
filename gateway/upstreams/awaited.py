"""Waits for the answer to one request among all that a server says in a session, on whichever stream it comes.

It belongs on the request's own stream. Some servers take the request (202) and answer on the
standing one, as they did when there was only one stream: clients of their era go by the id alone.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, Final, Protocol

from gateway.upstreams.transport import OnlyTaken
from gateway.wire.jsonrpc import Failure, Id, Message, Result

_ANSWERS: Final = (Result, Failure)


class Asker(Protocol):
    """The session that asked."""

    @property
    def is_standing(self) -> bool:
        """Is there a stream beside those of the requests?"""

    def hear(self, message: Message) -> None:
        """Something came that is not the answer."""


class Awaited:
    """The answer to one request, once it is there."""

    __slots__ = ("_asker", "_reader", "message", "request_id")

    def __init__(self, asker: Asker, request_id: Id) -> None:
        self.message: Result | Failure | None = None
        self.request_id = request_id
        self._asker = asker
        self._reader: asyncio.Task[Any] | None = None

    def deliver(self, message: Message) -> bool:
        """Take what came on the request's own stream. True: that was it. The session hears all else."""
        # There an error without an id can only mean this request.
        if isinstance(message, _ANSWERS) and (message.id == self.request_id or message.id is None):
            self.message = self.message or message
            return True
        self._asker.hear(message)
        return False

    def overhear(self, message: Result | Failure) -> None:
        """It came elsewhere: whoever reads the request's own stream need not go on."""
        if self.message is None and self._reader is not None:
            self.message = message
            reader, self._reader = self._reader, None
            reader.cancel()

    async def read(self, reading: Awaitable[None]) -> None:
        """Read the request's own stream until the answer is there, or will not come."""
        self._reader = asyncio.current_task()  # in no variable: the two would keep each other
        try:
            try:
                await reading
            except OnlyTaken:
                if not self._asker.is_standing:
                    raise
                await asyncio.get_running_loop().create_future()  # whoever waits says for how long
        except asyncio.CancelledError:
            if self._reader is not None or _is_cancelled_otherwise():
                raise  # not because it was overheard, or not only because of that
        finally:
            self._reader = None


def _is_cancelled_otherwise() -> bool:
    """Did somebody else want the running task to end as well?"""
    task = asyncio.current_task()
    return task is None or task.uncancel() > 0
