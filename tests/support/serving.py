"""`holdfast serve` as users run it: a process of its own, stopped by signals, known by its log and its exit code.

All that it says to modern clients is judged in that process as it is said (`judged_serve.py`).
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.waiting import until

NOTES, JUDGED = "JUDGED_TO", "valid"
"""Where `judged_serve` writes, and what of a message that may be sent."""

_START_SECONDS = 40.0
"""A busy machine takes its time over a process that imports every schema first."""
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Serving:
    """A gateway that runs, or has run."""

    process: asyncio.subprocess.Process
    url: str
    admin: str
    log: Path
    notes: Path
    """Of the judge, a line for each message."""

    def judged(self) -> list[str]:
        """What is to be said of each message to a modern client."""
        # A process that is killed may leave half a line.
        return self.notes.read_text("utf-8").splitlines() if self.notes.exists() else []

    def tell(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    async def ended(self, seconds: float = 10.0) -> int:
        """Wait for its end; the exit code."""
        async with asyncio.timeout(seconds):
            return await self.process.wait()

    async def readiness(self) -> int:
        """The status of `/readyz`; 0 if nobody answers."""
        try:
            async with aiohttp.ClientSession() as http, http.get(f"{self.admin}/readyz") as response:
                return response.status
        except aiohttp.ClientError:
            return 0

    async def until_readiness(self, status: int) -> None:
        """Wait for it."""

        async def look() -> bool:
            return await self.readiness() == status

        await until(look, _START_SECONDS)

    def said(self) -> str:
        """All that it wrote, standard error included."""
        return self.log.read_text("utf-8", "replace")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@contextlib.asynccontextmanager
async def serving(
    folder: Path,
    upstream: Mapping[str, Any],
    *,
    wait: bool = True,
    is_judged: bool = True,
    has_uvloop: bool = True,
    **settings: Any,
) -> AsyncIterator[Serving]:
    """Run `holdfast serve` with one upstream; killed at the end of the block if it still runs.

    Not judged: where a hostile server's malformed forms are handed on for the client to judge, where memory is, and
    without uvloop.
    """
    port, admin = settings.pop("port", None) or free_port(), free_port()
    config = {
        "listen": f"127.0.0.1:{port}",
        "admin": f"127.0.0.1:{admin}",
        "log": {"level": "debug", "format": "json"},
        "upstreams": {"legacy": dict(upstream)},
        **settings,
    }
    file, log = folder / "holdfast.yaml", folder / "log"
    file.write_text(json.dumps(config), "utf-8")  # JSON is YAML
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    notes = folder / "judged"
    if is_judged:
        environment[NOTES] = str(notes)
    with log.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *_program(is_judged=is_judged, has_uvloop=has_uvloop),
            *("serve", "--config", str(file)),
            cwd=ROOT,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
        )
    running = Serving(process, f"http://127.0.0.1:{port}/mcp", f"http://127.0.0.1:{admin}", log, notes)
    try:
        if wait:
            await running.until_readiness(200)
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    wrong = [line for line in running.judged() if line != repr(JUDGED)]
    assert not wrong, "sent, and not valid in 2026-07-28:\n" + "\n".join(wrong)


def _program(*, is_judged: bool, has_uvloop: bool) -> tuple[str, str]:
    if not has_uvloop:
        blocked = "import sys; sys.modules['uvloop'] = None; from gateway.cli import main; sys.exit(main())"
        return "-c", blocked
    return "-m", "tests.support.judged_serve" if is_judged else "gateway"
