"""Three gateways as processes, each at an address that stays while its lives come and go."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.chaos.records import Json
from tests.support.processes import children
from tests.support.serving import ROOT, free_port

_READY_SECONDS = 180.0
_END_SECONDS = 120.0


class ReplicaFailed(AssertionError):
    """It did not start, or did not end."""


@dataclass(slots=True)
class _Life:
    name: str
    process: asyncio.subprocess.Process
    log: Path
    children: frozenset[int] = frozenset()


class Replica:
    """One gateway, life after life."""

    def __init__(self, name: str, folder: Path, settings: Mapping[str, Any]) -> None:
        self.name = name
        self.port = free_port()
        self._admin = free_port()
        self._folder = folder / name
        self._folder.mkdir()
        self._config = self._folder / "holdfast.yaml"
        self._config.write_text(
            json.dumps(
                {
                    "listen": f"127.0.0.1:{self.port}",
                    "admin": f"127.0.0.1:{self._admin}",
                    "log": {"level": "info", "format": "json"},
                    **settings,
                }
            ),
            "utf-8",
        )
        self._lives: list[_Life] = []
        self.is_busy = False
        """Something is being done to it already."""

    @property
    def life(self) -> str:
        """The name of its present life, or of the last one."""
        return f"{self.name}.{len(self._lives)}"

    @property
    def logs(self) -> dict[str, Path]:
        return {life.name: life.log for life in self._lives}

    async def start(self) -> None:
        """Begin a life; returns when it is ready."""
        number = len(self._lives) + 1
        log = self._folder / f"log.{number}"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        with log.open("wb") as sink:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "gateway", "serve", "--config", str(self._config)),
                cwd=ROOT,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
            )
        self._lives.append(_Life(f"{self.name}.{number}", process, log))
        try:
            async with asyncio.timeout(_READY_SECONDS), aiohttp.ClientSession() as http:
                while not await self._is_ready(http):
                    if process.returncode is not None:
                        raise ReplicaFailed(f"{self.life} did not start:\n{log.read_text()[-2000:]}")
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise ReplicaFailed(f"{self.life} was not ready in time") from None
        self._lives[-1].children = frozenset(children(process.pid))

    def tell(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._lives[-1].process.send_signal(number)

    async def ended(self) -> int:
        """Wait for the end of this life; the exit code."""
        try:
            async with asyncio.timeout(_END_SECONDS):
                return await self._lives[-1].process.wait()
        except TimeoutError:
            raise ReplicaFailed(f"{self.life} did not end") from None

    async def stop(self) -> None:
        """Whatever state it is in."""
        if self._lives and self._lives[-1].process.returncode is None:
            self.tell(signal.SIGKILL)
            await self.ended()

    def left_behind(self) -> list[int]:
        """Processes that any of its lives had started, and that still run."""
        return [pid for life in self._lives for pid in life.children if Path(f"/proc/{pid}").exists()]

    def rounds(self) -> list[Json]:
        """What its lives have written about rounds."""
        return [line for line in self.lines() if line.get("event") == "round"]

    def lines(self) -> list[Json]:
        """All that its lives have written in their own form."""
        found = []
        for life, log in self.logs.items():
            for text in log.read_text("utf-8", "replace").splitlines():
                with contextlib.suppress(ValueError):
                    line = json.loads(text)
                    if isinstance(line, dict):
                        found.append({**line, "process": life})
        return found

    async def _is_ready(self, http: aiohttp.ClientSession) -> bool:
        try:
            async with http.get(
                f"http://127.0.0.1:{self._admin}/readyz", timeout=aiohttp.ClientTimeout(total=2)
            ) as response:
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False
