"""Which replicas are alive: this one says so for itself, and asks about others. It does not know why it matters."""

import asyncio
import contextlib
import time
from typing import Final

from gateway.holds.lease import Lease
from gateway.stores.protocol import Store, StoreUnavailable

BEATS_OF_LIFE: Final = 3
"""How many beats may be missed."""
BEATS_OF_DOUBT: Final = 2
"""A replica that did not run for so long asks before it acts: surely before others may have taken over."""


class Hearts:
    """This replica's heart, and an eye on those of others."""

    def __init__(self, store: Store, *, replica: str, heartbeat: float) -> None:
        self._store = store
        self._replica = replica
        self.heartbeat = heartbeat
        self.lifetime = heartbeat * BEATS_OF_LIFE
        """After this time without a beat a replica counts as dead."""
        self.lease = Lease(time.monotonic, heartbeat * BEATS_OF_DOUBT)

    async def beat(self) -> None:
        """Beat without end. While the store cannot be reached there is nobody to hear it."""
        while True:
            with contextlib.suppress(StoreUnavailable):
                await self.beat_once()
            await asyncio.sleep(self.heartbeat)

    async def beat_once(self) -> None:
        """One beat. Raises `StoreUnavailable`."""
        await self._store.beat(self._replica, self.lifetime)

    async def watch_itself(self) -> None:
        """Notice, without end, if this process did not run for a while. Apart from the beat, which may wait long."""
        while True:
            self.lease.tick()
            await asyncio.sleep(self.heartbeat / 4)

    async def stop(self) -> None:
        """Say that this replica goes, so that nobody waits for its heart to stop."""
        with contextlib.suppress(StoreUnavailable):
            await self._store.leave(self._replica)

    async def is_dead(self, replica: str) -> bool:
        """Is it certain that this replica is dead? A store that was restarted has forgotten the living as well.

        Raises:
            StoreUnavailable: nobody knows.
        """
        return not await self._store.is_alive(replica) and self._store.steady_seconds() > self.lifetime
