"""A circuit breaker: when to leave a server alone that cannot be reached. It is given a clock, and dials nothing.

CLOSED      calls go through; so many failures in a row open it
OPEN        calls are turned away, for a while
HALF_OPEN   one call goes through to try, the others are still turned away: it closes, or opens again
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

_A_MOMENT: Final = 1.0
"""What is left to wait for while somebody tries: nobody knows, but not long."""


class Circuit(Enum):
    """What becomes of calls."""

    CLOSED = auto()
    OPEN = auto()
    HALF_OPEN = auto()


class Breaker:
    """Counts the attempts to reach one upstream. `failures` 0: it never opens."""

    def __init__(self, now: Callable[[], float], *, failures: int, seconds: float) -> None:
        self._now = now
        self._most = failures
        self._seconds = seconds
        self._failed = 0
        self._opened_at = 0.0
        self.circuit = Circuit.CLOSED

    def admit(self) -> float | None:
        """May an attempt be made? Whoever gets None must say how it went; others are told how long to wait."""
        match self.circuit:
            case Circuit.CLOSED:
                return None
            case Circuit.OPEN:
                left = self._opened_at + self._seconds - self._now()
                if left > 0:
                    return min(left, self._seconds)  # a sum of floats may be a little more
                self.circuit = Circuit.HALF_OPEN
                return None
            case Circuit.HALF_OPEN:
                return _A_MOMENT

    def reached(self) -> None:
        """The server was there, whatever it said."""
        self._failed = 0
        self.circuit = Circuit.CLOSED

    def failed(self) -> None:
        """It could not be reached, or did not answer the handshake in time."""
        self._failed += 1
        is_too_often = self._most and self._failed >= self._most
        if self.circuit is Circuit.HALF_OPEN or (is_too_often and self.circuit is Circuit.CLOSED):
            self.circuit = Circuit.OPEN
            self._opened_at = self._now()

    def gave_up(self) -> None:
        """Whoever made the attempt did not wait for its end: the next one tries."""
        if self.circuit is Circuit.HALF_OPEN:
            self.circuit = Circuit.OPEN
