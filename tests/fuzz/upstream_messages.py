"""Malformed messages of legacy servers: everything they may say, spoilt as JSON, as bytes, or as an event stream."""

import copy
import random
from typing import Any, Final

from tests.fuzz.mutation import dump, odd, spoil_bytes, spoil_json

_SCHEMA: Final = {
    "type": "object",
    "properties": {"name": {"type": "string", "pattern": "^a+$"}, "n": {"type": "integer", "minimum": 1}},
    "required": ["name"],
}
_TOOL: Final = {
    "name": "echo",
    "description": "d",
    "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
    "annotations": {"readOnlyHint": True},
    "execution": {"taskSupport": "optional"},
}


def _request(method: str, **params: Any) -> Any:
    return {"jsonrpc": "2.0", "id": 3, "method": method, "params": params}


def _notice(method: str, **params: Any) -> Any:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def _result(**result: Any) -> Any:
    return {"jsonrpc": "2.0", "id": "call", "result": result}


def _error(code: int, data: Any = None) -> Any:
    return {"jsonrpc": "2.0", "id": "call", "error": {"code": code, "message": "no", "data": data}}


_URLS: Final = {
    "elicitations": [{"mode": "url", "message": "m", "url": "https://a.example", "elicitationId": "e"}]
}
SAID: Final[tuple[Any, ...]] = (
    _request(
        "elicitation/create", message="m", requestedSchema=_SCHEMA, _meta={"dev.holdfast/inputKey": "k"}
    ),
    _request("elicitation/create", mode="url", message="m", url="https://a.example/x", elicitationId="e"),
    _request(
        "sampling/createMessage",
        messages=[{"role": "user", "content": {"type": "text", "text": "t"}}],
        maxTokens=9,
        includeContext="none",
    ),
    _request("roots/list"),
    _request("ping"),
    _request("no/such"),
    _notice("notifications/progress", progressToken="call", progress=1, total=2, message="m"),
    _notice("notifications/message", level="info", logger="l", data={"a": 1}),
    _notice("notifications/cancelled", requestId=3, reason="r"),
    _notice("notifications/tools/list_changed"),
    _notice("notifications/resources/updated", uri="file:///a"),
    _result(content=[{"type": "text", "text": "t", "annotations": {"audience": ["user"]}}], isError=False),
    _result(
        content=[{"type": "resource", "resource": {"uri": "file:///a", "text": "t"}}],
        structuredContent={"a": 1},
    ),
    _result(tools=[_TOOL, {**_TOOL, "name": "two"}], nextCursor="c"),
    _result(prompts=[{"name": "p", "arguments": [{"name": "a", "required": True}]}]),
    _result(resources=[{"uri": "file:///a", "name": "a", "mimeType": "text/plain"}]),
    _result(resourceTemplates=[{"uriTemplate": "file:///{a}", "name": "a"}]),
    _result(contents=[{"uri": "file:///a", "text": "t"}]),
    _result(messages=[{"role": "user", "content": {"type": "text", "text": "t"}}], description="d"),
    _result(completion={"values": ["a"], "total": 1, "hasMore": False}),
    _result(
        protocolVersion="2025-11-25",
        capabilities={"tools": {"listChanged": True}, "logging": {}},
        serverInfo={"name": "s", "version": "1", "icons": [{"src": "https://a.example/i.png"}]},
        instructions="i",
    ),
    _error(-32603),
    _error(-32042, _URLS),
    _error(-32602, {"a": 1}),
)


def message(rng: random.Random) -> bytes:
    """One message, spoilt as JSON (mostly) or as bytes; now and then not at all."""
    said = copy.deepcopy(rng.choice(SAID))
    match rng.randrange(10):
        case 0:
            return dump(said).encode()
        case 1 | 2:
            return spoil_bytes(dump(said).encode(), rng, rng.randrange(1, 4))
        case 3:
            return dump([said, odd(rng)]).encode("utf-8", "surrogatepass")
        case _:
            return dump(spoil_json(said, rng, rng.randrange(1, 4))).encode("utf-8", "surrogatepass")


def event(rng: random.Random) -> bytes:
    """One event with such a message, itself spoilt now and then."""
    newline = rng.choice((b"\n", b"\n", b"\r\n", b"\r"))
    data = message(rng).replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    lines = [b"data: " + data]
    if rng.random() < 0.4:
        lines.insert(
            0, rng.choice((b"event: message", b"event: endpoint", b"event: ", b"event: x\x00", b": c"))
        )
    if rng.random() < 0.2:
        lines.append(rng.choice((b"id: 7", b"id: \x00", b"id: \xff\xfe", b"id", b"id: " + b"x" * 5000)))
    if rng.random() < 0.1:
        lines.append(
            rng.choice(
                (b"retry: 10", b"retry: -1", b"retry: " + b"9" * 400, b"data", b"\xef\xbb\xbfdata: {}")
            )
        )
    framed = newline.join(lines) + newline * 2
    return spoil_bytes(framed, rng, 1) if rng.random() < 0.1 else framed
