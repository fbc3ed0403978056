"""Which replicas live: this one says so, and asks after others. It does not know what they are needed for."""

import asyncio
import contextlib
from typing import Final

from gateway.stores.protocol import Store, StoreUnavailable

BEATS_OF_LIFE: Final = 3
"""How many beats may be missed."""


class Hearts:
    """This replica's heart, and an eye on those of others."""

    def __init__(self, store: Store, *, replica: str, heartbeat: float) -> None:
        self._store = store
        self._replica = replica
        self.heartbeat = heartbeat
        self.lifetime = heartbeat * BEATS_OF_LIFE
        """After this time without a beat a replica counts as dead."""

    async def beat(self) -> None:
        """Beat without end. While the store cannot be reached there is nobody to hear it."""
        while True:
            with contextlib.suppress(StoreUnavailable):
                await self._store.beat(self._replica, self.lifetime)
            await asyncio.sleep(self.heartbeat)

    async def stop(self) -> None:
        """Say that this replica goes, so that nobody waits for its heart to stop."""
        with contextlib.suppress(StoreUnavailable):
            await self._store.leave(self._replica)

    async def is_dead(self, replica: str) -> bool:
        """Surely? In doubt it lives: a store that was restarted has forgotten the hearts of the living too.

        Raises:
            StoreUnavailable: nobody knows.
        """
        return not await self._store.is_alive(replica) and self._store.steady_seconds() > self.lifetime
