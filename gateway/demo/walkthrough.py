"""`holdfast demo`: a legacy server, the gateway and a modern client on loopback, and what they say.

It uses the gateway as anybody would, through its URL, and knows nothing of its inside.
"""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import aiohttp

from gateway.app import Gateway
from gateway.demo import modern_client
from gateway.demo.legacy_server import LegacyServer
from gateway.demo.modern_client import CallFailed, Json, ModernClient
from gateway.demo.narrator import Narrator, result_text
from gateway.demo.terminal import Terminal
from gateway.settings.load import ONLY_UPSTREAM, from_upstream_url
from gateway.telemetry.logs import configure

# A loopback round takes milliseconds; a human's thinking is never inside one.
_ROUND_SECONDS: Final = 15.0
_INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True)
class Chapter:
    """One call of the walk."""

    title: str
    tool: str
    arguments: Json


CHAPTERS: Final = (
    Chapter(
        "A tool that asks a question (elicitation)", "book_table", {"restaurant": "Chez Ada", "guests": 2}
    ),
    Chapter(
        "A tool that borrows the client's model (sampling)",
        "summarize",
        {"text": "A holdfast is a knot that grips a post and grips the harder the more it is pulled."},
    ),
    Chapter("A tool that asks twice, the second question about the first answer", "plan_trip", {"days": 3}),
)


class _WalkFailed(Exception):
    """The demo did not show what it is there to show."""


def run(*, serve: bool, interactive: bool | None = None) -> int:
    """Walk through the three chapters, or with `serve` stay up for other clients. Returns the exit code."""
    if interactive is None:
        interactive = sys.stdin.isatty() and sys.stdout.isatty()
    # The walk tells the story itself; only what went wrong may interrupt it.
    configure("error", "console", sys.stderr)
    try:
        asyncio.run(_serve() if serve else _walk(is_interactive=interactive))
    except (_WalkFailed, CallFailed, OSError) as error:
        print(f"demo failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return _INTERRUPTED
    return 0


async def _walk(*, is_interactive: bool) -> None:
    terminal = Terminal()
    narrator = Narrator(terminal, is_interactive=is_interactive)
    legacy = LegacyServer(witness=narrator.heard)
    async with _running(legacy) as url, aiohttp.ClientSession(timeout=_timeout()) as http:
        _introduce(terminal, legacy.url, url)
        client = ModernClient(http, url, answer=narrator.answer, witness=narrator.saw)
        for number, chapter in enumerate(CHAPTERS, start=1):
            terminal.title(f"{number}  {chapter.title}")
            result = await client.call_tool(chapter.tool, chapter.arguments)
            if result.get("resultType") != "complete" or result.get("isError"):
                raise _WalkFailed(f"{chapter.tool}: {result_text(result) or result}")
    if not narrator.asks:
        raise _WalkFailed("no question of the legacy server reached the client")
    terminal.line()
    told = f"{len(CHAPTERS)} calls, {narrator.asks} questions, {narrator.rounds} rounds"
    terminal.line(f"✓ {told}. Neither side was changed.", "green")
    terminal.line("Your own server: holdfast serve --upstream http://127.0.0.1:9000/mcp", "dim")


async def _serve() -> None:
    terminal = Terminal()
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    # Not on Windows; there Ctrl-C arrives as KeyboardInterrupt all the same.
    with contextlib.suppress(NotImplementedError):
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signal_number, stopped.set)
    legacy = LegacyServer()
    async with _running(legacy) as url:
        _introduce(terminal, legacy.url, url)
        terminal.line()
        terminal.line("Call a tool that asks; the answer is an InputRequiredResult:")
        terminal.line()
        for line in curl_example(url):
            terminal.line(line)
        terminal.line()
        terminal.line("Tools: echo, book_table, summarize, plan_trip. Ctrl-C stops both.", "dim")
        await stopped.wait()
    terminal.line("stopped", "dim")


@asynccontextmanager
async def _running(legacy: LegacyServer) -> AsyncIterator[str]:
    """The legacy server and the gateway before it, both on free loopback ports; yields the gateway's URL."""
    await legacy.start()
    try:
        gateway = Gateway(from_upstream_url(legacy.url, listen="127.0.0.1:0"))
        await gateway.start()
        try:
            yield gateway.url(ONLY_UPSTREAM)
        finally:
            await gateway.stop()
    finally:
        await legacy.stop()


def _introduce(terminal: Terminal, legacy_url: str, url: str) -> None:
    terminal.line("Holdfast demo", "bold")
    terminal.line()
    terminal.step("modern client", "2026-07-28: stateless, cannot be called back", "blue")
    terminal.step("holdfast", url, "bold")
    terminal.step("legacy server", f"{legacy_url}   sessions, SSE, asks in mid-call", "magenta")


def _timeout() -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=_ROUND_SECONDS)


def curl_example(url: str) -> list[str]:
    """A modern request that anybody can send, as lines of a shell command."""
    chapter = CHAPTERS[0]
    meta = {
        "io.modelcontextprotocol/protocolVersion": modern_client.VERSION,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
    params = {"name": chapter.tool, "arguments": chapter.arguments, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return [
        f"curl -sS {url} \\",
        "  -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \\",
        f"  -H 'MCP-Protocol-Version: {modern_client.VERSION}' -H 'Mcp-Method: tools/call' \\",
        f"  -H 'Mcp-Name: {chapter.tool}' \\",
        f"  -d '{json.dumps(body)}'",
    ]
