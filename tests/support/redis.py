"""Starts a real `redis-server` on a port of its own. A missing one is a failure, never a skip."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence

import pytest

from gateway.settings.store_url import StoreUrl
from tests.support.peers import TOOLS, PeerFailed

_START_SECONDS = 10.0
_ATTEMPTS = 3


class RedisServer:
    """One server; it can be killed, frozen, and started again on the same port. By default it keeps nothing."""

    def __init__(self, options: Sequence[str] = ("--appendonly", "no")) -> None:
        self.port = 0
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> StoreUrl:
        """Where it is."""
        return StoreUrl(f"redis://127.0.0.1:{self.port}/0")

    def start(self) -> None:
        """Start it and wait until it answers: on the port it had before, if it had one."""
        for _ in range(_ATTEMPTS):
            port = self.port or _free_port()
            self._process = _spawn(port, self._options)
            if self._answers(port):
                self.port = port
                return
            self.kill()
        raise PeerFailed("redis-server did not start")

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End it at once; what it did not write down is gone."""
        if self._process is not None:
            self.thaw()
            self._process.send_signal(number)
            self._process.wait(5)
            self._process = None

    def freeze(self) -> None:
        """It still has its connections, and says nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on as if nothing had been."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _answers(self, port: int) -> bool:
        assert self._process is not None
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
                connection.sendall(b"PING\r\n")
                if connection.recv(16).startswith(b"+PONG"):
                    return True
            time.sleep(0.01)
        return False


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One server for all tests that do no harm to it; each uses a prefix of its own."""
    with _running() as server:
        yield server


@pytest.fixture
def own_redis_server() -> Iterator[RedisServer]:
    """A server for one test that does."""
    with _running() as server:
        yield server


@contextlib.contextmanager
def _running() -> Iterator[RedisServer]:
    server = RedisServer()
    server.start()
    try:
        yield server
    finally:
        server.kill()


def redis_command() -> str:
    """Where the program is."""
    found = TOOLS / "bin" / "redis-server"
    binary = str(found) if found.exists() else shutil.which("redis-server")
    if binary is None:
        raise PeerFailed("redis-server is missing: run `bash tests/run` once, it installs the peers")
    return binary


def _spawn(port: int, options: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [redis_command(), "--port", str(port), "--bind", "127.0.0.1", "--save", "", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=os.sep,
        start_new_session=True,
    )


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
