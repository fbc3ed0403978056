"""Servers over stdio and HTTP+SSE that say whatever a call tells them to; what they are told is the test's affair."""

import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.support.gateways import UPSTREAM, Gateways, Served
from tests.support.scripted import Turn, text_result
from tests.support.scripted_sse import ScriptedSse, accept, respond

PROGRAM = Path(__file__).parents[1] / "servers" / "stdio_hostile.py"
TRANSPORTS = ("stdio", "sse")
EVENT_BYTES = 64 * 1024
"""What a message may be long; small, so that a giant is soon made."""
_CHUNK = b"x" * 65536


@contextlib.asynccontextmanager
async def behind(gateway: Gateways, transport: str, **upstream: Any) -> AsyncIterator[Served]:
    """A gateway before such a server."""
    settings = {"listen": "127.0.0.1:0", "limits": {"event": EVENT_BYTES}}
    options = {"call_timeout": "10s", "sessions": {"mode": "pooled"}, **upstream}
    if transport == "stdio":
        command = [sys.executable, "-I", "-S", str(PROGRAM)]
        yield await gateway.start({**settings, "upstreams": {UPSTREAM: {"command": command, **options}}})
        return
    async with ScriptedSse() as server:
        server.on["tools/call"] = _obey
        whole = {"url": server.url, "transport": "sse", **options}
        yield await gateway.start({**settings, "upstreams": {UPSTREAM: whole}})


async def _obey(turn: Turn) -> None:
    """As `stdio_hostile.py` does."""
    server = turn.server
    assert isinstance(server, ScriptedSse)
    await accept(turn)
    arguments = turn.message["params"].get("arguments", {})
    stream = server.stream_of(turn)
    assert stream is not None
    for _ in range(arguments.get("times", 1)):
        for message in arguments.get("say", ()):
            await stream.event(message)
    while arguments.get("endless") and not stream.writer.is_closing():
        await stream.chunk(_CHUNK)
    if stream.writer.is_closing():
        return
    told = await server.wait_for_answer(arguments["wait"]) if "wait" in arguments else "done"
    if server.stream_of(turn) is not None:
        await respond(turn, text_result(told if isinstance(told, str) else json.dumps(told)))
