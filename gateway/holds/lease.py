"""May this process act for what it owns without asking the store? It knows nothing but a monotonic clock.

Others take an exchange over when its owner's heart has not beaten for a while. A
process that ran all the time knows that its heart did beat, or that the store is
away and nobody can take anything over. One that was frozen (SIGSTOP, a paused
machine) knows nothing: until the store has been asked, all it owned is in doubt.
"""

from collections.abc import Callable


class Lease:
    """Ticked often by a process that runs; a long gap between two ticks means that the process was frozen."""

    __slots__ = ("_bound", "_now", "_seen", "_settled", "doubts")

    def __init__(self, now: Callable[[], float], bound: float) -> None:
        """`bound` must be shorter than the time after which others take over."""
        self._now = now
        self._bound = bound
        self._seen = now()
        self.doubts = 0
        """How often this process was away for too long."""
        self._settled = 0

    def tick(self) -> None:
        """Note that this process is running, and a doubt if it was not for too long."""
        now = self._now()
        if now - self._seen > self._bound:
            self.doubts += 1
        self._seen = now

    @property
    def is_sure(self) -> bool:
        """Has this process been here all the time since it last asked the store?"""
        self.tick()  # whoever asks may be the first to run after a freeze
        return self.doubts == self._settled

    def settle(self, doubts: int) -> None:
        """The store has been asked about everything, `doubts` having been counted by then. Later doubts remain."""
        self._settled = max(self._settled, doubts)
