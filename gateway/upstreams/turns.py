"""Lets the calls of one caller take turns where they share a session. It knows neither calls nor sessions."""

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass, field

from gateway.errors import Overloaded


@dataclass(slots=True, eq=False)
class _Turn:
    """One caller's. Kept while anybody has or wants it, no longer."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    claims: int = 0


class Turns:
    """Whose turn it is, for each caller. Where turns are never taken, to end one changes nothing."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._turns: dict[Hashable, _Turn] = {}

    def __len__(self) -> int:
        return len(self._turns)

    async def take(self, caller: Hashable) -> None:
        """Wait until it is this caller's next turn.

        Raises:
            Overloaded: it did not come in time.
        """
        turn = self._turns.setdefault(caller, _Turn())
        turn.claims += 1
        try:
            async with asyncio.timeout(self._patience):
                await turn.lock.acquire()
        except BaseException as error:
            self._drop_claim(caller, turn)
            if isinstance(error, TimeoutError):
                raise Overloaded("the caller's one session is busy") from None
            raise

    def end(self, caller: Hashable) -> None:
        """It is over, if there was one."""
        turn = self._turns.get(caller)
        if turn is not None:
            turn.lock.release()
            self._drop_claim(caller, turn)

    def _drop_claim(self, caller: Hashable, turn: _Turn) -> None:
        turn.claims -= 1
        if turn.claims == 0:
            del self._turns[caller]
