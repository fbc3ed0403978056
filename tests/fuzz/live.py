"""A live gateway process under fire, watched from outside: its answers, its memory, its log. It makes no request."""

import contextlib
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.serving import Serving, serving

_PAGE = os.sysconf("SC_PAGE_SIZE")
_OURS = ("internal_error",)

PARTS = 10
"""Of a run. Memory is noted after each: a leak goes on growing, tables and arenas are full one day."""


def parts_of(number: int) -> list[int]:
    """How many of so many are in each part."""
    return [number * (part + 1) // PARTS - number * part // PARTS for part in range(PARTS)]


@dataclass
class Findings:
    """What a run found."""

    sent: Counter[str] = field(default_factory=Counter)
    """By way of spoiling."""
    answers: Counter[str] = field(default_factory=Counter)
    """By status, or `closed`."""
    faults: list[str] = field(default_factory=list)
    """Answers of 5xx, hangs, good calls that failed, errors in the log."""
    good_calls: int = 0
    memory: list[int] = field(default_factory=list)
    """Bytes, after each tenth of the run."""
    held: int = 0
    """Calls that are still held at the end."""
    sessions: int = 0
    """With the upstream, at the end."""

    @property
    def total(self) -> int:
        return sum(self.sent.values())


@dataclass(frozen=True, slots=True)
class Target:
    """The gateway."""

    process: Serving

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.process.url.removeprefix("http://").removesuffix("/mcp").partition(":")
        return host, int(port)

    def rss(self) -> int:
        """Bytes of memory."""
        statm = Path(f"/proc/{self.process.process.pid}/statm").read_text("ascii")
        return int(statm.split()[1]) * _PAGE

    async def gauge(self, name: str) -> int:
        """What its metrics say, all series of a name together."""
        async with aiohttp.ClientSession() as http, http.get(f"{self.process.admin}/metrics") as response:
            lines = (await response.text()).split("\n")
        named = [line for line in lines if line.startswith((f"holdfast_{name}{{", f"holdfast_{name} "))]
        return round(sum(float(line.rpartition(" ")[2]) for line in named))

    async def at_rest(self, findings: Findings) -> None:
        """Note what is left when a run is over."""
        findings.held = await self.gauge("holds_open")
        findings.sessions = await self.gauge("sessions")
        if self.process.process.returncode is not None:
            findings.faults.append("the process died")
        findings.faults += self.complaints()

    def complaints(self) -> list[str]:
        """Lines of its log that mean a bug of ours, or a traceback."""
        found = []
        for line in self.process.said().split("\n"):
            if not line:
                continue
            try:
                event: dict[str, Any] = json.loads(line)
            except ValueError:
                found.append(line[:300])
                continue
            is_error = event.get("level") in ("error", "critical")
            if event.get("event") in _OURS or is_error or "exception" in event:
                found.append(line[:2000])
        return found


@contextlib.asynccontextmanager
async def target(folder: Path, upstream: Mapping[str, Any], **settings: Any) -> AsyncIterator[Target]:
    """Run it; in the end its log is read by whoever wants to."""
    limits = {"body": "64KiB", "body_timeout": "1s", "idle": "2s"}
    async with serving(
        folder,
        {"sessions": {"mode": "pooled"}, "call_timeout": "5s", **upstream},
        log={"level": "warning", "format": "json"},
        limits={**limits, **settings.pop("limits", {})},
        is_judged=False,
        **settings,
    ) as running:
        yield Target(running)
