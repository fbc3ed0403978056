"""A dumb round-robin balancer: TCP, no stickiness, no health checks. It notes who took which connection.

A replica that refuses the connection is passed over: nothing was sent yet. From then on the client sees what
happens. If all refuse, the client hears 503, and knows that nobody has heard it.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from tests.chaos.records import Passage
from tests.support.waiting import stop_accepting

_NOBODY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)


@dataclass(frozen=True, slots=True)
class Backend:
    """A replica's address, which stays, and the name of its present life, which does not."""

    port: int
    process: Callable[[], str]


class Balancer:
    """Listens for the time of an `async with`."""

    def __init__(self, backends: Sequence[Backend], now: Callable[[], float]) -> None:
        self._backends = backends
        self._now = now
        self._turn = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.passages: list[Passage] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=1024)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await stop_accepting(self._server)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._pass(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port: int = writer.get_extra_info("peername")[1]
        began = self._now()
        for _ in self._backends:
            backend = self._backends[self._turn % len(self._backends)]
            self._turn += 1
            process = backend.process()
            with contextlib.suppress(OSError):
                from_replica, to_replica = await asyncio.open_connection("127.0.0.1", backend.port)
                break
        else:
            self.passages.append(Passage(port, None, began))
            writer.write(_NOBODY)
            await writer.drain()
            return
        self.passages.append(Passage(port, process, began))
        ways = [
            asyncio.ensure_future(_pump(reader, to_replica)),
            asyncio.ensure_future(_pump(from_replica, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            to_replica.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
