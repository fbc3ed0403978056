"""The store of a gateway that is one process: nothing to install, nothing shared, nothing survives.

Several gateways in one process (tests) can share one object and then behave as replicas.
"""

import asyncio
import math
from collections import OrderedDict, defaultdict
from collections.abc import AsyncGenerator, Callable
from typing import Final

from gateway.stores.protocol import MOST_LETTERS, InboxFull, Owner

_MOST_WRITTEN: Final = 500_000
"""Exchanges, at some 300 bytes each. Of one that was struck out its tickets say that it is lost, not that it ended."""


class MemoryStore:
    """A directory in a dictionary. `now` is any clock that only goes forward."""

    def __init__(
        self, now: Callable[[], float], *, is_shared: bool = False, most_letters: int = MOST_LETTERS
    ) -> None:
        self.is_shared = is_shared
        self._now = now
        self._most_letters = most_letters
        self._hearts: dict[str, float] = {}
        self._owners: OrderedDict[str, tuple[Owner, float]] = OrderedDict()
        self._inboxes: defaultdict[str, asyncio.Queue[bytes]] = defaultdict(asyncio.Queue)

    async def start(self) -> None:
        """Nothing to connect to."""

    async def close(self) -> None:
        """Nothing to disconnect from."""

    def is_available(self) -> bool:
        """Always."""
        return True

    def steady_seconds(self) -> float:
        """For ever."""
        return math.inf

    async def beat(self, replica: str, seconds: float) -> None:
        """Note the time until which the replica counts as alive."""
        self._hearts[replica] = self._now() + seconds

    async def is_alive(self, replica: str) -> bool:
        """Has it said so in time?"""
        return self._hearts.get(replica, 0.0) > self._now()

    async def leave(self, replica: str) -> None:
        """Forget its heart."""
        self._hearts.pop(replica, None)

    async def record(self, exchange: str, replica: str, stage: int, seconds: float) -> bool:
        """Write the owner down, unless it is another by now."""
        known = self._live(exchange)
        if known is not None and known.replica != replica:
            return False
        before = known or Owner(replica, stage, 1)
        owner = Owner(replica, max(stage, before.stage), before.fence)
        self._owners[exchange] = (owner, self._now() + seconds)
        self._owners.move_to_end(exchange)
        self._sweep()
        return True

    async def owner(self, exchange: str) -> Owner | None:
        """Who has it."""
        return self._live(exchange)

    async def take_over(self, exchange: str, *, seen: Owner, replica: str, seconds: float) -> bool:
        """Change the owner if nobody else has."""
        if self._live(exchange) != seen:
            return False
        self._owners[exchange] = (Owner(replica, seen.stage, seen.fence + 1), self._now() + seconds)
        self._owners.move_to_end(exchange)
        return True

    async def forget(self, exchange: str, replica: str) -> None:
        """Strike it out, if it is this replica's."""
        known = self._live(exchange)
        if known is not None and known.replica == replica:
            del self._owners[exchange]

    async def post(self, replica: str, letter: bytes) -> None:
        """Into its queue."""
        queue = self._inboxes[replica]
        if queue.qsize() >= self._most_letters:
            raise InboxFull(replica)
        queue.put_nowait(letter)

    async def inbox(self, replica: str) -> AsyncGenerator[bytes, None]:
        """Out of its queue."""
        while True:
            yield await self._inboxes[replica].get()

    def _sweep(self) -> None:
        """Two of the oldest for each that is new: what nobody asks for again must not stay for ever."""
        for _ in range(2):
            oldest = next(iter(self._owners), None)
            if oldest is not None:
                self._live(oldest)
        while len(self._owners) > _MOST_WRITTEN:
            self._owners.popitem(last=False)

    def _live(self, exchange: str) -> Owner | None:
        known = self._owners.get(exchange)
        if known is None:
            return None
        owner, until = known
        if until > self._now():
            return owner
        del self._owners[exchange]
        return None
