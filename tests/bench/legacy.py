"""A minimal, fast legacy server: `python -m tests.bench.legacy`. It checks nothing that it need not.

A bare asyncio protocol that keeps real sessions: `initialize`, `notifications/*`,
`tools/list`, `echo` (answered with JSON or SSE), `ask` (one elicitation on the POST's
stream, then a result that repeats the answer), GET (a standing stream, or 405), DELETE.
"""

import argparse
import asyncio
import secrets
import sys
from typing import Any, Final, cast

import msgspec
import uvloop

_JSON_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_SSE_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n"
)
_LAST_CHUNK: Final = b"0\r\n\r\n"
_STRING: Final[dict[str, Any]] = {"type": "object", "properties": {"text": {"type": "string"}}}
_TOOLS: Final = {
    "tools": [{"name": name, "description": name, "inputSchema": _STRING} for name in ("echo", "ask")]
}
_SCHEMA: Final = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
_encode = msgspec.json.Encoder().encode


class _Params(msgspec.Struct):
    name: str = ""
    arguments: dict[str, Any] = {}


class _Message(msgspec.Struct):
    method: str | None = None
    id: int | str | None = None
    params: _Params | None = None
    result: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_Message).decode


class _Session:
    __slots__ = ("id", "listener", "next_ask", "waiting")

    def __init__(self) -> None:
        self.id = secrets.token_hex(16)
        self.next_ask = 0
        self.listener: _Connection | None = None
        # ask id -> (the connection of the call, the call's id, what to put before the answer)
        self.waiting: dict[int, tuple[_Connection, int | str, str]] = {}


class _Server:
    def __init__(self, *, get_is_stream: bool, answers_sse: bool) -> None:
        self.sessions: dict[str, _Session] = {}
        self.get_is_stream = get_is_stream
        self.answers_sse = answers_sse


class _Connection(asyncio.Protocol):
    """One client connection; requests are taken strictly one after another."""

    __slots__ = ("_buffer", "_is_streaming", "_server", "_transport")

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._is_streaming = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        while self._buffer and not self._is_streaming:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._buffer[:end].lower()
            stop = end + 4 + int(_header(head, b"\r\ncontent-length:") or 0)
            if len(self._buffer) < stop:
                return
            body, self._buffer = self._buffer[end + 4 : stop], self._buffer[stop:]
            self._take(head, body)

    def _take(self, head: bytes, body: bytes) -> None:
        session = self._server.sessions.get((_header(head, b"\r\nmcp-session-id:") or b"").decode())
        if head.startswith(b"post"):
            message = _decode(body)
            if message.method == "initialize":
                self._initialize(message)
            elif session is None:
                self._status(b"404 Not Found")
            elif message.method is None:
                self._take_answer(session, message)
            elif message.id is None:
                self._status(b"202 Accepted")
            else:
                self._answer(session, message.id, message)
        elif session is None:
            self._status(b"404 Not Found")
        elif head.startswith(b"delete"):
            self._end(session)
        elif self._server.get_is_stream:
            self._is_streaming = True
            session.listener = self
            self.write(_SSE_HEAD + b"\r\n")
        else:
            self._status(b"405 Method Not Allowed")

    def _initialize(self, message: _Message) -> None:
        session = _Session()
        self._server.sessions[session.id] = session
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "bench-legacy", "version": "1"},
        }
        assert message.id is not None
        self._result(message.id, result, b"Mcp-Session-Id: " + session.id.encode() + b"\r\n")

    def _answer(self, session: _Session, request_id: int | str, message: _Message) -> None:
        params = message.params or _Params()
        if message.method == "tools/call" and params.name == "echo":
            self._result(request_id, _text(str(params.arguments.get("text", ""))))
        elif message.method == "tools/call" and params.name == "ask":
            self._ask(session, request_id, str(params.arguments.get("text", "")))
        elif message.method == "tools/list":
            self._result(request_id, _TOOLS)
        else:
            self._result(request_id, {})

    def _ask(self, session: _Session, request_id: int | str, text: str) -> None:
        ask_id = session.next_ask
        session.next_ask += 1
        session.waiting[ask_id] = (self, request_id, text)
        self._is_streaming = True
        params = {"message": "What is the answer?", "requestedSchema": _SCHEMA}
        ask = {"jsonrpc": "2.0", "id": ask_id, "method": "elicitation/create", "params": params}
        self.write(_SSE_HEAD + b"\r\n" + _chunk(_event(_encode(ask))))

    def _take_answer(self, session: _Session, message: _Message) -> None:
        self._status(b"202 Accepted")
        waiting = session.waiting.pop(message.id, None) if isinstance(message.id, int) else None
        if waiting is None:
            return
        connection, request_id, text = waiting
        content = (message.result or {}).get("content") or {}
        reply = {"jsonrpc": "2.0", "id": request_id, "result": _text(f"{text}:{content.get('answer')}")}
        connection.finish(_chunk(_event(_encode(reply))))

    def _end(self, session: _Session) -> None:
        del self._server.sessions[session.id]
        if session.listener is not None:
            session.listener.finish(b"")
        self._status(b"200 OK")

    def _result(self, request_id: int | str, result: dict[str, Any], headers: bytes = b"") -> None:
        data = _encode({"jsonrpc": "2.0", "id": request_id, "result": result})
        if self._server.answers_sse:
            self.write(_SSE_HEAD + headers + b"\r\n" + _chunk(_event(data)) + _LAST_CHUNK)
        else:
            self.write(_JSON_HEAD + headers + b"Content-Length: %d\r\n\r\n" % len(data) + data)

    def _status(self, status: bytes) -> None:
        self.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def finish(self, last: bytes) -> None:
        """End the stream; the connection is free for the next request."""
        self._is_streaming = False
        self.write(last + _LAST_CHUNK)


def _header(head: bytes, name: bytes) -> bytes | None:
    at = head.find(name)
    if at < 0:
        return None
    end = head.find(b"\r\n", at + len(name))
    return head[at + len(name) : end if end > 0 else None].strip()


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def _event(data: bytes) -> bytes:
    # Framed as the Python SDK does.
    return b"event: message\r\ndata: " + data + b"\r\n\r\n"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def _main(*, get_is_stream: bool, answers_sse: bool, addresses: int) -> None:
    server = _Server(get_is_stream=get_is_stream, answers_sse=answers_sse)
    loop = asyncio.get_running_loop()
    port = 0
    for number in range(1, addresses + 1):
        listener = await loop.create_server(
            lambda: _Connection(server), f"127.0.0.{number}", port, backlog=4096
        )
        port = listener.sockets[0].getsockname()[1]
    print(port, flush=True)
    # The parent keeps our standard input open for as long as it wants us.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench.legacy")
    parser.add_argument("--get", choices=["stream", "405"], default="stream")
    parser.add_argument("--answer", choices=["sse", "json"], default="sse")
    parser.add_argument("--addresses", type=int, default=1, help="listen on 127.0.0.1 to 127.0.0.N, one port")
    options = parser.parse_args()
    uvloop.run(
        _main(
            get_is_stream=options.get == "stream",
            answers_sse=options.answer == "sse",
            addresses=options.addresses,
        )
    )
