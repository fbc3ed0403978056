"""A modern client's request, complete but for what a test is about."""

from typing import Any

from gateway.relay.request import ClientRequest, Principal
from tests.support.asking import EVERYTHING, raw

ADA = Principal("ada", b"ada's token", is_authenticated=True, authorization="Bearer ada-s3cret")
BOB = Principal("bob", b"bob's token", is_authenticated=True, authorization="Bearer bob-s3cret")


def tool_call(name: str = "book", *, principal: Principal = ADA, **params: Any) -> ClientRequest:
    """A call of a tool."""
    return ClientRequest(
        id=0,
        method="tools/call",
        params=raw({"name": name, "arguments": {"city": "Rome"}} | params),
        target=name,
        principal=principal,
        capabilities=EVERYTHING,
    )
