"""A modern server on the Python SDK 2.x: what a legacy one is upgraded to.

    python py_modern.py --port 0 [--modern-only]
    python py_modern.py --transport stdio

It serves both eras, as that SDK does, unless told otherwise. Prints `LISTENING <port>` once it accepts, ends when
its stdin closes. `GET /_observed` tells which requests came, with the `requestState` of each.
"""

import argparse
import json
import os
import socket
import sys
import threading
import warnings
from typing import Annotated, Any

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Resolve
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

MODERN = "2026-07-28"


class Name(BaseModel):
    """What is asked for."""

    name: str


class Bare(BaseModel):
    """A form whose schema is what the legacy fixtures send: no titles."""

    @classmethod
    def __get_pydantic_json_schema__(cls, _: Any, __: Any) -> dict[str, Any]:
        names = list(cls.model_fields)
        return {
            "type": "object",
            "properties": {name: {"type": "string"} for name in names},
            "required": names,
        }


class First(Bare):
    first: str


class Last(Bare):
    last: str


async def ask_for_first() -> Elicit[First]:
    return Elicit("What is your first name?", First)


async def ask_for_last() -> Elicit[Last]:
    return Elicit("What is your last name?", Last)


async def ask_for_name() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


def build() -> MCPServer:
    server = MCPServer("modern-fixture", version="2.0.0")

    @server.tool()
    def add(a: float, b: float) -> str:
        """Adds two numbers."""
        return f"{a + b:g} says the modern one"

    @server.tool()
    async def ask_name(answer: Annotated[Name, Resolve(ask_for_name)]) -> str:
        """Asks for a name."""
        return f"Hello {answer.name}, says the modern one"

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def ask_two_serial(
        first: Annotated[First, Resolve(ask_for_first)], last: Annotated[Last, Resolve(ask_for_last)]
    ) -> str:
        """Asks what the legacy tool of this name asks."""
        return f"{first.first} {last.last}, says the modern one"

    @server.tool()
    def deploy(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
        """Has clients repeat where to, in a header."""
        return f"Deployed to {region}"

    @server.tool()
    async def progress(steps: int, ctx: Context) -> str:
        """Sends progress."""
        for step in range(steps):
            await ctx.report_progress(step + 1, steps)
        return "done"

    @server.tool()
    async def slow(ctx: Context) -> str:
        """Says that it has begun, and ends only if it is cancelled."""
        await ctx.report_progress(1, 2)
        await anyio.sleep(60)
        return "too late"

    @server.tool()
    async def logs(words: str, ctx: Context) -> str:
        """Logs these words."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            await ctx.info(words)
        return "done"

    @server.tool()
    async def touch(ctx: Context) -> str:
        """Says that the tools have changed."""
        await ctx.notify_tools_changed()
        return "touched"

    @server.tool()
    async def call_back(ctx: Context) -> str:
        """Asks as legacy tools do, which this SDK can carry out for legacy clients only."""
        answer = await ctx.elicit("What is your name?", Name)
        return f"Hello {answer.data.name}" if answer.action == "accept" else answer.action

    @server.tool()
    def crash() -> str:
        """Ends the process."""
        os._exit(3)

    return server


class Front:
    """Notes what comes, and refuses legacy requests if so told."""

    def __init__(self, app: Any, *, modern_only: bool) -> None:
        self._app = app
        self._modern_only = modern_only
        self._seen: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] == "/_observed":
            await _reply(send, 200, self._seen)
            return
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        body, more = b"", scope["method"] == "POST"
        while more:
            part = await receive()
            body, more = body + part.get("body", b""), part.get("more_body", False)
        message = json.loads(body) if body else {}
        state = message.get("params", {}).get("requestState")
        self._seen.append(
            {"method": message.get("method", scope["method"]), "state": state, "headers": headers}
        )
        if self._modern_only and headers.get("mcp-protocol-version") != MODERN:
            data = {"supported": [MODERN], "requested": headers.get("mcp-protocol-version", "")}
            error = {"code": -32022, "message": "Unsupported protocol version", "data": data}
            await _reply(send, 400, {"jsonrpc": "2.0", "id": message.get("id"), "error": error})
            return
        parts = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Any:
            return parts.pop() if parts else await receive()

        await self._app(scope, again, send)


async def _reply(send: Any, status: int, value: Any) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(value).encode()})


class Announcing(uvicorn.Server):
    """Says which port it got, once it accepts."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        for sock in sockets or []:
            print(f"LISTENING {sock.getsockname()[1]}", flush=True)


def end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--modern-only", action="store_true")
    parser.add_argument("--transport", choices=["http", "stdio"], default="http")
    options = parser.parse_args()
    if options.transport == "stdio":
        build().run("stdio")
        return
    threading.Thread(target=end_with_parent, daemon=True).start()
    front = Front(build().streamable_http_app(), modern_only=options.modern_only)
    sock = socket.create_server(("127.0.0.1", options.port), backlog=2048)
    Announcing(uvicorn.Config(front, log_level="warning", access_log=False, lifespan="on")).run(
        sockets=[sock]
    )


if __name__ == "__main__":
    main()
