"""Server processes that are started and wait, spoken to by nobody yet. It knows no session and no caller.

A server may take seconds to load, and for stdio every session is a process. What
a process has not been told it cannot know: any caller may have any spare, and a
handshake with one that is ready takes no time. So a few for all are enough,
where ready *sessions* would be needed for each caller.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.errors import GatewayError
from gateway.upstreams.background import Background
from gateway.upstreams.stdio import Stdio

_CLOSE_SECONDS: Final = 10.0
"""Ending a process takes its time at most: its input closed, SIGTERM, SIGKILL."""


class Spares:
    """Keeps `number` processes waiting, from the first `take` until nobody took one for `idle` seconds."""

    __slots__ = ("_background", "_filling", "_idle", "_is_closed", "_number", "_start", "_timer", "_waiting")

    def __init__(self, start: Callable[[], Awaitable[Stdio]], *, number: int, idle: float) -> None:
        self._start = start
        self._number = number
        self._idle = idle
        self._waiting: deque[Stdio] = deque()
        self._background = Background()
        self._filling: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """How many there are."""
        return len(self._waiting)

    async def take(self) -> Stdio:
        """The one that has waited longest, or a new one.

        Raises:
            UpstreamUnreachable: a process cannot be started.
        """
        taken = self._pop()
        if taken is None:
            taken = await self._start()
        self._stay()
        if self._number and (self._filling is None or self._filling.done()):
            self._filling = self._background.start(self._fill(), "spare-processes")
        return taken

    def give(self, spare: Stdio) -> bool:
        """Keep one that was started for something else, and is as good as new; False: it is not wanted."""
        if self._is_closed or not spare.is_running:
            return False
        self._waiting.appendleft(spare)
        self._stay()
        return True

    async def close(self) -> None:
        """End those that wait; none is kept any more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._filling is not None:
            await asyncio.wait([self._filling])  # not cancelled: it may be about to have a process
        self._drop_all()
        await self._background.settle(_CLOSE_SECONDS)
        await self._background.close()

    def _pop(self) -> Stdio | None:
        while self._waiting:
            spare = self._waiting.popleft()
            if spare.is_running:
                return spare
            self._background.start(spare.close(), "close-spare")
        return None

    def _stay(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._idle, self._drop_all)

    def _drop_all(self) -> None:
        while self._waiting:
            self._background.start(self._waiting.popleft().close(), "close-spare")

    async def _fill(self) -> None:
        try:
            while len(self._waiting) < self._number and not self._is_closed:
                self._waiting.append(await self._start())
        except GatewayError:
            return  # who needs one will find out, and say so
