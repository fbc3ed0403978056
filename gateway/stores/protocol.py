"""What replicas of one gateway must agree on: who is alive, who owns which exchange, and a way to write to each other.

Every operation is small and atomic. A store never sees an answer or a credential
in the clear: what replicas write to each other is sealed before it gets here.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol


class StoreUnavailable(Exception):
    """The store cannot be reached now. Exchanges of this process go on without it."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who has an exchange, and how far it had come when that was last written down."""

    replica: str
    stage: int
    """Twice the round while the client is away with its questions; one more once that round's answers are taken."""
    fence: int
    """Grows with every change of owner: who acts under an older one acts for nobody."""


class Store(Protocol):
    """A directory of exchanges, heart-beats, and one inbox per replica."""

    is_shared: bool
    """Can another process see what is written here?"""

    async def start(self) -> None:
        """Connect. Raises nothing: a store that cannot be reached becomes available by itself later."""

    async def close(self) -> None:
        """Disconnect."""

    def is_available(self) -> bool:
        """Did the last operation reach the store? For readiness and metrics."""

    # --- who is alive ------------------------------------------------------------

    async def beat(self, replica: str, seconds: float) -> None:
        """This replica lives, and will say so again before this time has passed."""

    async def is_alive(self, replica: str) -> bool:
        """Has it said so in time?"""

    async def leave(self, replica: str) -> None:
        """This replica is going: nobody needs to wait for its heart to stop."""

    # --- who owns what -----------------------------------------------------------

    async def record(self, exchange: str, replica: str, stage: int, seconds: float) -> bool:
        """`replica` has this exchange, at this stage, for so long. False: another replica owns it by now.

        Asked immediately before answers are delivered: a replica that was frozen may own it no more.
        """

    async def owner(self, exchange: str) -> Owner | None:
        """Who has it."""

    async def take_over(self, exchange: str, *, seen: Owner, replica: str, seconds: float) -> bool:
        """Make `replica` the owner if nothing has changed since `seen`. Exactly one of many callers succeeds."""

    async def forget(self, exchange: str, replica: str) -> None:
        """The exchange has ended, if `replica` still owns it."""

    # --- letters from replica to replica -----------------------------------------

    async def post(self, replica: str, letter: bytes) -> None:
        """Put a letter into a replica's inbox: point to point, in order."""

    def inbox(self, replica: str) -> AsyncIterator[bytes]:
        """The letters to this replica, as they come, without end. Survives an outage of the store."""
