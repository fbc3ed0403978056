"""The published JSON Schema of 2026-07-28 as a judge of what a server sends. Knows nothing of the gateway.

Beside the official models, because the two are made apart: what one forgives the other may not.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

Json = dict[str, Any]

SCHEMAS = Path(__file__).resolve().parents[1] / "schema"
"""The schemas of all revisions, as published."""
RESULTS = {
    "server/discover": "DiscoverResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "completion/complete": "CompleteResult",
    "subscriptions/listen": "SubscriptionsListenResult",
}
ERRORS = {
    -32700: "ParseError",
    -32600: "InvalidRequestError",
    -32601: "MethodNotFoundError",
    -32602: "InvalidParamsError",
    -32603: "InternalError",
    -32020: "HeaderMismatchError",
    -32021: "MissingRequiredClientCapabilityError",
    -32022: "UnsupportedProtocolVersionError",
}
NOTIFICATIONS = {
    "notifications/progress": "ProgressNotification",
    "notifications/message": "LoggingMessageNotification",
    "notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
    "notifications/tools/list_changed": "ToolListChangedNotification",
    "notifications/prompts/list_changed": "PromptListChangedNotification",
    "notifications/resources/list_changed": "ResourceListChangedNotification",
    "notifications/resources/updated": "ResourceUpdatedNotification",
}


def complaints(method: str | None, message: Json) -> list[str]:
    """What the schema has against a message in answer to this method; None if nobody knows of which."""
    if "method" in message:
        name = NOTIFICATIONS.get(message["method"])
        return ["no such notification"] if name is None else judged(name, message)
    if "error" in message:
        # Where nobody could tell whose error it is JSON-RPC wants null; the schema then wants nothing.
        named = {key: value for key, value in message.items() if key != "id" or value is not None}
        code = message["error"].get("code")
        by_code = judged(ERRORS[code], _in_place(ERRORS[code], named)) if code in ERRORS else []
        return judged("JSONRPCErrorResponse", named) + by_code
    if method is None:
        return judged("JSONRPCResultResponse", message)
    result = message.get("result", {})
    is_asking = isinstance(result, dict) and result.get("resultType") == "input_required"
    name = "InputRequiredResult" if is_asking else RESULTS.get(method)
    if name is None:
        return [f"{method} has no result"]
    return judged("JSONRPCResultResponse", message) + judged(name, result)


def definitions(version: str) -> Json:
    """All types of a revision."""
    whole = json.loads((SCHEMAS / f"{version}.json").read_text("utf-8"))
    found: Json = whole.get("$defs") or whole["definitions"]
    return found


def _in_place(name: str, message: Json) -> Any:
    """Some of these types are of the whole response, others of its error."""
    is_whole = "error" in _modern().get(name, {}).get("properties", {})
    return message if is_whole else message["error"]


def judged(name: str, value: Any) -> list[str]:
    """What is wrong with a value of this type."""
    return [
        f"{name}: {problem.message[:300]} at /{'/'.join(map(str, problem.instance_path))}"
        for problem in _validator(name).iter_errors(_small(value))
    ]


def _small(value: Any) -> Any:
    """The same with integers that the validator can read; that they survive is proved elsewhere."""
    match value:
        case dict():
            return {name: _small(member) for name, member in value.items()}
        case list():
            return [_small(member) for member in value]
        case int() if abs(value) > 2**63 - 1:
            return 2**63 - 1 if value > 0 else -(2**63 - 1)
        case _:
            return value


@cache
def _modern() -> Json:
    return definitions("2026-07-28")


@cache
def _validator(name: str) -> Any:
    return jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": _modern()})
