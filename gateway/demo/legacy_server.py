"""A small legacy MCP server: real sessions, SSE, a back channel. It has never heard of Holdfast.

It speaks 2025-06-18 and 2025-11-25:

    POST    initialize, notifications, requests (answered with SSE), answers to our questions (202)
    GET     the session's one standing stream, for questions that name no call
    DELETE  ends the session; calls that wait for an answer fail

An unknown session is 404, a missing one 400, a second GET 409: as the Python SDK does.
"""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from aiohttp import web

from gateway.demo.legacy_tools import TOOLS, Json, Refused

VERSIONS: Final = ("2025-11-25", "2025-06-18")
MAX_SESSIONS: Final = 1000
MAX_BODY_BYTES: Final = 1024 * 1024
KEEPALIVE_SECONDS: Final = 15.0
_EVENT_STREAM: Final = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}


@dataclass(frozen=True, slots=True)
class Sighting:
    """Something that happened on this server's wire, for whoever narrates it."""

    what: Literal["opened", "called", "asked", "answered", "finished", "closed"]
    session: str
    message: Json
    stream: Literal["POST", "GET"] = "POST"


Witness: TypeAlias = Callable[[Sighting], None]


class _Refusal(Exception):
    """An HTTP status with a JSON-RPC error, before any stream was begun."""

    def __init__(self, status: int, message: str, code: int = -32600) -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    def response(self) -> web.Response:
        error = {"code": self.code, "message": str(self)}
        return web.json_response({"jsonrpc": "2.0", "id": None, "error": error}, status=self.status)


class _RpcError(Exception):
    """A JSON-RPC error as the answer to one request."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Stream:
    """One SSE response. A peer that left is no error: a legacy tool runs on, and its words are lost."""

    def __init__(self, request: web.Request, session_id: str) -> None:
        self._request = request
        self._response = web.StreamResponse(headers={**_EVENT_STREAM, "Mcp-Session-Id": session_id})

    @property
    def is_open(self) -> bool:
        transport = self._request.transport
        return transport is not None and not transport.is_closing()

    async def begin(self) -> web.StreamResponse:
        await self._response.prepare(self._request)
        return self._response

    async def send(self, message: Json) -> None:
        data = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        await self._write(f"event: message\r\ndata: {data}\r\n\r\n")

    async def keep_alive(self) -> None:
        await self._write(": ping\r\n\r\n")

    async def _write(self, text: str) -> None:
        try:
            await self._response.write(text.encode())
        except ConnectionResetError:
            return


@dataclass(slots=True)
class _Session:
    """What one `initialize` began. Ids of questions count from 0 in every session, as in the SDKs."""

    id: str
    is_initialized: bool = False
    listener: _Stream | None = None
    ask_ids: "count[int]" = field(default_factory=count)
    waiting: dict[int, asyncio.Future[Json]] = field(default_factory=dict)
    calls: dict[int | str, "_Call"] = field(default_factory=dict)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self) -> None:
        self.ended.set()
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(Refused("Connection closed"))


class _Call:
    """One `tools/call` on its POST stream; the back channel that its tool is given."""

    def __init__(self, session: _Session, stream: _Stream, witness: Witness) -> None:
        self._session = session
        self._stream = stream
        self._witness = witness
        self._asked: asyncio.Future[Json] | None = None

    async def ask(self, method: str, params: Json, *, unrelated: bool = False) -> Json:
        session = self._session
        ask_id = next(session.ask_ids)
        message = {"jsonrpc": "2.0", "id": ask_id, "method": method, "params": params}
        listener = session.listener if unrelated else None
        self._asked = session.waiting[ask_id] = asyncio.get_running_loop().create_future()
        self._witness(Sighting("asked", session.id, message, "GET" if listener else "POST"))
        try:
            await (listener or self._stream).send(message)
            return await self._asked
        finally:
            del session.waiting[ask_id]

    def cancel(self) -> None:
        if self._asked is not None and not self._asked.done():
            self._asked.set_exception(_RpcError(0, "Request cancelled"))


class LegacyServer:
    """Start it, point a client at `url`, stop it. `witness` is told everything, in the order it happened."""

    def __init__(self, *, witness: Witness = lambda _: None) -> None:
        self._witness = witness
        self._sessions: dict[str, _Session] = {}
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen; port 0 takes a free one."""
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_refusals_as_json])
        app.router.add_route("POST", "/mcp", self._post)
        # No HEAD: a probe must not open a stream.
        app.router.add_get("/mcp", self._get, allow_head=False)
        app.router.add_route("DELETE", "/mcp", self._delete)
        app.on_shutdown.append(self._end_all)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        bound = self._runner.addresses[0]
        self.url = f"http://{bound[0]}:{bound[1]}/mcp"

    async def stop(self) -> None:
        """End every session and every stream, then stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _end_all(self, _: web.Application) -> None:
        for session in self._sessions.values():
            session.end()
        self._sessions.clear()

    # --- the three verbs ----------------------------------------------------

    async def _post(self, request: web.Request) -> web.StreamResponse:
        accept = request.headers.get("Accept", "")
        if "application/json" not in accept or "text/event-stream" not in accept:
            raise _Refusal(406, "Accept must list application/json and text/event-stream")
        message = await _read_message(request)
        if message.get("method") == "initialize":
            return await self._initialize(request, message)
        session = self._session_of(request)
        if "method" not in message:
            self._take_answer(session, message)
        elif "id" not in message:
            self._take_notification(session, message)
        else:
            return await self._answer(request, session, message)
        return web.Response(status=202)

    async def _get(self, request: web.Request) -> web.StreamResponse:
        if "text/event-stream" not in request.headers.get("Accept", ""):
            raise _Refusal(406, "Accept must list text/event-stream")
        session = self._session_of(request)
        if session.listener is not None and session.listener.is_open:
            raise _Refusal(409, "Only one GET stream per session")
        stream = _Stream(request, session.id)
        response = await stream.begin()
        session.listener = stream
        while stream.is_open and not session.ended.is_set():
            try:
                await asyncio.wait_for(session.ended.wait(), KEEPALIVE_SECONDS)
            except TimeoutError:
                await stream.keep_alive()
        if session.listener is stream:
            session.listener = None
        return response

    async def _delete(self, request: web.Request) -> web.Response:
        session = self._session_of(request)
        del self._sessions[session.id]
        session.end()
        self._witness(Sighting("closed", session.id, {}))
        return web.Response(status=200)

    # --- what a POST may carry ----------------------------------------------

    async def _initialize(self, request: web.Request, message: Json) -> web.StreamResponse:
        if len(self._sessions) >= MAX_SESSIONS:
            raise _Refusal(503, "Too many sessions")
        asked_version = _params(message).get("protocolVersion")
        version = asked_version if asked_version in VERSIONS else VERSIONS[0]
        session = _Session(uuid.uuid4().hex)
        self._sessions[session.id] = session
        self._witness(Sighting("opened", session.id, {"protocolVersion": version}))
        stream = _Stream(request, session.id)
        response = await stream.begin()
        result = {
            "protocolVersion": version,
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": "demo-legacy-server", "version": "1.0.0"},
            "instructions": "A legacy server: it keeps sessions, and it asks in mid-call.",
        }
        await stream.send({"jsonrpc": "2.0", "id": message.get("id"), "result": result})
        return response

    def _take_answer(self, session: _Session, message: Json) -> None:
        future = session.waiting.get(message.get("id", -1))
        # Unknown ids and second answers are 202 and ignored, as in every SDK.
        if future is None or future.done():
            return
        self._witness(Sighting("answered", session.id, message))
        if isinstance(message.get("result"), dict):
            future.set_result(message["result"])
        else:
            reason = message.get("error") or {}
            future.set_exception(Refused(str(reason.get("message", "no answer"))))

    def _take_notification(self, session: _Session, message: Json) -> None:
        if message["method"] == "notifications/initialized":
            session.is_initialized = True
        elif message["method"] == "notifications/cancelled":
            call = session.calls.get(_params(message).get("requestId", ""))
            if call is not None:
                call.cancel()

    async def _answer(self, request: web.Request, session: _Session, message: Json) -> web.StreamResponse:
        stream = _Stream(request, session.id)
        response = await stream.begin()
        reply: Json = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            reply["result"] = await self._result(session, stream, message)
        except _RpcError as error:
            reply["error"] = {"code": error.code, "message": str(error)}
        await stream.send(reply)
        return response

    async def _result(self, session: _Session, stream: _Stream, message: Json) -> Json:
        method, params = message["method"], _params(message)
        if method == "ping":
            return {}
        if not session.is_initialized:
            raise _RpcError(-32602, "Received request before initialization was complete")
        if method == "tools/list":
            return {"tools": [tool.definition() for tool in TOOLS.values()]}
        if method == "tools/call":
            return await self._run_tool(session, stream, message["id"], params)
        raise _RpcError(-32601, f"Method not found: {method}")

    async def _run_tool(self, session: _Session, stream: _Stream, call_id: int | str, params: Json) -> Json:
        name, arguments = params.get("name"), params.get("arguments") or {}
        tool = TOOLS.get(name) if isinstance(name, str) else None
        if tool is None:
            raise _RpcError(-32602, f"Unknown tool: {name}")
        self._witness(Sighting("called", session.id, params))
        call = session.calls[call_id] = _Call(session, stream, self._witness)
        try:
            missing = [name for name in tool.required if name not in arguments]
            if missing:
                raise Refused(f"missing arguments: {', '.join(missing)}")
            text, is_error = await tool.run(arguments, call), False
        except Refused as refused:
            text, is_error = f"Error executing tool {tool.name}: {refused}", True
        finally:
            session.calls.pop(call_id, None)
        result: Json = {"content": [{"type": "text", "text": text}], "isError": is_error}
        self._witness(Sighting("finished", session.id, result))
        return result

    def _session_of(self, request: web.Request) -> _Session:
        session_id = request.headers.get("Mcp-Session-Id")
        if session_id is None:
            raise _Refusal(400, "Bad Request: Missing session ID")
        session = self._sessions.get(session_id)
        if session is None:
            raise _Refusal(404, "Session not found")
        if request.headers.get("MCP-Protocol-Version", VERSIONS[0]) not in VERSIONS:
            raise _Refusal(400, "Bad Request: Unsupported protocol version")
        return session


def _params(message: Json) -> Json:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


async def _read_message(request: web.Request) -> Json:
    try:
        message = json.loads(await request.read())
    except ValueError as error:
        raise _Refusal(400, "Parse error", -32700) from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise _Refusal(400, "Invalid Request: one JSON-RPC message per POST")
    return message


@web.middleware
async def _refusals_as_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    origin = request.headers.get("Origin")
    # A web page must not reach a server on the user's own machine (DNS rebinding).
    if origin is not None and urlsplit(origin).hostname not in ("127.0.0.1", "localhost", "::1"):
        return _Refusal(403, "Forbidden origin").response()
    try:
        return await handler(request)
    except _Refusal as refusal:
        return refusal.response()
