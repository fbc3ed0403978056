"""A modern MCP client (2026-07-28) in raw HTTP: stateless requests, and the loop that answers questions.

It knows no sessions, opens no stream to listen on, and cannot tell a gateway from a modern server.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, Literal, TypeAlias

import aiohttp

VERSION: Final = "2026-07-28"
# The SDK clients give up after as many.
MAX_ROUNDS: Final = 10

Json: TypeAlias = dict[str, Any]
# (key, {"method": ..., "params": ...}) -> what becomes inputResponses[key]
Answerer: TypeAlias = Callable[[str, Json], Awaitable[Json]]


@dataclass(frozen=True, slots=True)
class Round:
    """One HTTP request or response of the client, for whoever narrates it."""

    what: Literal["sent", "received"]
    method: str
    message: Json


class CallFailed(Exception):
    """The answer was a JSON-RPC error, or no MCP answer at all."""


class ModernClient:
    """`answer` is called for every question; the client itself keeps nothing between two requests."""

    def __init__(
        self,
        http: aiohttp.ClientSession,
        url: str,
        *,
        answer: Answerer,
        witness: Callable[[Round], None] = lambda _: None,
    ) -> None:
        self._http = http
        self._url = url
        self._answer = answer
        self._witness = witness
        self._ids = count()

    async def call_tool(self, name: str, arguments: Json) -> Json:
        """Call a tool, and answer what it asks until it has a result."""
        call: Json = {"name": name, "arguments": arguments}
        params = call
        for _ in range(MAX_ROUNDS):
            result = await self.request("tools/call", params, name=name)
            if result.get("resultType") != "input_required":
                return result
            asks: dict[str, Json] = result.get("inputRequests") or {}
            params = {
                **call,
                "inputResponses": {key: await self._answer(key, ask) for key, ask in asks.items()},
            }
            if "requestState" in result:
                params["requestState"] = result["requestState"]
        raise CallFailed(f"{name} still asks after {MAX_ROUNDS} rounds")

    async def request(self, method: str, params: Json | None = None, *, name: str | None = None) -> Json:
        """One request, complete in itself: version, capabilities and all."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": "demo-modern-client", "version": "1.0.0"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "sampling": {}},
        }
        body = {
            "jsonrpc": "2.0",
            "id": next(self._ids),
            "method": method,
            "params": {**(params or {}), "_meta": meta},
        }
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSION,
            "Mcp-Method": method,
            **({"Mcp-Name": name} if name is not None else {}),
        }
        self._witness(Round("sent", method, body))
        try:
            async with self._http.post(self._url, json=body, headers=headers) as response:
                reply = await _read_reply(response)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise CallFailed(f"{method}: {type(error).__name__}: {error}") from error
        if reply is None or reply.get("id") != body["id"]:
            raise CallFailed(f"{method}: HTTP {response.status} without an answer to this request")
        self._witness(Round("received", method, reply))
        if "error" in reply:
            raise CallFailed(f"{method}: {reply['error'].get('message')} ({reply['error'].get('code')})")
        result: Json = reply["result"]
        return result


async def _read_reply(response: aiohttp.ClientResponse) -> Json | None:
    """The one JSON-RPC response: the body, or the last event of a stream that may carry notifications."""
    body = await response.read()
    if response.content_type != "text/event-stream":
        return _object(body)
    reply = None
    for event in body.replace(b"\r\n", b"\n").split(b"\n\n"):
        data = b"\n".join(line[5:].lstrip(b" ") for line in event.split(b"\n") if line.startswith(b"data:"))
        message = _object(data) if data else None
        if message is not None and "method" not in message:
            reply = message
    return reply


def _object(data: bytes) -> Json | None:
    value = json.loads(data)
    return value if isinstance(value, dict) else None
