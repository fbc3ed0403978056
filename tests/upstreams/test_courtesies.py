"""What a server asks of whoever is there is answered beside everything else, and never without a bound."""

import asyncio

from gateway.errors import UpstreamLost
from gateway.upstreams.background import Background
from gateway.upstreams.courtesies import Courtesies
from gateway.wire.jsonrpc import Request, decode


def asked(number: int, method: str = "ping") -> Request:
    return Request(number, method, {})


async def test_a_ping_is_answered_and_anything_else_refused_under_its_own_id() -> None:
    """JSON-RPC: whoever asks waits for an answer, also where there is nothing to be had."""
    background, said = Background(), list[bytes]()

    async def send(line: bytes) -> None:
        said.append(line)

    courtesies = Courtesies(background)
    courtesies.pong(asked(0), send)
    courtesies.refuse(asked(1, "x"), send)
    courtesies.refuse(asked(2, "x"), send, -32000, "Too many")
    await background.settle(5)

    assert [decode(line) for line in said] == [
        {"jsonrpc": "2.0", "id": 0, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}},
        {"jsonrpc": "2.0", "id": 2, "error": {"code": -32000, "message": "Too many"}},
    ]


async def test_a_server_that_does_not_take_them_is_owed_no_more_than_a_few() -> None:
    """Ours: each waits for the server, and one that only asks would have us keep them all."""
    background, taken, tried = Background(), asyncio.Event(), list[bytes]()

    async def send(line: bytes) -> None:
        tried.append(line)
        await taken.wait()
        raise UpstreamLost("gone")

    courtesies = Courtesies(background)
    for number in range(100):
        courtesies.pong(asked(number), send)
    await asyncio.sleep(0)
    assert len(tried) == 32

    taken.set()
    await background.settle(5)
    courtesies.pong(asked(100), send)
    await asyncio.sleep(0)
    assert len(tried) == 33, "what failed owes nothing any more"
    await background.close()
