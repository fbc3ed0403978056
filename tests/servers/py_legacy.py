"""A legacy server on the Python SDK 1.x: the transport half. The tools are next door.

    python py_legacy.py --port 0 [--json-response] [--stateless] [--event-store] [--bad-tools] …
    python py_legacy.py --transport sse --port 0 …
    python py_legacy.py --transport stdio …

Prints `LISTENING <port>` once it accepts, ends when its stdin closes. Beside `/mcp`, or `/sse` and `/messages/`:
`GET /_observed` tells what the process saw, `POST /_forget` drops every session. Over stdio it does neither;
there `--events FILE` tells what happened.
"""

import argparse
import asyncio
import contextlib
import importlib
import json
import os
import socket
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import py_legacy_tools as fixture  # type: ignore[import-not-found, unused-ignore]  # its own directory is on the path

types = fixture.types
uvicorn: Any = importlib.import_module("uvicorn")
Server: Any = importlib.import_module("mcp.server.lowlevel").Server
sse: Any = importlib.import_module("mcp.server.sse")
stdio: Any = importlib.import_module("mcp.server.stdio")
streamable: Any = importlib.import_module("mcp.server.streamable_http")
managers: Any = importlib.import_module("mcp.server.streamable_http_manager")
security: Any = importlib.import_module("mcp.server.transport_security")

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class MemoryEvents(streamable.EventStore):  # type: ignore[misc]
    """Every event of every stream, in order; ids are positions."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self.kept.append((stream_id, message))
        return str(len(self.kept))

    async def replay_events_after(
        self, last_event_id: str, send_callback: Callable[[Any], Awaitable[None]]
    ) -> str | None:
        position = int(last_event_id) if last_event_id.isdecimal() else 0
        if not 0 < position <= len(self.kept):
            return None
        stream = self.kept[position - 1][0]
        for number, (name, message) in enumerate(self.kept[position:], position + 1):
            if name == stream and message is not None:
                await send_callback(streamable.EventMessage(message, str(number)))
        return stream


def page(kind: str, items: list[Any], size: int) -> Callable[[Any], Awaitable[Any]]:
    async def listed(request: Any) -> Any:
        params = getattr(request, "params", None)
        start = int(params.cursor) if params is not None and params.cursor else 0
        end = start + size if size else len(items)
        more = {"nextCursor": str(end)} if end < len(items) else {}
        return fixture.Plain(**{kind: items[start:end]}, **more)

    return listed


async def prompt(call: Any, name: str, arguments: dict[str, str]) -> str:
    if name == "simple":
        return f"Write about {arguments.get('topic', 'nothing')}."
    if name == "ask_prompt":
        return str(fixture.hello(await call.form("name")))
    raise fixture.refuse(-32602, f"Unknown prompt: {name}")


async def resource(call: Any, uri: str) -> str:
    if uri == "test://static/hello":
        return "Hello from a resource"
    if uri.startswith("test://item/"):
        return f"Item {uri.removeprefix('test://item/')}"
    if uri == "ask://resource":
        return str(fixture.hello(await call.form("name")))
    raise fixture.refuse(-32002, "Resource not found", {"uri": uri})


def build(options: argparse.Namespace, seen: Any) -> Any:
    server = Server("py-legacy", version="1.0.0", instructions="A fixture of the tests.")
    catalog, size = fixture.CATALOG, options.page_size

    def current() -> Any:
        return fixture.Call(server.request_context, seen)

    async def call_tool(request: Any) -> Any:
        return await fixture.call_tool(current(), request.params.name, request.params.arguments or {})

    async def get_prompt(request: Any) -> Any:
        words = await prompt(current(), request.params.name, request.params.arguments or {})
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=fixture.text(words))])

    async def read_resource(request: Any) -> Any:
        uri = str(request.params.uri)
        words = await resource(current(), uri)
        return fixture.Plain(contents=[{"uri": uri, "mimeType": "text/plain", "text": words}])

    async def complete(request: Any) -> Any:
        topics = [topic for topic in catalog["topics"] if topic.startswith(request.params.argument.value)]
        return types.CompleteResult(completion=types.Completion(values=topics, total=len(topics)))

    tools = catalog["tools"] + (catalog["badTools"] if options.bad_tools else [])
    server.request_handlers.update(
        {
            types.ListToolsRequest: page("tools", tools, size),
            types.CallToolRequest: call_tool,
            types.ListPromptsRequest: page("prompts", catalog["prompts"], size),
            types.GetPromptRequest: get_prompt,
            types.ListResourcesRequest: page("resources", catalog["resources"], size),
            types.ListResourceTemplatesRequest: page("resourceTemplates", catalog["resourceTemplates"], size),
            types.ReadResourceRequest: read_resource,
            types.CompleteRequest: complete,
        }
    )
    return server


class EventStreams:
    """HTTP+SSE, with the two members of the session manager that the front uses."""

    def __init__(self, server: Any, security_settings: Any) -> None:
        self.server = server
        extra = {} if security_settings is None else {"security_settings": security_settings}
        self.transport = sse.SseServerTransport("/messages/", **extra)

    @property
    def _server_instances(self) -> dict[Any, Any]:
        writers: dict[Any, Any] = self.transport._read_stream_writers
        return writers

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        yield

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["method"], scope["path"]:
            case "GET", "/sse":
                async with self.transport.connect_sse(scope, receive, send) as streams:
                    await self.server.run(*streams, self.server.create_initialization_options())
            case "POST", "/messages/":
                await self.transport.handle_post_message(scope, receive, send)
            case _, "/sse":
                await reply(send, 405, b"{}")
            case _:
                await reply(send, 404, b"{}")


class Front:
    """The ASGI application: routes, and notes every request that came in, in order."""

    def __init__(self, manager: Any, seen: Any) -> None:
        self.manager = manager
        self.paths = ("/sse", "/messages/") if isinstance(manager, EventStreams) else ("/mcp",)
        self.seen = seen
        self.http: deque[dict[str, Any]] = deque(maxlen=20_000)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["path"] == "/_observed":
            observed = {
                "http": list(self.http),
                "events": list(self.seen.events),
                "counters": dict(self.seen.counters),
                "sessions": len(self.manager._server_instances),
                "open": self._open_sessions(),
            }
            await reply(send, 200, json.dumps(observed).encode())
        elif scope["path"] == "/_forget":
            # As a restarted server would: it no longer knows the ids that it gave out.
            self.manager._server_instances.clear()
            await reply(send, 200, b"{}")
        elif scope["path"] in self.paths:
            await self.manager.handle_request(scope, await self._note(scope, receive), send)
        else:
            await reply(send, 404, b"{}")

    def _open_sessions(self) -> list[str]:
        # Some releases keep those that were ended by DELETE.
        known = self.manager._server_instances.items()
        return [str(session) for session, its in known if not getattr(its, "is_terminated", False)]

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.manager.run():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _note(self, scope: Scope, receive: Receive) -> Receive:
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        body, more = b"", scope["method"] == "POST"
        while more:
            part = await receive()
            if part["type"] == "http.disconnect":
                break
            body += part.get("body", b"")
            more = part.get("more_body", False)
        entry: dict[str, Any] = {
            "verb": scope["method"],
            "session": headers.get("mcp-session-id"),
            "version": headers.get("mcp-protocol-version"),
            "authorization": headers.get("authorization"),
            "lastEventId": headers.get("last-event-id"),
        }
        with contextlib.suppress(ValueError):
            entry["body"] = json.loads(body)
        self.http.append(entry)
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> dict[str, Any]:
            return waiting.pop() if waiting else await receive()

        return again


async def reply(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def manager_for(options: argparse.Namespace, seen: Any) -> Any:
    extra: dict[str, Any] = {}
    protection = None
    if fixture.RELEASE >= (1, 26):
        # What the SDK's own FastMCP does on loopback since then.
        protection = security.TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=["127.0.0.1:*", "localhost:*", "[::1]:*"],
            allowed_origins=["http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*"],
        )
        extra["security_settings"] = protection
    if options.transport == "sse":
        return EventStreams(build(options, seen), protection)
    if options.session_idle:
        extra["session_idle_timeout"] = options.session_idle
    if options.retry_ms:
        extra["retry_interval"] = options.retry_ms
    return managers.StreamableHTTPSessionManager(
        app=build(options, seen),
        event_store=MemoryEvents() if options.event_store else None,
        json_response=options.json_response,
        stateless=options.stateless,
        **extra,
    )


class Announcing(uvicorn.Server):  # type: ignore[misc]
    """Says which port it got, once it accepts."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        for sock in sockets or []:
            print(f"LISTENING {sock.getsockname()[1]}", flush=True)


async def converse(options: argparse.Namespace) -> None:
    server = build(options, fixture.Seen(options.events))
    async with stdio.stdio_server() as streams:
        await server.run(*streams, server.create_initialization_options())


async def serve(options: argparse.Namespace) -> None:
    seen = fixture.Seen(options.events)
    front = Front(manager_for(options, seen), seen)
    sock = socket.create_server((options.host, options.port), backlog=2048)
    await Announcing(uvicorn.Config(front, log_level="warning", access_log=False, lifespan="on")).serve(
        sockets=[sock]
    )


def end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--json-response", action="store_true")
    parser.add_argument("--stateless", action="store_true")
    parser.add_argument("--event-store", action="store_true")
    parser.add_argument("--bad-tools", action="store_true")
    parser.add_argument("--page-size", type=int, default=0)
    parser.add_argument("--session-idle", type=float, default=0, help="seconds; 1.30 only")
    parser.add_argument("--retry-ms", type=int, default=0, help="with --event-store; since 1.26")
    parser.add_argument("--transport", choices=["streamable-http", "sse", "stdio"], default="streamable-http")
    parser.add_argument("--events", metavar="FILE")
    options = parser.parse_args()
    if options.transport == "stdio":
        asyncio.run(converse(options))
        return
    threading.Thread(target=end_with_parent, daemon=True).start()
    asyncio.run(serve(options))


if __name__ == "__main__":
    main()
