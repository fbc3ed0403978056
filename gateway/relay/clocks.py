"""The clocks of an exchange: how long the upstream may work, how long a client may stay away. It knows no exchange."""

import asyncio
from collections.abc import Callable
from typing import Final

_MOST_TIMES: Final = 10
"""How many times its time a call may work, whatever it tells of its progress (basic/lifecycle, "Timeouts")."""


class WorkClock:
    """Runs while the upstream works and stands still while it waits: a human thinking is not a slow upstream."""

    __slots__ = ("_alarm", "_in_all", "_left", "_seconds", "_since")

    def __init__(self, seconds: float) -> None:
        self._seconds = self._left = seconds
        self._in_all = seconds * _MOST_TIMES
        self._since = 0.0
        self._alarm: asyncio.TimerHandle | None = None

    def run(self, ring: Callable[[], None], *, working: bool) -> None:
        """Let it run, to ring when time is up, or stop it; saying the same twice changes nothing.

        It keeps `ring` only while it runs: whoever has a clock and is rung by it would never be freed else.
        """
        if working == (self._alarm is not None):
            return
        loop = asyncio.get_running_loop()
        if self._alarm is None:
            self._since = loop.time()
            self._alarm = loop.call_later(self._left, ring)
        else:
            self._alarm.cancel()
            self._alarm = None
            spent = loop.time() - self._since
            self._left = max(0.0, self._left - spent)
            self._in_all -= spent

    def start_anew(self, ring: Callable[[], None]) -> None:
        """The upstream is seen to work: if the clock runs, it has all its time again, as long as there is any."""
        if self._alarm is not None:
            self.run(ring, working=False)
            self._left = min(self._seconds, max(0.0, self._in_all))
            self.run(ring, working=True)


class Alarm:
    """Rings once, after the time given last."""

    __slots__ = ("_handle", "_ring", "_since")

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._since = 0.0
        self._handle: asyncio.TimerHandle | None = None

    @property
    def is_set(self) -> bool:
        """Will it ring?"""
        return self._handle is not None

    def set(self, seconds: float) -> None:
        """Ring after this time, and no more at the time that was set before."""
        self.stop()
        loop = asyncio.get_running_loop()
        self._since = loop.time()
        self._handle = loop.call_later(seconds, self._rang)

    def stop(self) -> float:
        """Do not ring. Returns the seconds since it was set."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        return asyncio.get_running_loop().time() - self._since

    def _rang(self) -> None:
        self._handle = None
        self._ring()


class RoundAlarms:
    """What may ring in a round: time enough for questions to settle, and the end of a time slice."""

    __slots__ = ("_settling", "_slice")

    def __init__(self) -> None:
        self._settling: Alarm | None = None
        self._slice: Alarm | None = None

    def settle(self, seconds: float, ring: Callable[[], None]) -> None:
        """Ring when questions have settled; not any more at the time that was set before."""
        if self._settling is not None:
            self._settling.stop()
        self._settling = Alarm(ring)
        self._settling.set(seconds)

    def slice(self, seconds: float, ring: Callable[[], None]) -> None:
        """Ring at the end of the slice that has begun; one that runs goes on."""
        if self._slice is None or not self._slice.is_set:
            self._slice = Alarm(ring)
            self._slice.set(seconds)

    def stop(self) -> None:
        """The round is over."""
        for alarm in (self._settling, self._slice):
            if alarm is not None:
                alarm.stop()
        self._settling = self._slice = None


class Deadlines:
    """Many alarms with the same patience, on one timer: they ring in the order in which they were set.

    A timer of its own for each of ten thousand holds would be a tenth of what they weigh.
    """

    __slots__ = ("_due", "_seconds", "_timer")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._due: dict[str, tuple[float, Callable[[], None]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def set(self, name: str, ring: Callable[[], None]) -> None:
        """Ring when the time is over; not any more for what was set under this name before."""
        loop = asyncio.get_running_loop()
        self._due.pop(name, None)
        self._due[name] = (loop.time(), ring)
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._ring_due)

    def stop(self, name: str) -> float:
        """Do not ring. Returns the seconds since it was set; 0 if it was not."""
        due = self._due.pop(name, None)
        return 0.0 if due is None else asyncio.get_running_loop().time() - due[0]

    def _ring_due(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        now, over = loop.time(), []
        for name, (since, _) in self._due.items():
            left = since + self._seconds - now
            if left > 0:
                self._timer = loop.call_later(left, self._ring_due)
                break
            over.append(name)
        for name in over:
            loop.call_soon(self._due.pop(name)[1])  # apart, so that one that fails does not silence the rest
