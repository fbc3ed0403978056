"""What this replica tells the others about its exchanges, and what they told. It knows no exchange from the inside.

Losing the store costs the way to other replicas and nothing else: what is here
goes on, and every answer that the store could not give is the one that keeps
this process going.
"""

from typing import Final

from gateway.stores.protocol import Owner, Store, StoreUnavailable

_MARGIN_SECONDS: Final = 60.0
"""An exchange stays written down a little longer than its ticket is good."""

_DONE: Final = 2**31
"""Later than any round."""


class Directory:
    """The shared book of who has which exchange."""

    def __init__(self, store: Store, *, replica: str, seconds: float) -> None:
        self._store = store
        self._replica = replica
        self._seconds = seconds + _MARGIN_SECONDS

    @property
    def is_shared(self) -> bool:
        """Is there anybody to tell?"""
        return self._store.is_shared

    async def note_held(self, exchange: str, round_: int) -> bool:
        """The client is away with this round's questions. False: the exchange is another replica's by now."""
        return await self._note(exchange, 2 * round_)

    async def note_taken(self, exchange: str, round_: int) -> bool:
        """This round's answers are about to be delivered here. False: they must not be."""
        return await self._note(exchange, 2 * round_ + 1)

    async def owner(self, exchange: str) -> Owner | None:
        """Which replica has it, as far as is written down.

        Raises:
            StoreUnavailable: nobody can say.
        """
        return await self._store.owner(exchange)

    @staticmethod
    def is_done(owner: Owner) -> bool:
        """Has the exchange ended?"""
        return owner.stage >= _DONE

    def is_me(self, replica: str) -> bool:
        """Is it this replica?"""
        return replica == self._replica

    async def take_over(self, exchange: str, seen: Owner | None, round_: int) -> bool:
        """Become the owner, if nobody else has in the meantime.

        Raises:
            StoreUnavailable: nobody can say.
        """
        if seen is None:
            return await self._store.record(exchange, self._replica, 2 * round_, self._seconds)
        if self.is_me(seen.replica):
            return True
        return await self._store.take_over(exchange, seen=seen, replica=self._replica, seconds=self._seconds)

    async def note_done(self, exchange: str) -> bool:
        """It has ended: no ticket of it starts anything any more, here or elsewhere."""
        return await self._note(exchange, _DONE)

    async def _note(self, exchange: str, stage: int) -> bool:
        try:
            return await self._store.record(exchange, self._replica, stage, self._seconds)
        except StoreUnavailable:
            return True
