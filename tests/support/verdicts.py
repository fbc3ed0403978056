"""Is what came over the modern wire what 2026-07-28 says? Judged by the official models and schema, not by ours."""

import json
from typing import Any

from mcp_types import JSONRPCError
from mcp_types.methods import SERVER_NOTIFICATIONS, parse_server_notification, validate_server_result

from tests.support.schema_judge import complaints

Json = dict[str, Any]

MODERN = "2026-07-28"
CACHEABLE = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)
CHANGES = frozenset(
    {
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    }
)
SERVER_INFO = "io.modelcontextprotocol/serverInfo"


def checked_message(method: str, message: Json) -> Json:
    """The last word about a request of this method; fails unless it is valid in every member."""
    assert message["jsonrpc"] == "2.0"
    assert not complaints(method or None, message), complaints(method or None, message)
    if "error" in message:
        JSONRPCError.model_validate(message)
        code = message["error"]["code"]
        assert code in {-32020, -32021, -32022} or not -32099 <= code <= -32020, "reserved by 2026-07-28"
        assert code not in {-32002, -32042}, "retired by 2026-07-28"
        return message
    result = message["result"]
    validate_server_result(method, MODERN, result)
    kind = result["resultType"]
    assert kind in {"complete", "input_required"}
    assert result["_meta"][SERVER_INFO]["name"]
    assert ({"ttlMs", "cacheScope"} <= result.keys()) == (kind == "complete" and method in CACHEABLE)
    for asked in result.get("inputRequests", {}).values():
        assert asked.keys() == {"method", "params"}
    return message


def checked_notification(message: Json) -> Json:
    """A notification on a request's stream; fails unless it is one that belongs there."""
    assert message["method"] in {"notifications/progress", "notifications/message"}, message
    assert (message["method"], MODERN) in SERVER_NOTIFICATIONS
    assert "id" not in message
    assert not complaints(None, message), complaints(None, message)
    parse_server_notification(message["method"], MODERN, message["params"])
    return message


def checked_change(message: Json, subscription: int | str) -> Json:
    """A notification on a subscription's stream; fails unless it is one of those, and tagged with its id."""
    assert message["method"] in CHANGES, message
    assert message.keys() == {"jsonrpc", "method", "params"}
    assert not complaints(None, message), complaints(None, message)
    parse_server_notification(message["method"], MODERN, message["params"])
    tag = message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
    assert (tag, type(tag)) == (subscription, type(subscription))
    return message


def events_of(body: bytes) -> list[Json]:
    """The messages of a whole SSE body; fails on event ids, and on anything that is not JSON."""
    messages = []
    for block in body.decode().split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        fields = [line.split(": ", 1) for line in lines]
        assert {name for name, _ in fields} <= {"event", "data"}, fields
        if data := [value for name, value in fields if name == "data"]:
            assert dict(fields).get("event", "message") == "message"
            messages.append(json.loads("\n".join(data)))
    return messages
