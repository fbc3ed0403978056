"""The legacy server that the official conformance suite meets through the gateway: Python SDK 1.x, low level.

    python conformance_legacy.py [--transport streamable-http|sse|stdio] [--port 0]

Has what the suite's scenarios for 2026-07-28 want of a server, tasks excepted, in the words of 2025-11-25. It
asks on the call's own stream, on the standing one, and on both at once. Over HTTP it prints `LISTENING <port>`
once it accepts, and ends when its stdin closes; over stdio it is a plain stdio server.
"""

import argparse
import asyncio
import contextlib
import importlib
import json
import os
import re
import socket
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

types: Any = importlib.import_module("mcp.types")
lowlevel: Any = importlib.import_module("mcp.server.lowlevel")
messages: Any = importlib.import_module("mcp.shared.message")
McpError: Any = importlib.import_module("mcp.shared.exceptions").McpError
managers: Any = importlib.import_module("mcp.server.streamable_http_manager")
uvicorn: Any = importlib.import_module("uvicorn")

Json = dict[str, Any]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

CATALOG: Json = json.loads((Path(__file__).parent / "conformance.json").read_text("utf-8"))
KEY_HINT = "dev.holdfast/inputKey"
TEMPLATE = re.compile(r"test://template/([^/]+)/data")
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Plain:
    """Lets the SDK send a request that its own types do not have."""

    def __init__(self, **members: Any) -> None:
        self.members = members

    def model_dump(self, **_: Any) -> Json:
        return self.members


class Fixture(lowlevel.Server):  # type: ignore[misc]
    """Knows its sessions, so that a change can be told to all of them."""

    def __init__(self) -> None:
        super().__init__("conformance-legacy", version="1.0.0", instructions="A fixture of the tests.")
        self.sessions: weakref.WeakSet[Any] = weakref.WeakSet()
        self.extras: set[str] = set()

    def create_initialization_options(self, *_: Any, **__: Any) -> Any:
        changes = lowlevel.NotificationOptions(tools_changed=True, prompts_changed=True)
        return super().create_initialization_options(changes, {})

    async def _handle_message(self, message: Any, session: Any, *rest: Any) -> None:
        self.sessions.add(session)
        await super()._handle_message(message, session, *rest)

    async def change(self, extra: str, tell: str) -> str:
        self.extras ^= {extra}
        for session in list(self.sessions):
            with contextlib.suppress(Exception):  # a session that has ended hears nothing
                await getattr(session, tell)()
        return "Changed."


class Call:
    """One request being served: how it asks, and on which stream."""

    def __init__(self, server: Fixture) -> None:
        self.server = server
        self.context = server.request_context
        self.session = self.context.session

    def can(self, **ability: Any) -> bool:
        return bool(self.session.check_client_capability(types.ClientCapabilities(**ability)))

    async def ask(self, method: str, key: str, result: Any, *, related: bool) -> Any:
        """Ask what the catalogue has under `key`, and hint that it be called so."""
        params = {**CATALOG["asks"].get(key, {}), "_meta": {KEY_HINT: key}}
        place = messages.ServerMessageMetadata(related_request_id=self.context.request_id)
        return await self.session.send_request(
            Plain(method=method, params=params), result, metadata=place if related else None
        )

    async def elicit(self, key: str, *, related: bool = True) -> Any:
        answer = await self.ask("elicitation/create", key, types.ElicitResult, related=related)
        if answer.action != "accept":
            raise ValueError(f"The user chose to {answer.action}")
        return next(iter(answer.content.values()))

    async def sample(self, key: str, *, related: bool = True) -> str:
        answer = await self.ask("sampling/createMessage", key, types.CreateMessageResult, related=related)
        return str(answer.content.text)

    async def roots(self) -> str:
        # As the SDK's own `list_roots` does: never on the call's stream.
        answer = await self.ask("roots/list", "client_roots", types.ListRootsResult, related=False)
        return " ".join(str(root.uri) for root in answer.roots)

    async def log(self, level: str, data: str) -> None:
        await self.session.send_log_message(level, data, "fixture", self.context.request_id)


# --- tools ---------------------------------------------------------------------------------------------


async def error_handling(_: Call) -> str:
    raise ValueError("This tool intentionally returns an error for testing")


async def tool_with_progress(call: Call) -> str:
    token = call.context.meta.progressToken if call.context.meta else None
    for progress in (0, 50, 100):
        if token is not None:
            await call.session.send_progress_notification(
                token, progress, 100, related_request_id=str(call.context.request_id)
            )
        await asyncio.sleep(0.05)
    return "Done."


async def missing_capability(call: Call) -> str:
    return await call.sample("capital_question")


async def streaming_elicitation(call: Call) -> str:
    await call.log("info", "about to ask")
    return f"Hello, {await call.elicit('user_name')}!"


async def logging_tool(call: Call) -> str:
    for level in LEVELS:
        await call.log(level, f"at {level}")
    return "Logged."


async def trigger_tool_change(call: Call) -> str:
    return await call.server.change("tools", "send_tool_list_changed")


async def trigger_prompt_change(call: Call) -> str:
    return await call.server.change("prompts", "send_prompt_list_changed")


async def input_required_result_elicitation(call: Call) -> str:
    return f"Hello, {await call.elicit('user_name')}!"


async def input_required_result_sampling(call: Call) -> str:
    return await call.sample("capital_question", related=False)


async def input_required_result_list_roots(call: Call) -> str:
    return await call.roots()


async def input_required_result_request_state(call: Call) -> str:
    return f"state-ok: {await call.elicit('confirm', related=False)}"


async def input_required_result_tampered_state(call: Call) -> str:
    return f"state-ok: {await call.elicit('confirm')}"


async def input_required_result_multiple_inputs(call: Call) -> str:
    # All at once, on both streams.
    return " ".join(
        await asyncio.gather(call.elicit("user_name"), call.sample("greeting", related=False), call.roots())
    )


async def input_required_result_multi_round(call: Call) -> str:
    name = await call.elicit("step1")
    return f"{name} likes {await call.elicit('step2', related=False)}"


async def input_required_result_capabilities(call: Call) -> str:
    asks = []
    if call.can(elicitation=types.ElicitationCapability()):
        asks.append(call.elicit("user_name"))
    if call.can(sampling=types.SamplingCapability()):
        asks.append(call.sample("greeting"))
    return " ".join(await asyncio.gather(*asks))


# --- the server ------------------------------------------------------------------------------------------


def text(words: str) -> Any:
    return types.TextContent(type="text", text=words)


def refuse(code: int, message: str, data: Any = None) -> Exception:
    error: Exception = McpError(types.ErrorData(code=code, message=message, data=data))
    return error


async def prompt_blocks(call: Call, name: str, given: dict[str, str]) -> list[Any]:
    if name in CATALOG["messages"]:
        return list(CATALOG["messages"][name])
    match name:
        case "test_prompt_with_arguments":
            return [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            words = "Embedded resource content for testing."
            resource = {"uri": given["resourceUri"], "mimeType": "text/plain", "text": words}
            shown = {"type": "resource", "resource": resource}
            return [shown, text("Please process the embedded resource above.")]
        case "test_input_required_result_prompt":
            return [text(f"In the context of {await call.elicit('user_context', related=False)}.")]
    raise refuse(-32602, f"Unknown prompt: {name}")


def contents_of(uri: str) -> Json:
    found: Json | None = CATALOG["contents"].get(uri)
    if found is not None:
        return found
    match = TEMPLATE.fullmatch(uri)
    if match is None:
        raise refuse(-32002, "Resource not found", {"uri": uri})
    data = {"id": match[1], "templateTest": True, "data": f"Data for ID: {match[1]}"}
    return {"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}


def build() -> Fixture:
    server = Fixture()

    def listed(kind: str, model: Any, extra: str | None = None) -> list[Any]:
        entries = CATALOG[kind] + ([CATALOG[extra]] if extra and kind in server.extras else [])
        return [model.model_validate(entry) for entry in entries]

    @server.list_tools()  # type: ignore[untyped-decorator]
    async def _tools() -> Any:
        return listed("tools", types.Tool, "extraTool")

    @server.call_tool()  # type: ignore[untyped-decorator]
    async def _call(name: str, _arguments: Json) -> Any:
        if name in CATALOG["results"]:
            return types.CallToolResult.model_validate({"content": CATALOG["results"][name]})
        return [text(await globals()[name.removeprefix("test_")](Call(server)))]

    @server.list_prompts()  # type: ignore[untyped-decorator]
    async def _prompts() -> Any:
        return listed("prompts", types.Prompt, "extraPrompt")

    @server.get_prompt()  # type: ignore[untyped-decorator]
    async def _prompt(name: str, given: dict[str, str] | None) -> Any:
        blocks = await prompt_blocks(Call(server), name, given or {})
        return types.GetPromptResult.model_validate(
            {"messages": [{"role": "user", "content": block} for block in blocks]}
        )

    @server.list_resources()  # type: ignore[untyped-decorator]
    async def _resources() -> Any:
        return listed("resources", types.Resource)

    @server.list_resource_templates()  # type: ignore[untyped-decorator]
    async def _templates() -> Any:
        return listed("resourceTemplates", types.ResourceTemplate)

    @server.completion()  # type: ignore[untyped-decorator]
    async def _complete(_reference: Any, argument: Any, _context: Any) -> Any:
        values = [word for word in CATALOG["completions"] if word.startswith(argument.value)]
        return types.Completion(values=values, total=len(values), hasMore=False)

    @server.set_logging_level()  # type: ignore[untyped-decorator]
    async def _level(_level: Any) -> None:
        """Taken and forgotten: this server always logs everything, as the worst ones do."""

    async def read(request: Any) -> Any:
        uri = str(request.params.uri)
        return types.ServerResult(types.ReadResourceResult.model_validate({"contents": [contents_of(uri)]}))

    server.request_handlers[types.ReadResourceRequest] = read
    return server


# --- transports --------------------------------------------------------------------------------------------


class Announcing(uvicorn.Server):  # type: ignore[misc]
    """Says which port it got, once it accepts."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        for sock in sockets or []:
            print(f"LISTENING {sock.getsockname()[1]}", flush=True)


async def refused(send: Send, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def streamable_http(server: Fixture) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    manager = managers.StreamableHTTPSessionManager(app=server)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            async with manager.run():
                await send({"type": "lifespan.startup.complete"})
                await receive()
            await send({"type": "lifespan.shutdown.complete"})
        elif scope["path"] == "/mcp":
            await manager.handle_request(scope, receive, send)
        else:
            await refused(send, 404)

    return application


def http_sse(server: Fixture) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    transport: Any = importlib.import_module("mcp.server.sse").SseServerTransport("/messages/")

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        if (scope["path"], scope["method"]) == ("/sse", "GET"):
            async with transport.connect_sse(scope, receive, send) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
        elif scope["path"].startswith("/messages/"):
            await transport.handle_post_message(scope, receive, send)
        else:
            await refused(send, 405 if scope["path"] == "/sse" else 404)

    return application


async def serve(options: argparse.Namespace) -> None:
    server = build()
    if options.transport == "stdio":
        async with importlib.import_module("mcp.server.stdio").stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        return
    threading.Thread(target=end_with_parent, daemon=True).start()
    is_streamable = options.transport == "streamable-http"
    config = uvicorn.Config(
        streamable_http(server) if is_streamable else http_sse(server),
        log_level="warning",
        access_log=False,
        lifespan="on" if is_streamable else "off",
    )
    sock = socket.create_server((options.host, options.port), backlog=2048)
    await Announcing(config).serve(sockets=[sock])


def end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--transport", choices=("streamable-http", "sse", "stdio"), default="streamable-http")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
