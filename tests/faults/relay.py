"""A TCP relay that breaks what passes through it, at a chosen place. It knows bytes, and where headers end.

Point the gateway at `url` instead of at the server. `arm` sets one fault: the first connection on which a
request with the marker passes gets it; all others are relayed faithfully.
"""

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Self

from tests.support.waiting import stop_accepting

_END_OF_HEADERS = b"\r\n\r\n"


class How(Enum):
    """What is done to a connection."""

    RESET = auto()
    """RST, as when the peer's process is killed with data unread."""
    FIN = auto()
    """An orderly close in the wrong place."""
    STALL = auto()
    """Nothing more, and no end either."""
    DRIP = auto()
    """Every byte of the answer on its own."""


class Where(Enum):
    """How far the exchange gets first."""

    REQUEST = auto()
    """The server does not even see the request."""
    RESPONSE = auto()
    """It does, but no byte of its answer gets back."""
    HEADERS = auto()
    """The answer breaks off in the middle of its headers."""
    BODY = auto()
    """It breaks off after the first bytes of its body."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, waiting for its request."""

    how: How
    where: Where
    marker: bytes


@dataclass(eq=False)
class _Connection:
    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    fault: Fault | None = None
    answered: bytearray = field(default_factory=bytearray)
    """What the server said since the fault was set off."""

    def end(self, how: How) -> None:
        if how is How.RESET:
            for writer in (self.client, self.server):
                _reset(writer)
        else:
            self.client.close()
            self.server.close()


class FaultRelay:
    """Listens for the time of an `async with`, and passes on to `port` on loopback."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._fault: Fault | None = None
        self._open: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.struck = asyncio.Event()
        """The armed fault was set off."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await stop_accepting(self._server)  # whoever was accepted just now has a task then
        self.end_all(How.RESET)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/mcp"

    def arm(self, how: How, where: Where, marker: bytes = b"tools/call") -> None:
        """Set one fault."""
        self._fault = Fault(how, where, marker)
        self.struck.clear()

    def end_all(self, how: How) -> None:
        """End every connection, also those on which nothing is going on."""
        for connection in list(self._open):
            connection.end(how)

    # --- passing on --------------------------------------------------------------------

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
        except (OSError, asyncio.CancelledError):
            self._tasks.discard(task)
            _reset(writer)
            return
        connection = _Connection(writer, to_server)
        self._open.add(connection)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._forward(connection, reader))
                both.create_task(self._backward(connection, from_server))
        except* (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(connection)
            self._tasks.discard(task)
            writer.close()
            to_server.close()

    async def _forward(self, connection: _Connection, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(65536):
            if self._fault is not None and self._fault.marker in data:
                connection.fault, self._fault = self._fault, None
                connection.answered.clear()
                if connection.fault.where is Where.REQUEST:
                    await self._strike(connection, connection.fault)
                    return
            connection.server.write(data)
            await connection.server.drain()
        connection.server.close()

    async def _backward(self, connection: _Connection, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(65536):
            fault = connection.fault
            if fault is None:
                connection.client.write(data)
                await connection.client.drain()
            elif fault.how is How.DRIP:
                await self._drip(connection, data)
            else:
                already = len(connection.answered)
                connection.answered += data
                passes = _passing(fault.where, bytes(connection.answered))
                connection.client.write(data[: max(0, passes - already)])
                await connection.client.drain()
                if len(connection.answered) > passes:
                    await self._strike(connection, fault)
                    return
        connection.client.close()

    async def _strike(self, connection: _Connection, fault: Fault) -> None:
        self.struck.set()
        if fault.how is How.STALL:
            await asyncio.Event().wait()
        connection.end(fault.how)

    async def _drip(self, connection: _Connection, data: bytes) -> None:
        self.struck.set()
        for byte in data:
            connection.client.write(bytes([byte]))
            await connection.client.drain()
            await asyncio.sleep(0)


def _passing(where: Where, answered: bytes) -> int:
    """How many bytes of the answer get through."""
    match where:
        case Where.HEADERS:
            return 12
        case Where.BODY:
            end = answered.find(_END_OF_HEADERS)
            return len(answered) if end < 0 else end + len(_END_OF_HEADERS) + 8
        case _:
            return 0


def _reset(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
    writer.transport.abort()
