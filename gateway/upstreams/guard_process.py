"""Ends what a gateway leaves behind when it is killed. A program of its own: no import but the standard library.

    python guard_process.py <&pipe

Reads `+GROUP` and `-GROUP` lines from its input. When that ends the gateway has
ended, however it did; the process groups that are still on the list are ended
too. Signals do not concern it: whoever ends the gateway ends its input.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable
from typing import Final

_POLITE_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 0.02


def main() -> None:
    """Watch until the input ends, then clear away."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin.buffer:
        if line.startswith(b"+"):
            groups.add(int(line[1:]))
        else:
            groups.discard(int(line[1:]))
    left = _signal(groups, signal.SIGTERM)
    deadline = time.monotonic() + _POLITE_SECONDS
    while left and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)
        left = _signal(left, 0)
    _signal(left, signal.SIGKILL)


def _signal(groups: Iterable[int], number: int) -> set[int]:
    """Send a signal to each group; those that are still there."""
    left = set()
    for group in groups:
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):
            continue
        left.add(group)
    return left


if __name__ == "__main__":
    main()
