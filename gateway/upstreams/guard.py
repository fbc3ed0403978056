"""Makes sure that no process outlives the gateway, even if that is killed. It knows no server.

A small process of its own waits for our end of a pipe to close. It is told which
process groups are ours, and knows a mark that is in the environment of them all.
`PR_SET_PDEATHSIG` would do less: it reaches the process that was started, not
those which that one started (`npx`, `uvx`), and setting it means running Python
between fork and exec, in a process that has threads.
"""

import asyncio
import os
import subprocess  # nosec B404  # one program, our own, and no shell
import sys
import time
from pathlib import Path
from typing import Final

from gateway.telemetry.logs import get_logger
from gateway.telemetry.names import LogEvent

_PROGRAM: Final = Path(__file__).with_name("guard_process.py")
_END_SECONDS: Final = 3.0
_VARIABLE: Final = "HOLDFAST_GUARD"


class Guard:
    """Runs from the first process that is to be started."""

    __slots__ = ("_groups", "_mark", "_process")

    def __init__(self) -> None:
        self._mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None

    def mark(self) -> dict[str, str]:
        """What must be in the environment of a process, so that it is found even if nobody could tell of it."""
        if self._process is None:
            self._start()
        return {_VARIABLE: self._mark}

    def watch(self, group: int) -> None:
        """End this process group if the gateway ends before it does."""
        self._groups.add(group)
        if self._process is None or not self._tell(f"+{group}\n"):
            self._start()

    def release(self, group: int) -> None:
        """The group has ended: its number may soon be somebody else's."""
        self._groups.discard(group)
        if self._process is not None:
            self._tell(f"-{group}\n")

    async def close(self) -> None:
        """Let the guard go; what is still watched ends with it."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.to_thread(process.wait, _END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self) -> None:
        """Start the guard, or another one in place of one that somebody ended."""
        if self._process is not None:
            self._process.poll()
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process = subprocess.Popen(  # noqa: S603  # nosec B603  # our own program, our own interpreter
                [sys.executable, "-I", "-S", "-B", str(_PROGRAM), f"{_VARIABLE}={self._mark}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd="/",
                env={},
                start_new_session=True,  # what ends our group must not end the guard
            )
        except OSError as error:
            self._process = None
            get_logger().warning(LogEvent.GUARD_FAILED, detail=f"no guard could be started: {error.strerror}")
            return
        for group in self._groups:
            self._tell(f"+{group}\n")

    def _tell(self, line: str) -> bool:
        try:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.write(line.encode())
        except OSError:
            return False  # somebody ended it
        return True
