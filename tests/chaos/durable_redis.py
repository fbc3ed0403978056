"""A Redis that remembers: `appendonly yes`. What it has said yes to, it still knows after it was killed."""

import signal
import subprocess
from pathlib import Path

from tests.support.redis import RedisServer, redis_command


class DurableRedis:
    """One server with its file; it can be killed or stopped, and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._server = RedisServer(("--appendonly", "yes", "--appendfsync", "everysec", "--dir", str(folder)))

    @property
    def url(self) -> str:
        return self._server.url.get_secret_value()

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def version(self) -> str:
        said = subprocess.run(
            [redis_command(), "--version"], capture_output=True, text=True, check=True
        ).stdout
        return next(word[2:] for word in said.split() if word.startswith("v="))

    def start(self) -> None:
        self._server.start()

    def kill(self) -> None:
        """As a crash does."""
        self._server.kill()

    def stop(self) -> None:
        """As an operator does."""
        self._server.kill(signal.SIGTERM)
