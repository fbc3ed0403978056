"""Hostile clients: malformed requests over raw connections to a live gateway, good calls in between."""

import asyncio
import contextlib
import random
from pathlib import Path
from typing import Final

from tests.fuzz.http_requests import good_call, malformed
from tests.fuzz.live import Findings, Target, parts_of, target
from tests.fuzz.patient_upstream import PatientUpstream

_SECONDS: Final = 15.0
"""After which an answer that has not come never will."""
_CONNECTIONS: Final = 160
_GOOD_EVERY: Final = 100


async def fuzz(seed: int, number: int, folder: Path) -> Findings:
    """Send so many, each on a connection of its own unless the one before has left one open."""
    findings = Findings()
    async with PatientUpstream() as upstream, target(folder, {"url": upstream.url}) as gateway:
        for part, size in enumerate(parts_of(number)):
            await _volley(gateway, upstream, findings, seed + part, size)
            findings.memory.append(gateway.rss())
        await gateway.at_rest(findings)
    return findings


async def _volley(
    gateway: Target, upstream: PatientUpstream, findings: Findings, seed: int, number: int
) -> None:
    share = -(-number // _CONNECTIONS)
    async with asyncio.TaskGroup() as group:
        for lane in range(_CONNECTIONS):
            size = max(0, min(share, number - lane * share))
            group.create_task(_lane(gateway, upstream, findings, random.Random(seed * 1000 + lane), size))


async def _lane(
    gateway: Target, upstream: PatientUpstream, findings: Findings, rng: random.Random, number: int
) -> None:
    connection = _Connection(gateway.address)
    try:
        for count in range(number):
            way, data = malformed(rng)
            findings.sent[way] += 1
            status = await connection.ask(data)
            findings.answers["closed" if status == 0 else str(status)] += 1
            if status < 0 or status >= 500:
                what = "no answer" if status < 0 else f"HTTP {status}"
                findings.faults.append(f"{what} to {way}: {data[:600]!r}")
            if count % _GOOD_EVERY == 0:
                upstream.turns.clear()
                await _good(gateway, findings)
    finally:
        await connection.close()


async def _good(gateway: Target, findings: Findings) -> None:
    connection = _Connection(gateway.address)
    try:
        status = await connection.ask(good_call())
    finally:
        await connection.close()
    findings.good_calls += 1
    if status != 200:
        findings.faults.append(f"a good call: {status}")


class _Connection:
    """One after another; what a request leaves in doubt is not used for the next."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, data: bytes) -> int:
        """The status of the (first) answer; 0 if the connection was closed instead, -1 if neither came."""
        try:
            async with asyncio.timeout(_SECONDS):
                return await self._ask(data)
        except TimeoutError:
            await self.close()
            return -1
        except (ConnectionError, asyncio.IncompleteReadError):
            await self.close()
            return 0

    async def _ask(self, data: bytes) -> int:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address)
        reader, writer = self._streams
        writer.write(data)
        await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        lower = head.lower()
        length = lower.partition(b"content-length:")[2].partition(b"\r\n")[0].strip()
        if length and b"transfer-encoding" not in lower:
            await reader.readexactly(int(length))
        # Only after an ordinary answer is it certain where the next begins.
        if status != 200 or b"connection: close" in lower or not length:
            await self.close()
        return status

    async def close(self) -> None:
        if self._streams is not None:
            writer = self._streams[1]
            self._streams = None
            writer.close()
            with contextlib.suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(1):
                    await writer.wait_closed()
