"""Every message that a gateway of this process sends to a modern client is held against 2026-07-28 as it is sent.

Tests read what they are about; this reads all of it, whoever the client is: SDKs forgive, and many tests
look only at a status. The verdicts are those of the official models and of the published JSON Schema.
"""

import functools
import json
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from mcp_types import JSONRPCError
from mcp_types.methods import SERVER_NOTIFICATIONS, parse_server_notification

from gateway.wire.sse import encode_message
from tests.support.schema_judge import complaints
from tests.support.verdicts import MODERN, Json, checked_message

ANSWERED: ContextVar[str | None] = ContextVar("method", default=None)
"""Of the request that is being answered."""
_MOST_DIGITS = 4300
_wrong: list[str] = []
tell: Callable[[str], None] = _wrong.append
"""Whom to tell of what is wrong; by default it waits for `complain`."""
judged = 0
"""How many messages were held against the models."""


@functools.cache
def install() -> None:
    """Read along, from now on, in this process."""
    from gateway.edge import mcp, reply  # noqa: PLC0415 - most tests want no gateway

    serve, body_of = mcp.Endpoint._serve, reply.body_of

    async def serve_and_tell(self: Any, request: Any, body: Any, modern: Any, *rest: Any) -> Any:
        token = ANSWERED.set(modern.method)
        try:
            return await serve(self, request, body, modern, *rest)
        finally:
            ANSWERED.reset(token)

    def read_body(*args: Any) -> bytes:
        data = body_of(*args)
        judge(data)
        return data

    def read_event(data: bytes) -> bytes:
        if b'"method"' in data:  # a last word was read already
            judge(data)
        return encode_message(data)

    mcp.Endpoint._serve = serve_and_tell  # type: ignore[method-assign, assignment]
    reply.body_of = read_body  # type: ignore[assignment]
    reply.encode_message = read_event  # type: ignore[attr-defined]


def complain() -> None:
    """Fail if anything was sent that is not valid; once."""
    wrong, _wrong[:] = list(_wrong), []
    assert not wrong, "sent, and not valid in 2026-07-28:\n" + "\n".join(wrong)


def _number(digits: str) -> int:
    """Python refuses to read longer ones than this, which is no fault of a message that hands on what a server said."""
    return int(digits) if len(digits) < _MOST_DIGITS else 0


def judge(data: bytes) -> None:
    """Hold one message against everything."""
    global judged  # noqa: PLW0603 - a count for the whole process
    judged += 1
    method = ANSWERED.get()
    try:
        message = json.loads(data, parse_int=_number)
        if "method" in message and "id" not in message:
            _judge_notification(method, message)
        elif message.get("id") is None:
            # Nobody could tell whose error it is. JSON-RPC then wants null, which the models do not know.
            assert message.keys() == {"jsonrpc", "id", "error"}
            JSONRPCError.model_validate({**message, "id": 0})
            assert not complaints(method, message), complaints(method, message)
        elif method is not None or "error" in message:  # else it is a test of the writing alone
            checked_message(method or "", message)
    except Exception as error:  # noqa: BLE001 - whatever the models object to
        tell(f"in answer to {method}: {data[:2000]!r}: {error}")


def _judge_notification(method: str | None, message: Json) -> None:
    assert (message["method"], MODERN) in SERVER_NOTIFICATIONS, "no such notification"
    is_about_call = message["method"] in {"notifications/progress", "notifications/message"}
    assert is_about_call == (method != "subscriptions/listen"), "not on this stream"
    parse_server_notification(message["method"], MODERN, message["params"])
    assert not complaints(method, message), complaints(method, message)
