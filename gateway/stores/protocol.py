"""What a store must offer to replicas: who is alive, who owns which exchange, and a way to write to each other.

Every operation is small and atomic. A store never sees an answer or a credential
in the clear: what replicas write to each other is sealed before it gets here.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final, Protocol

MOST_LETTERS: Final = 4096
"""How many letters may lie in one inbox unread."""


class StoreUnavailable(Exception):
    """The store cannot be reached now. Exchanges of this process go on without it.

    What was asked of it may have been done all the same: only the answer is missing.
    """


class InboxFull(StoreUnavailable):
    """The replica does not read its letters: it is frozen, or as good as dead. The store itself is fine."""


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

    def steady_seconds(self) -> float:
        """How long nothing that was written here can have been lost; 0 while the store cannot be reached.

        A heart that is missing proves nothing, and a letter may be gone, until this is longer ago than either.
        """

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
        A stage never goes back: a retry of an earlier round that comes late does not undo a later one.
        """

    async def owner(self, exchange: str) -> Owner | None:
        """Who has it."""

    async def take_over(self, exchange: str, *, seen: Owner, replica: str, seconds: float) -> bool:
        """Make `replica` the owner if nothing has changed since `seen`. Exactly one of many callers succeeds."""

    async def forget(self, exchange: str, replica: str) -> None:
        """The exchange has ended, if `replica` still owns it."""

    # --- letters from replica to replica -----------------------------------------

    async def post(self, replica: str, letter: bytes) -> None:
        """Put a letter into a replica's inbox: point to point, in order.

        Raises:
            InboxFull: too many letters lie there unread.
        """

    def inbox(self, replica: str) -> AsyncGenerator[bytes, None]:
        """The letters to this replica, as they come, without end. Survives an outage of the store."""
