"""Requests of modern clients as the relay gets them, and what a waiting client is given."""

import json
from typing import Any

from gateway.relay.listener import Ear, Reply
from gateway.relay.request import ClientRequest, Principal
from gateway.wire.jsonrpc import Raw, encode

Json = dict[str, Any]

ANN = Principal("ann", b"ann", is_authenticated=True)
BEN = Principal("ben", b"ben", is_authenticated=True)
NOBODY = Principal("anonymous", b"", is_authenticated=False)

SECONDS = 5.0


def request(method: str, by: Principal = ANN, id_: int | str = 1, **params: Any) -> ClientRequest:
    """A request of this principal's."""
    return ClientRequest(
        id=id_,
        method=method,
        params={name: Raw(encode(value)) for name, value in params.items()},
        target="",
        principal=by,
        capabilities={},
    )


async def given(ear: Ear) -> Json:
    """The next notification; fails if there is none in time, or the last word instead."""
    told = await ear.next(SECONDS)
    assert isinstance(told, bytes), told
    message: Json = json.loads(told)
    return message


async def ended(ear: Ear) -> Reply:
    """The last word; fails if anything comes before it."""
    told = await ear.next(SECONDS)
    assert isinstance(told, Reply), told
    return told
