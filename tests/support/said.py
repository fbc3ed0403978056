"""What legacy servers say, as messages; nothing about how it travels."""

from typing import Any

Json = dict[str, Any]

TOOL: Json = {"name": "echo", "inputSchema": {"type": "object"}}
ASK: Json = {
    "message": "Your name?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
}


def text_result(text: str) -> Json:
    """A tool's result."""
    return {"content": [{"type": "text", "text": text}]}


def ask(id_: Any, method: str = "elicitation/create", params: Json | None = None) -> Json:
    """A request of the server to its client."""
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": ASK if params is None else params}


def notice(method: str, **params: Any) -> Json:
    """A notification of the server."""
    return {"jsonrpc": "2.0", "method": method, "params": params}
