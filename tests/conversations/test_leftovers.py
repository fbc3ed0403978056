"""What is left of a call when it is over: nothing, and without a garbage collector that walks everything to find it.

Ten thousand holds are so many objects that the collector is kept from looking at the old ones (`app`): whatever
keeps itself alive in a circle stays then, twenty kilobytes for each call.
"""

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from gateway.eras.exchange import Exchange
from gateway.relay.driver import Driver
from gateway.upstreams.http1_connection import Response
from gateway.upstreams.session import Session
from tests.support.gateways import Gateways
from tests.support.scripted import Scripted, Turn, asking
from tests.support.waiting import until
from tests.support.wire import Wire, abandoned, accept

HEAVY = (Driver, Exchange, Session, Response)
SETTINGS: dict[str, Any] = {
    "sessions": {"mode": "fresh", "warm": 0, "idle": "100ms"},
    "holds": {"ttl": "300ms", "grace": "50ms"},
    "call_timeout": "300ms",
    "breaker": {"failures": 0},
}
NAME = {"name": accept(name="Ann")}
Story = Callable[[Wire, Scripted], Awaitable[object]]


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted() as scripted:
        yield scripted


@pytest.fixture
def others() -> Iterator[list[object]]:
    """What tests before this one have kept: an exception that is a parameter knows where it was raised."""
    gc.collect()
    gc.disable()
    yield _heavy()
    gc.enable()


async def answered(client: Wire, server: Scripted) -> None:
    server.on["tools/call"] = asking
    assert (await client.retry(await client.tool("echo"), NAME)).text == "Hello Ann"


async def malformed(client: Wire, server: Scripted) -> None:
    server.on["tools/call"] = asking
    asked = await client.tool("echo")
    assert (await client.retry(asked, {"name": {"action": 5}})).status == 400
    assert (await client.retry(asked, NAME)).text == "Hello Ann"


async def expired(client: Wire, server: Scripted) -> None:
    server.on["tools/call"] = asking
    await client.tool("echo")


async def plain(client: Wire, server: Scripted) -> None:
    assert (await client.tool("echo")).text == "done"


async def listed(client: Wire, server: Scripted) -> None:
    assert (await client.request("tools/list")).result


async def refused(client: Wire, server: Scripted) -> None:
    async def refuse(turn: Turn) -> None:
        await turn.reply(500, "no")

    server.on["tools/call"] = refuse
    assert (await client.tool("echo")).error


async def reset(client: Wire, server: Scripted) -> None:
    async def break_off(turn: Turn) -> None:
        await turn.stream()
        turn.reset()

    server.on["tools/call"] = break_off
    assert (await client.tool("echo")).error


async def late(client: Wire, server: Scripted) -> None:
    server.on["tools/call"] = Turn.until_left
    assert (await client.tool("echo")).error


async def left(client: Wire, server: Scripted) -> None:
    server.on["tools/call"] = Turn.until_left
    before = len(server.seen("tools/call"))
    calling = asyncio.ensure_future(client.tool("echo"))
    await server.wait("tools/call", before + 1)
    await abandoned(calling)


async def lost_while_held(client: Wire, server: Scripted) -> None:
    server.on["tools/call"] = asking
    asked = await client.tool("echo")
    call = server.seen("tools/call")[-1]
    call.reset()
    assert (await client.retry(asked, NAME)).error


async def unreachable(client: Wire, server: Scripted) -> None:
    await server.stop()
    assert (await client.tool("echo")).error


@pytest.mark.parametrize(
    "story",
    [
        *(answered, malformed, expired, plain, listed, refused, reset, late, left, lost_while_held),
        unreachable,
    ],
)
async def test_nothing_is_left_of_a_call(
    others: list[object], gateway: Gateways, server: Scripted, story: Story
) -> None:
    """Ours: what a call was made of goes when the call goes."""
    served = await gateway(server.url, **SETTINGS)
    async with Wire(served.url) as client:
        await client.tool("echo")  # whatever is kept of the first one
        for _ in range(4):
            await story(client, server)

        async def is_nothing_left() -> bool:
            return not _many(others)

        try:
            await until(is_nothing_left)
        except AssertionError:
            assert _many(others) == {}  # by name


def _many(others: list[object]) -> dict[str, int]:
    """How many there are of each kind; the last one of a kind may still be in somebody's hand."""
    known = {id(other) for other in others}
    found = Counter(type(each).__name__ for each in _heavy() if id(each) not in known)
    return {kind: number for kind, number in found.items() if number > 1}


def _heavy() -> list[object]:
    return [each for each in gc.get_objects() if type(each) in HEAVY]
