"""What this replica tells the others about its exchanges, and what they told. It knows no exchange from the inside.

Losing the store costs the way to other replicas and nothing else: what is here
goes on, and every answer that the store could not give is the one that keeps
this process going.
"""

from typing import Final

from gateway.stores.protocol import Owner, Store, StoreUnavailable

_MARGIN_SECONDS: Final = 60.0
"""An exchange stays written down a little longer than its ticket is good."""


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
        """Which other replica has it, as far as is known."""
        if not self._store.is_shared:
            return None
        try:
            owner = await self._store.owner(exchange)
        except StoreUnavailable:
            return None
        return None if owner is None or owner.replica == self._replica else owner

    async def take_over(self, exchange: str, seen: Owner) -> bool:
        """Become the owner, if nobody else has in the meantime."""
        try:
            return await self._store.take_over(
                exchange, seen=seen, replica=self._replica, seconds=self._seconds
            )
        except StoreUnavailable:
            return False

    async def forget(self, exchange: str) -> None:
        """It has ended here."""
        if self._store.is_shared:
            try:
                await self._store.forget(exchange, self._replica)
            except StoreUnavailable:
                return

    async def _note(self, exchange: str, stage: int) -> bool:
        if not self._store.is_shared:
            return True
        try:
            return await self._store.record(exchange, self._replica, stage, self._seconds)
        except StoreUnavailable:
            return True
