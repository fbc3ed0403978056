"""A legacy server that does exactly what a test scripts, down to the bytes; well behaved where nothing is scripted.

It speaks HTTP/1.1 by hand, because a library would not send what the worst servers send. It knows nothing of
the gateway.
"""

import asyncio
import contextlib
import json
import re
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from tests.support.said import TOOL, Json, ask, notice, text_result
from tests.support.waiting import stop_accepting

EVENTS = "text/event-stream"
SECONDS = 5.0
_ID = re.compile(rb'"id":"([^"]*)"')

__all__ = ["Json", "Script", "Scripted", "Turn", "ask", "asking", "introduction", "notice", "text_result"]


class Turn:
    """One HTTP request, and the means to answer it in any way, right or wrong."""

    def __init__(
        self, server: "Scripted", verb: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> None:
        self.server = server
        self.verb = verb
        self.path = path
        self.headers = headers
        """Names in lower case."""
        self.body = body
        try:
            self.message: Json = json.loads(body) if body else {}
        except RecursionError:  # our own decoder gives up before the gateway's does; the envelope is enough
            self.message = {"id": _ID.findall(body)[0].decode(), "method": "tools/call"}
        self.is_over = False
        """The connection is not to be used again."""
        self.was_known = True
        """It came on a session that is open, or opened one: its script is what was told, not a refusal."""
        self.is_finished = False
        """Its script has come to its end."""
        self.has_left = False
        """The client was seen to have closed the connection."""
        self._newline = "\n"

    @property
    def method(self) -> str:
        """What it is about: a JSON-RPC method, `answer`, or the HTTP verb."""
        return str(self.message.get("method", "answer")) if self.body else self.verb

    @property
    def id(self) -> Any:
        return self.message.get("id")

    @property
    def session(self) -> str | None:
        return self.headers.get("mcp-session-id")

    # --- whole answers -----------------------------------------------------------------

    async def reply(
        self, status: int, body: bytes | str = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        """A complete response."""
        data = body.encode() if isinstance(body, str) else body
        await self.write(_head(status, {"Content-Length": str(len(data)), **(headers or {})}) + data)

    async def json(self, value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """A complete response of JSON."""
        await self.reply(status, json.dumps(value), {"Content-Type": "application/json", **(headers or {})})

    async def result(self, result: Json, headers: Mapping[str, str] | None = None) -> None:
        """The answer to this request, in JSON mode."""
        await self.json(self.answer(result), headers=headers)

    def answer(self, result: Json) -> Json:
        """The message that answers this request."""
        return {"jsonrpc": "2.0", "id": self.id, "result": result}

    # --- streams -----------------------------------------------------------------------

    async def stream(
        self, headers: Mapping[str, str] | None = None, *, newline: str = "\n", status: int = 200
    ) -> None:
        """Send the headers of an event stream; the lines of its events will end as told."""
        self._newline = newline
        whole = {"Content-Type": EVENTS, "Transfer-Encoding": "chunked", **(headers or {})}
        await self.write(_head(status, whole))

    async def event(self, message: Any, **fields: Any) -> None:
        """One event with a message: `event: message` and one line of JSON; `fields` come first."""
        await self.chunk(self.framed(message, **fields))

    def framed(self, message: Any, **fields: Any) -> bytes:
        """The bytes of such an event."""
        data = message if isinstance(message, str) else json.dumps(message)
        lines = {"event": "message", **fields, "data": data}
        return (
            "".join(
                f"{name}: {value}{self._newline}" for name, value in lines.items() if value is not None
            ).encode()
            + self._newline.encode()
        )

    async def chunk(self, data: bytes) -> None:
        """These bytes, as one HTTP chunk and, as far as TCP lets us, one packet."""
        await self.write(b"%x\r\n%s\r\n" % (len(data), data))

    async def finish(self) -> None:
        """The proper end of a stream."""
        await self.write(b"0\r\n\r\n")

    async def until_left(self) -> None:
        """Leave the stream open, and wait until the client closes it."""
        with contextlib.suppress(ConnectionError):
            await self._reader.read(1)  # nobody sends a next request before this one is answered
        self.has_left = self.is_over = True
        await self.server.changed()

    async def answered(self, id_: Any) -> Json | None:
        """Wait for the client's answer to an ask of ours; None if it leaves first."""
        leaving = asyncio.get_running_loop().create_task(self.until_left())
        try:
            await self.server.wait_until(lambda: self.has_left or bool(self.server.answers(id_)), None)
        finally:
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
        return next(iter(self.server.answers(id_)), None)

    # --- bytes -------------------------------------------------------------------------

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        with contextlib.suppress(ConnectionError):
            await self.writer.drain()

    def hang_up(self) -> None:
        """FIN, wherever we are."""
        self.is_over = True
        self.writer.close()

    def reset(self) -> None:
        """RST, wherever we are."""
        self.is_over = True
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Where it came from."""
        self._reader, self.writer = reader, writer


Script = Callable[[Turn], Awaitable[None]]


@dataclass
class Scripted:
    """The server. `on[method]` replaces what it does by itself; methods are JSON-RPC ones, or GET, DELETE, answer."""

    version: str = "2025-11-25"
    sessions: bool = True
    on: dict[str, Script] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    """Every request that arrived, in order."""
    known: set[str] = field(default_factory=set)
    """Sessions that are open."""
    standing: dict[str | None, Turn] = field(default_factory=dict)
    """The GET stream of each session."""
    unknown_session: Script | None = None
    """How a request on a session that we do not know is answered; 404 by itself."""
    port: int = 0
    connections: int = 0
    """How many were accepted."""

    def __post_init__(self) -> None:
        self._issued = Counter[str]()
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    # --- life --------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen; after a `stop`, on the same port as before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=2**20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the port and every connection, as a killed process does; sessions are forgotten."""
        if self._server is not None:
            await stop_accepting(self._server)  # whoever was accepted just now is in `_open` then
            self._server = None
        for writer in list(self._open):
            writer.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.known.clear()
        self.standing.clear()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    # --- what happened -------------------------------------------------------------------

    def seen(self, method: str) -> list[Turn]:
        """The requests of this method so far."""
        return [turn for turn in self.turns if turn.method == method]

    async def wait(self, method: str, number: int = 1) -> Turn:
        """Wait until so many requests of this method came; the last of them."""
        await self.wait_until(lambda: len(self.seen(method)) >= number)
        return self.seen(method)[number - 1]

    async def wait_until(self, is_true: Callable[[], bool], seconds: float | None = SECONDS) -> None:
        """Wait until something that depends on what came is true."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(is_true)

    async def changed(self) -> None:
        """Let those who wait look again."""
        async with self._changed:
            self._changed.notify_all()

    def answers(self, id_: Any) -> list[Json]:
        """The client's answers to our request of this id (and JSON type), whole messages."""
        return [t.message for t in self.seen("answer") if t.id == id_ and type(t.id) is type(id_)]

    async def wait_for_answer(self, id_: Any) -> Json:
        """Wait for one."""
        await self.wait_until(lambda: bool(self.answers(id_)))
        return self.answers(id_)[0]

    async def say(self, message: Json, session: str | None = None) -> None:
        """Say something on a GET stream; that of the only session if none is named."""
        await self._standing(session).event(message)

    async def hang_up_standing(self, session: str | None = None) -> None:
        """End a GET stream properly, and forget it."""
        stream = self._standing(session)
        await stream.finish()
        del self.standing[stream.session]
        stream.hang_up()

    def _standing(self, session: str | None) -> Turn:
        if session is not None:
            return self.standing[session]
        (stream,) = self.standing.values()
        return stream

    # --- serving -------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open.add(writer)
        self.connections += 1
        try:
            while (turn := await self._read(reader)) is not None:
                turn.connect(reader, writer)
                self.turns.append(turn)
                await self.changed()
                await self._script_for(turn)(turn)
                turn.is_finished = True
                await self.changed()
                if turn.is_over:
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            self._open.discard(writer)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Turn | None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        verb, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return Turn(self, verb, path, headers, body)

    def _script_for(self, turn: Turn) -> Script:
        if self.sessions and turn.method != "initialize" and turn.session not in self.known:
            turn.was_known = False
            return self.unknown_session or _not_found
        return self.on.get(turn.method) or _BY_ITSELF.get(turn.method) or _accepted

    def new_session(self) -> dict[str, str]:
        """The header of a new session; none for a server without."""
        if not self.sessions:
            return {}
        name = f"session-{self.number('session')}"
        self.known.add(name)
        return {"Mcp-Session-Id": name}

    def number(self, what: str) -> int:
        """The next number for a thing of this kind, from 1."""
        self._issued[what] += 1
        return self._issued[what]


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Scripted\r\n{lines}\r\n".encode()


# --- what it does by itself --------------------------------------------------------------------


def introduction(server: Scripted) -> Json:
    """Its `initialize` result."""
    return {
        "protocolVersion": server.version,
        "capabilities": {"tools": {}, "logging": {}, "completions": {}},
        "serverInfo": {"name": "scripted", "version": "1"},
    }


async def _initialize(turn: Turn) -> None:
    await turn.result(introduction(turn.server), turn.server.new_session())


async def _stand(turn: Turn) -> None:
    await turn.stream()
    turn.server.standing[turn.session] = turn
    await turn.server.changed()
    await turn.until_left()


async def _delete(turn: Turn) -> None:
    turn.server.known.discard(turn.session or "")
    await turn.reply(200)


async def _list_tools(turn: Turn) -> None:
    await turn.result({"tools": [TOOL]})


async def _call(turn: Turn) -> None:
    await turn.result(text_result("done"))


async def _empty(turn: Turn) -> None:
    await turn.result({})


async def _accepted(turn: Turn) -> None:
    await turn.reply(202)


async def _not_found(turn: Turn) -> None:
    error = {"code": -32600, "message": "Session not found"}
    await turn.json({"jsonrpc": "2.0", "id": "server-error", "error": error}, 404)


_BY_ITSELF: dict[str, Script] = {
    "initialize": _initialize,
    "GET": _stand,
    "DELETE": _delete,
    "tools/list": _list_tools,
    "tools/call": _call,
    "logging/setLevel": _empty,
    "completion/complete": _empty,
}


async def asking(turn: Turn) -> None:
    """A tool that asks for a name on its own stream, and greets."""
    await turn.stream()
    number = turn.server.number("ask")
    await turn.event(ask(number))
    answer = await turn.answered(number)
    if answer is not None:
        given = answer.get("result", {}).get("content", {}).get("name", "nobody")
        await turn.event(turn.answer(text_result(f"Hello {given}")))
        await turn.finish()
