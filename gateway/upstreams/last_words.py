"""Logs what servers' processes write to standard error, at a bounded rate, and keeps the end for error messages.

It knows no process. Lines are the server's own words. What looks like a secret is
taken out where all lines are redacted, in the log; what the server was given as
one is known, and taken out here, before lines are cut.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from gateway.telemetry.logs import Log
from gateway.telemetry.names import LogEvent
from gateway.telemetry.redact import Blackout
from gateway.wire.lines import LineSplitter

_MOST_BYTES: Final = 8 * 1024
"""Of one line; more is dropped."""
_SHOWN_CHARACTERS: Final = 500
_QUOTED_CHARACTERS: Final = 200
_KEPT_LINES: Final = 20
_BURST: Final = 50
_LINES_PER_SECOND: Final = 5.0


class Allowance:
    """How many lines one upstream's processes, all together, may still put into the log: a bucket that refills."""

    __slots__ = ("_left", "_now", "_since", "dropped")

    def __init__(self, now: Callable[[], float]) -> None:
        self.dropped = 0
        """Lines that were not logged since one was."""
        self._now = now
        self._left = float(_BURST)
        self._since = now()

    def spend(self) -> bool:
        """May one more line be logged?"""
        now = self._now()
        self._left = min(_BURST, self._left + (now - self._since) * _LINES_PER_SECOND)
        self._since = now
        if self._left < 1:
            self.dropped += 1
            return False
        self._left -= 1
        return True


class LastWords:
    """Takes the bytes of one process's standard error."""

    __slots__ = ("_allowance", "_blackout", "_kept", "_lines", "log")

    def __init__(self, log: Log, allowance: Allowance, blackout: Blackout) -> None:
        self.log = log
        self._allowance = allowance
        self._blackout = blackout
        self._lines = LineSplitter(_MOST_BYTES)
        self._kept: deque[str] = deque(maxlen=_KEPT_LINES)

    def feed(self, chunk: bytes) -> None:
        """The process wrote this."""
        for line in self._lines.feed(chunk):
            self._take(line)

    def finish(self) -> list[str]:
        """The process has ended: the last lines that it wrote, also one that it did not finish."""
        for line in self._lines.finish():
            self._take(line)
        return list(self._kept)

    def warn(self, detail: str) -> None:
        """Something came on standard output that does not belong there."""
        self._log(LogEvent.UPSTREAM_PROTOCOL, detail=detail)

    def quote(self, detail: str, line: bytes) -> None:
        """The same, with the beginning of what came."""
        text = self._blackout(line[:_MOST_BYTES].decode("utf-8", "replace").strip())
        self.warn(f"{detail}: {text[:_QUOTED_CHARACTERS]}")

    def _take(self, line: bytes | None) -> None:
        text = "[a very long line]" if line is None else line.decode("utf-8", "replace").strip()
        if text:
            text = self._blackout(text)[:_SHOWN_CHARACTERS]
            self._kept.append(text)
            self._log(LogEvent.UPSTREAM_STDERR, line=text)

    def _log(self, event: LogEvent, **members: str) -> None:
        dropped = self._allowance.dropped
        if not self._allowance.spend():
            return
        if dropped:
            self._allowance.dropped = 0
            self.log.warning(LogEvent.UPSTREAM_STDERR, dropped=dropped)
        level = self.log.warning if event is LogEvent.UPSTREAM_PROTOCOL else self.log.info
        level(event, **members)
