"""The requests that the load is made of, as bytes: modern ones, and legacy ones that mean the same."""

import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from tests.bench.http1 import Response

MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
ASK_MARKER: Final = b"elicitation/create"

Json = dict[str, Any]

_META: Final = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint, and the era it is spoken to in."""

    url: str
    is_modern: bool

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or "127.0.0.1"

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def post(self, body: Json, headers: dict[str, str]) -> bytes:
        """A whole HTTP request."""
        data = json.dumps(body, separators=(",", ":")).encode()
        lines = [
            f"POST {urlsplit(self.url).path} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            "User-Agent: bench",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            *(f"{name}: {value}" for name, value in headers.items()),
            f"Content-Length: {len(data)}",
        ]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def modern_call(target: Target, request_id: int, tool: str, arguments: Json, **more: Any) -> bytes:
    """`tools/call` with nothing to remember between two of them; `more` is the retry's part."""
    params = {"name": tool, "arguments": arguments, **more, "_meta": _META}
    body = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}
    return target.post(body, {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": tool})


def legacy_post(target: Target, session: str | None, body: Json) -> bytes:
    """Any message in a legacy session."""
    headers = {"MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": session} if session is not None else {}
    return target.post({"jsonrpc": "2.0", **body}, headers)


def legacy_call(target: Target, session: str, request_id: int, tool: str, arguments: Json) -> bytes:
    """`tools/call` in a session."""
    params = {"name": tool, "arguments": arguments}
    return legacy_post(target, session, {"id": request_id, "method": "tools/call", "params": params})


def initialize(target: Target) -> bytes:
    """The first message of a legacy session."""
    client = {"name": "bench", "version": "1"}
    params = {"protocolVersion": LEGACY, "capabilities": {"elicitation": {}}, "clientInfo": client}
    return legacy_post(target, None, {"id": 0, "method": "initialize", "params": params})


def session_of(response: Response) -> str:
    """The id that `initialize` was answered with."""
    for line in response.head.split(b"\r\n"):
        if line.startswith(b"mcp-session-id:"):
            return line.split(b":", 1)[1].strip().decode()
    raise ConnectionError(f"no session: {response.status} {response.body[:200]!r}")


def reply_of(response: Response) -> Json:
    """The JSON-RPC response, from a JSON body or from the last event of a stream."""
    data = response.body
    if b"text/event-stream" in response.head:
        data = data[data.rindex(b"data:") + 5 :]
    reply: Json = json.loads(data)
    return reply


def text_of(response: Response) -> str:
    """The text of a tool's result; anything else is a failure that says what came."""
    try:
        return str(reply_of(response)["result"]["content"][0]["text"])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise ConnectionError(f"not a tool result: {response.status} {response.body[:300]!r}") from error
