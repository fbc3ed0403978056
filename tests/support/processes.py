"""Looking at processes of this machine, as /proc shows them."""

import os
import signal
from pathlib import Path

from tests.support.waiting import until


def state(pid: int) -> str | None:
    """`S`, `R`, `Z`…; None: there is no such process."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return line.rpartition(")")[2].split()[0]


def children(pid: int) -> list[int]:
    """The processes whose parent this is."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text("utf-8").rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found


def own_zombies() -> list[int]:
    """Children of the test's own process that ended and were not waited for."""
    return [pid for pid in children(os.getpid()) if state(pid) == "Z"]


async def gone(pid: int, seconds: float = 5.0) -> None:
    """Wait until a process has ended, and is not even a zombie of ours."""

    async def look() -> bool:
        return state(pid) is None

    await until(look, seconds)


async def ended(pid: int, seconds: float = 5.0) -> None:
    """Wait until a process has ended; whoever adopted it may not have waited for it yet."""

    async def look() -> bool:
        return state(pid) in (None, "Z", "X")

    await until(look, seconds)


def kill_group(pid: int) -> None:
    """Whatever a test leaves behind."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
