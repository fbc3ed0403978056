"""Tells other replicas which exchanges this one has, and asks for theirs. It knows no exchange from the inside.

Losing the store costs the way to other replicas and nothing else: what is here
goes on, and every answer that the store could not give is the one that keeps
this process going. One case excepted: a process that was frozen does not know
what became of its exchanges meanwhile, and delivers nothing before it has asked.
"""

from enum import Enum, auto
from typing import Final

from gateway.holds.lease import Lease
from gateway.stores.protocol import Owner, Store, StoreUnavailable

_MARGIN_SECONDS: Final = 60.0
"""An exchange stays written down a little longer than its ticket is good."""

_DONE: Final = 2**31
"""The stage of an exchange that has ended: later than any round."""
_LOST: Final = _DONE + 1

_NOBODY: Final = "-"
"""The owner of what was handed over. No replica is called so."""


class Standing(Enum):
    """Whose an exchange is, in the moment in which answers are to be delivered into it."""

    OURS = auto()
    THEIRS = auto()
    """Another replica's, or nobody's: here nothing must be delivered."""
    UNKNOWN = auto()
    """Only the store could say, and it is away."""


class Directory:
    """The shared book of who has which exchange."""

    def __init__(self, store: Store, *, replica: str, seconds: float, lease: Lease | None = None) -> None:
        self._store = store
        self._replica = replica
        self._seconds = seconds + _MARGIN_SECONDS
        self._lease = lease

    @property
    def is_shared(self) -> bool:
        """Is there anybody to tell?"""
        return self._store.is_shared

    async def note_held(self, exchange: str, round_: int) -> bool:
        """The client is away with this round's questions. False: the exchange is another replica's by now."""
        return await self._note(exchange, 2 * round_)

    async def note_taken(self, exchange: str, round_: int) -> Standing:
        """This round's answers are about to be delivered here, unless it says that they must not be."""
        try:
            # Written down by us alone proves nothing to one who was away: the book may have been emptied since.
            if not self.is_sure and not await self.is_mine(exchange):
                return Standing.THEIRS
            is_ours = await self._store.record(exchange, self._replica, 2 * round_ + 1, self._seconds)
        except StoreUnavailable:
            return Standing.OURS if self.is_sure else Standing.UNKNOWN
        return Standing.OURS if is_ours else Standing.THEIRS

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

    async def is_mine(self, exchange: str) -> bool:
        """Is this replica written down as its owner? Raises as `owner`."""
        owner = await self.owner(exchange)
        return owner is not None and self.is_me(owner.replica)

    def is_me(self, replica: str) -> bool:
        """Is it this replica?"""
        return replica == self._replica

    @staticmethod
    def is_nobodys(owner: Owner | None) -> bool:
        """Was it handed over, and is free for the first who asks?"""
        return owner is not None and owner.replica == _NOBODY

    @staticmethod
    def is_lost(owner: Owner | None) -> bool:
        """Did it end without a result, and for good?"""
        return owner is not None and owner.stage >= _LOST

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

    async def hand_over(self, exchange: str, round_: int) -> bool:
        """Own it no more, so that whoever is given its ticket of this round can have it at once.

        False: it is not ours to give, its client has just come back, or the store is away.
        """
        try:
            seen = await self._store.owner(exchange)
            if seen is None or not self.is_me(seen.replica) or seen.stage != 2 * round_:
                return False
            return await self._store.take_over(exchange, seen=seen, replica=_NOBODY, seconds=self._seconds)
        except StoreUnavailable:
            return False

    async def note_done(self, exchange: str) -> bool:
        """It has ended: no ticket of it starts anything any more, here or elsewhere."""
        return await self._note(exchange, _DONE)

    async def note_lost(self, exchange: str) -> bool:
        """It has ended, and whoever comes with a ticket of it is to be told that there is no result."""
        return await self._note(exchange, _LOST)

    async def _note(self, exchange: str, stage: int) -> bool:
        try:
            return await self._store.record(exchange, self._replica, stage, self._seconds)
        except StoreUnavailable:
            return True

    @property
    def is_sure(self) -> bool:
        """Was this process running all the time? If not, what it owned may be another's by now."""
        return self._lease is None or self._lease.is_sure
