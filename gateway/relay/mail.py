"""Letters out of and into this replica, sealed on the way. It does not know what they are about.

send      once, and whoever sends hears if it could not be done
deliver   as long as it takes, within bounds: for what the other side waits for
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

from gateway.relay.letters import Letter, LetterInvalid, decode, encode, kind_of
from gateway.sealing.envelope import OVERHEAD_BYTES, Envelope, LetterRefused
from gateway.stores.protocol import Store, StoreUnavailable
from gateway.telemetry.logs import get_logger
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import LogEvent

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0


class LetterTooLarge(ValueError):
    """Over the bound for one letter."""


class Mail:
    """One replica's letters."""

    def __init__(
        self, store: Store, envelope: Envelope, *, replica: str, metrics: Metrics, max_letter_bytes: int
    ) -> None:
        self._store = store
        self._envelope = envelope
        self._replica = replica
        self._metrics = metrics
        self._max_letter_bytes = max_letter_bytes
        self._log = get_logger()

    async def send(self, to: str, letter: Letter) -> None:
        """Post a letter.

        Raises:
            LetterTooLarge: it is.
            StoreUnavailable: it may be lost, or not.
        """
        text = encode(letter)
        if len(text) + OVERHEAD_BYTES > self._max_letter_bytes:
            raise LetterTooLarge(f"{len(text)} bytes, at most {self._max_letter_bytes} are allowed")
        await self._store.post(to, self._envelope.seal(text, to))
        self._metrics.letter_sent(kind_of(letter))

    async def deliver(
        self, to: str, letter: Letter, *, seconds: float, is_wanted: Callable[[], bool] = lambda: True
    ) -> bool:
        """Post a letter, again and again while the store cannot be reached. False: nobody wanted it any longer.

        It may arrive twice. Raises `LetterTooLarge`.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        pause = _FIRST_PAUSE
        while is_wanted():
            try:
                await self.send(to, letter)
            except StoreUnavailable:
                if loop.time() + pause > deadline:
                    return False
                await asyncio.sleep(pause)
                pause = min(_LONGEST_PAUSE, pause * 2)
            else:
                return True
        return False

    async def letters(self) -> AsyncGenerator[Letter, None]:
        """What others write to this replica, without end; what is not one of ours is told in the log."""
        async with aclosing(self._store.inbox(self._replica)) as inbox:
            async for data in inbox:
                try:
                    yield decode(self._envelope.open(data, self._replica))
                except (LetterRefused, LetterInvalid) as refusal:
                    self._log.warning(LogEvent.LETTER_UNREADABLE, reason=str(refusal), size=len(data))
