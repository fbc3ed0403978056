"""What counts as not being there, and what a call is told meanwhile."""

import asyncio

import pytest

from gateway.errors import (
    GatewayError,
    Overloaded,
    UpstreamDown,
    UpstreamRefused,
    UpstreamTimedOut,
    UpstreamUnauthorized,
    UpstreamUnreachable,
)
from gateway.relay.fuse import Fuse
from gateway.relay.listener import Reply
from gateway.telemetry.metrics import Metrics
from gateway.upstreams.breaker import Breaker
from gateway.upstreams.pool import Caller
from gateway.upstreams.session import Session

ANN = Caller("ann", is_authenticated=True, capabilities="{}", client_info="{}", authorization=None)


class Door:
    """Does what a test says, and counts who knocks."""

    def __init__(self, says: BaseException) -> None:
        self.says = says
        self.knocks = 0
        self.now = 0.0
        self.metrics = Metrics(version="0", upstreams=["crm"])
        self.fuse = Fuse("crm", Breaker(lambda: self.now, failures=2, seconds=10), self._open, self.metrics)

    async def _open(self, caller: Caller) -> Session:
        self.knocks += 1
        raise self.says

    async def knock(self) -> BaseException:
        with pytest.raises(BaseException) as caught:  # noqa: PT011 - which one is what is asked
            await self.fuse.open(ANN)
        return caught.value

    def is_open(self) -> float | None:
        return self.metrics.registry.get_sample_value("holdfast_circuit_open", {"upstream": "crm"})


@pytest.mark.parametrize("error", [UpstreamUnreachable(), UpstreamTimedOut()])
async def test_a_server_that_is_not_there_is_left_alone(error: GatewayError) -> None:
    """Ours: the call fails at once, with 503 and the time after which it is tried again."""
    door = Door(error)
    await door.knock()
    await door.knock()
    refused = await door.knock()
    assert isinstance(refused, UpstreamDown)
    reply = Reply.of(refused)
    assert (reply.status, reply.headers["Retry-After"], reply.reason) == (503, "10", "circuit_open")
    assert (door.knocks, door.is_open()) == (2, 1)


@pytest.mark.parametrize("error", [UpstreamRefused(500), UpstreamUnauthorized(401)])
async def test_a_server_that_says_no_is_there(error: GatewayError) -> None:
    """Ours: one caller's bad credentials must not shut out the others."""
    door = Door(error)
    for _ in range(9):
        await door.knock()
    assert (door.knocks, door.is_open()) == (9, 0)


async def test_a_client_that_leaves_proves_nothing() -> None:
    """Ours: neither that the server is there nor that it is not."""
    door = Door(UpstreamUnreachable())
    await door.knock()
    await door.knock()
    door.now += 10
    door.says = asyncio.CancelledError()
    await door.knock()
    door.says = UpstreamRefused(500)
    assert isinstance(await door.knock(), UpstreamRefused)
    assert door.is_open() == 0


async def test_our_own_want_of_room_says_nothing_of_the_server() -> None:
    """Ours: neither that it is there nor that it is not; who has no descriptor left has not knocked."""
    door = Door(UpstreamUnreachable())
    await door.knock()
    door.says = Overloaded("no descriptor left")
    assert isinstance(await door.knock(), Overloaded)
    door.says = UpstreamUnreachable()
    await door.knock()
    assert door.is_open() == 1
