"""Ends what a gateway leaves behind when it is killed. A program of its own: no import but the standard library.

    python guard_process.py MARK <&pipe

Reads `+GROUP` and `-GROUP` lines from its input. When that ends the gateway has
ended, however it did. Then the process groups that are still on the list are
ended, and every process that has MARK in its environment: one that was started
in the very moment, one that left its group. Signals do not concern the guard:
whoever ends the gateway ends its input.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

_POLITE_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 0.02
_SWEEPS: Final = 5
"""How often to look for more: those that are being ended may still be starting others."""


def main() -> None:
    """Watch until the input ends, then clear away."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    mark = os.fsencode(sys.argv[1])
    groups: set[int] = set()
    for line in sys.stdin.buffer:
        if line.startswith(b"+"):
            groups.add(int(line[1:]))
        else:
            groups.discard(int(line[1:]))
    _end(groups, mark)


def _end(groups: set[int], mark: bytes) -> None:
    groups = _signalled(os.killpg, groups, signal.SIGTERM)
    marked = _signalled(os.kill, _marked(mark), signal.SIGTERM)
    deadline = time.monotonic() + _POLITE_SECONDS
    while (groups or marked) and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)
        groups, marked = _signalled(os.killpg, groups, 0), _signalled(os.kill, marked, 0)
    _signalled(os.killpg, groups, signal.SIGKILL)
    for _ in range(_SWEEPS):
        if not _signalled(os.kill, _marked(mark), signal.SIGKILL):
            return
        time.sleep(_PAUSE_SECONDS)


def _signalled(kill: Callable[[int, int], None], targets: Iterable[int], number: int) -> set[int]:
    """Send a signal to each; those that are there to get it."""
    left = set()
    for target in targets:
        try:
            kill(target, number)
        except (ProcessLookupError, PermissionError):
            continue
        left.add(target)
    return left


def _marked(mark: bytes) -> set[int]:
    """Processes with the mark in their environment; none where there is no /proc to look at."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in entry.read_bytes().split(b"\0"):
                found.add(int(entry.parent.name))
        except OSError:
            continue  # ended meanwhile, or somebody else's
    return found


if __name__ == "__main__":
    main()
