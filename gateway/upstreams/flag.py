"""Something that happens once, and can be waited for. It weighs next to nothing until somebody does.

`asyncio.Event` keeps a queue of 600 bytes for those who wait. A held session has
several of them, nobody waits for any, and there are ten thousand sessions.
"""

import asyncio


class Flag:
    """Down, then up for ever."""

    __slots__ = ("_is_up", "_waiting")

    def __init__(self) -> None:
        self._is_up = False
        self._waiting: list[asyncio.Future[None]] | None = None

    def is_set(self) -> bool:
        """Has it happened?"""
        return self._is_up

    def set(self) -> None:
        """It has happened; whoever waits goes on."""
        self._is_up = True
        waiting, self._waiting = self._waiting, None
        for waiter in waiting or ():
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self) -> None:
        """Return when it has happened."""
        if self._is_up:
            return
        if self._waiting is None:
            self._waiting = []
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        finally:
            if self._waiting is not None:
                self._waiting.remove(waiter)
