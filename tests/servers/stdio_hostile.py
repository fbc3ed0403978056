"""A stdio server that says whatever a call tells it to. Starts fast: standard library only.

The arguments of a call, all optional: `say`, messages to send first, each `times` over; `endless`, bytes without a
line end for ever; `wait`, the id of a question whose answer is the call's result. Without any it is well behaved.
"""

import json
import sys
from typing import Any

Json = dict[str, Any]


def write(message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")


def waited_for(id_: Any) -> Json:
    """What the client says to our question."""
    sys.stdout.flush()
    for line in sys.stdin:
        message: Json = json.loads(line)
        if "method" not in message and message.get("id") == id_:
            return message
    sys.exit(0)


def called(arguments: Json) -> Json:
    for _ in range(arguments.get("times", 1)):
        for message in arguments.get("say", ()):
            write(message)
    while arguments.get("endless"):
        sys.stdout.write("x" * 65536)
        sys.stdout.flush()
    told = waited_for(arguments["wait"]) if "wait" in arguments else "done"
    return {"content": [{"type": "text", "text": told if isinstance(told, str) else json.dumps(told)}]}


def answer(message: Json) -> Json:
    match message["method"]:
        case "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}, "logging": {}},
                "serverInfo": {"name": "hostile", "version": "1"},
            }
        case "tools/list":
            return {"tools": [{"name": "obey", "inputSchema": {"type": "object"}}]}
        case "tools/call":
            return called(message["params"].get("arguments", {}))
        case _:
            return {}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "method" in message and "id" in message:
            write({"jsonrpc": "2.0", "id": message["id"], "result": answer(message)})
            sys.stdout.flush()


if __name__ == "__main__":
    main()
