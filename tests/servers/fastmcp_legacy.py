"""A legacy server on fastmcp, written as its users write them: decorators, and a context that asks.

    python fastmcp_legacy.py --port 0 [--stateless] [--json-response]
    python fastmcp_legacy.py --transport sse --port 0
    python fastmcp_legacy.py --transport stdio

Prints `LISTENING <port>` once it accepts, ends when its stdin closes.
"""

import argparse
import asyncio
import importlib
import os
import socket
import sys
import threading
from dataclasses import dataclass
from typing import Any

fastmcp: Any = importlib.import_module("fastmcp")
uvicorn: Any = importlib.import_module("uvicorn")
Context: Any = fastmcp.Context

mcp: Any = fastmcp.FastMCP("fastmcp-legacy")


@dataclass
class Name:
    """One field, named."""

    name: str


@dataclass
class First:
    """The first of two."""

    first: str


@dataclass
class Last:
    """The second of two."""

    last: str


@mcp.tool  # type: ignore[untyped-decorator, unused-ignore]
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@mcp.tool  # type: ignore[untyped-decorator, unused-ignore]
def echo(text: str) -> str:
    """Repeats."""
    return text


@mcp.tool  # type: ignore[untyped-decorator, unused-ignore]
def fail() -> str:
    """Fails."""
    raise ValueError("this tool always fails")


@mcp.tool  # type: ignore[untyped-decorator, unused-ignore]
async def ask_name(ctx: Context) -> str:
    """Asks with a dataclass."""
    return _hello(await ctx.elicit("What is your name?", response_type=Name), "name")


@mcp.tool  # type: ignore[untyped-decorator, unused-ignore]
async def ask_scalar(ctx: Context) -> str:
    """Asks for a bare string: fastmcp wraps it into one property, `value`."""
    answer = await ctx.elicit("What is your name?", response_type=str)
    return f"Hello {answer.data}" if answer.action == "accept" else str(answer.action)


@mcp.tool  # type: ignore[untyped-decorator, unused-ignore]
async def ask_two_serial(ctx: Context) -> str:
    """Asks twice, one after the other."""
    first = await ctx.elicit("First?", response_type=First)
    last = await ctx.elicit("Last?", response_type=Last)
    return f"{first.data.first} {last.data.last}"


@mcp.tool  # type: ignore[untyped-decorator, unused-ignore]
async def sample(prompt: str, ctx: Context) -> str:
    """Asks the client's model."""
    return str((await ctx.sample(prompt)).text)


@mcp.tool  # type: ignore[untyped-decorator, unused-ignore]
async def roots(ctx: Context) -> str:
    """Asks for the client's folders."""
    return " ".join(str(root.uri) for root in await ctx.list_roots())


@mcp.tool  # type: ignore[untyped-decorator, unused-ignore]
async def progress(steps: int, ctx: Context) -> str:
    """Reports progress, and logs."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps)
    await ctx.warning("half way")
    return f"{steps} steps"


@mcp.prompt  # type: ignore[untyped-decorator, unused-ignore]
def simple(topic: str) -> str:
    """A fixed prompt."""
    return f"Write about {topic}."


@mcp.resource("test://static/hello")  # type: ignore[untyped-decorator, unused-ignore]
def hello() -> str:
    """A fixed text."""
    return "Hello from a resource"


@mcp.resource("test://item/{number}")  # type: ignore[untyped-decorator, unused-ignore]
def item(number: str) -> str:
    """One of many."""
    return f"Item {number}"


def _hello(answer: Any, field: str) -> str:
    return f"Hello {getattr(answer.data, field)}" if answer.action == "accept" else str(answer.action)


class Announcing(uvicorn.Server):  # type: ignore[misc]
    """Says which port it got, once it accepts."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        for sock in sockets or []:
            print(f"LISTENING {sock.getsockname()[1]}", flush=True)


async def serve(options: argparse.Namespace) -> None:
    if options.transport == "sse":
        app = mcp.http_app(path="/sse", transport="sse")
    else:
        app = mcp.http_app(path="/mcp", json_response=options.json_response, stateless_http=options.stateless)
    sock = socket.create_server(("127.0.0.1", options.port), backlog=512)
    await Announcing(uvicorn.Config(app, log_level="warning", access_log=False)).serve(sockets=[sock])


def end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--json-response", action="store_true")
    parser.add_argument("--stateless", action="store_true")
    parser.add_argument("--transport", choices=["streamable-http", "sse", "stdio"], default="streamable-http")
    options = parser.parse_args()
    if options.transport == "stdio":
        mcp.run(transport="stdio", show_banner=False)
        return
    threading.Thread(target=end_with_parent, daemon=True).start()
    asyncio.run(serve(options))


if __name__ == "__main__":
    main()
