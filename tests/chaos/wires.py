"""The wires between one gateway and one server: TCP, cut at any moment. It reads along, and changes nothing.

What it reads is evidence: whose bytes were on a connection that was cut, and which process spoke in which legacy
session last.
"""

import asyncio
import contextlib
import random
import re
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self

from tests.chaos.sightings import Passing, Sightings
from tests.support.waiting import stop_accepting

_EXCHANGE: Final = re.compile(rb"chaos-\d+-\d+\.")
_OVERLAP: Final = 128
"""Bytes of the part before that are looked at again: a name may lie on the border."""


@dataclass(eq=False)
class Wire:
    """One connection."""

    gateway: asyncio.StreamWriter
    server: asyncio.StreamWriter
    passing: Passing
    is_cut: bool = False
    exchanges: set[str] = field(default_factory=set)
    tails: dict[str, bytes] = field(default_factory=dict)

    def cut(self) -> None:
        self.is_cut = True
        for writer in (self.gateway, self.server):
            with contextlib.suppress(OSError):
                writer.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
            writer.transport.abort()


class Wires:
    """Listens for the time of an `async with`; everything passes on to `port` on loopback."""

    def __init__(self, port: int, process: Callable[[], str], sightings: Sightings) -> None:
        self._target = port
        self._process = process
        self._sightings = sightings
        self._tasks: set[asyncio.Task[None]] = set()
        self.open: set[Wire] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=1024)
        return self

    async def __aexit__(self, *_: object) -> None:
        await stop_accepting(self._server)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/mcp"

    def cut(self, share: float, dice: random.Random) -> list[Wire]:
        """Reset this share of the connections; returns them."""
        hit = [wire for wire in self.open if dice.random() < share]
        for wire in hit:
            wire.cut()
        return hit

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        wire: Wire | None = None
        try:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
            wire = Wire(writer, to_server, Passing(self._process()))
            self.open.add(wire)
            ways = [
                asyncio.ensure_future(self._pump(wire, "there", reader, to_server)),
                asyncio.ensure_future(self._pump(wire, "back", from_server, writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()
            if wire is not None:
                self.open.discard(wire)
                self._sightings.ended(wire.passing, is_cut=wire.is_cut)
                wire.server.close()

    async def _pump(
        self, wire: Wire, way: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        look = self._sightings.there if way == "there" else self._sightings.back
        while data := await reader.read(65536):
            seen = wire.tails.get(way, b"") + data
            wire.tails[way] = seen[-_OVERLAP:]
            wire.exchanges.update(name.decode() for name in _EXCHANGE.findall(seen))
            look(wire.passing, seen)
            writer.write(data)
            await writer.drain()
