"""The processes of a run: started, watched through /proc, stopped. It knows nothing of what they measure."""

import json
import os
import resource
import select
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

REPOSITORY: Final = Path(__file__).parents[2]
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_STOP_SECONDS: Final = 15.0
_START_SECONDS: Final = 20.0
_WITH_BYTECODE: Final = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}
"""What is installed has its bytecode beside it. A process that may not keep any compiles all it imports, each time."""

Json = dict[str, Any]


class BenchFailed(Exception):
    """A process did not start, did not answer in time, or died."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used up to now."""

    cpu_seconds: float
    system_seconds: float
    """How much of it the kernel worked on its behalf."""
    rss_bytes: int
    open_files: int


class Process:
    """One child, reached by lines on its standard input and output."""

    def __init__(self, name: str, arguments: list[str], *, log: IO[bytes], is_spoken_to: bool = True) -> None:
        self.name = name
        self.started_at = time.perf_counter()
        self._child = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=REPOSITORY,
            env=_WITH_BYTECODE,
            stdin=subprocess.PIPE if is_spoken_to else subprocess.DEVNULL,
            stdout=subprocess.PIPE if is_spoken_to else log,
            stderr=log,
        )

    @property
    def pid(self) -> int:
        return self._child.pid

    def line(self, limit_seconds: float) -> str:
        """The next line it prints."""
        assert self._child.stdout is not None
        ready, _, _ = select.select([self._child.stdout], [], [], limit_seconds)
        if not ready:
            raise BenchFailed(f"{self.name} said nothing for {limit_seconds:.0f} s")
        line = self._child.stdout.readline().decode()
        if not line:
            raise BenchFailed(f"{self.name} died")
        return line

    def command(self, **command: Any) -> Json:
        """For the driver: one command, one answer."""
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(command).encode() + b"\n")
        self._child.stdin.flush()
        answer: Json = json.loads(self.line(command["limit_seconds"] + 10))
        return answer

    def usage(self) -> Usage:
        """CPU and memory, from /proc."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
            files = len(list(Path(f"/proc/{self.pid}/fd").iterdir()))
        except (OSError, IndexError) as error:
            raise BenchFailed(f"{self.name} died") from error
        user, system = int(fields[11]) / _TICKS, int(fields[12]) / _TICKS
        return Usage(user + system, system, pages * _PAGE, files)

    def is_running(self) -> bool:
        return self._child.poll() is None

    def stop(self) -> None:
        """Ask, wait, insist."""
        self._child.terminate()
        try:
            self._child.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def started(name: str, *arguments: str, log: IO[bytes], is_spoken_to: bool = True) -> Iterator[Process]:
    """A child for as long as the block lasts; one that is not spoken to writes its output into `log`."""
    process = Process(name, list(arguments), log=log, is_spoken_to=is_spoken_to)
    try:
        yield process
    finally:
        process.stop()


@contextmanager
def started_on_port(name: str, *arguments: str, log: IO[bytes]) -> Iterator[tuple[Process, str]]:
    """A child that prints the port it listens on; with the URL of its endpoint."""
    with started(name, *arguments, log=log) as process:
        port = int(process.line(_START_SECONDS))
        yield process, f"http://127.0.0.1:{port}/mcp"


def wait_until_ready(process: Process, url: str) -> float:
    """Seconds from its start until `url` first answered 200."""
    while time.perf_counter() - process.started_at < _START_SECONDS:
        if not process.is_running():
            raise BenchFailed(f"{process.name} died while starting")
        try:
            with urllib.request.urlopen(url, timeout=1) as response:  # noqa: S310 - loopback, built by us
                if response.status == 200:
                    return time.perf_counter() - process.started_at
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.002)
    raise BenchFailed(f"{process.name} was not ready after {_START_SECONDS:.0f} s")


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def raise_file_limit() -> int:
    """As many open files as we may have; children inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
