"""Clients that leave real servers in each phase of a call, and what the server, the session and the next call see."""

import asyncio

import pytest

from tests.support.gateways import Gateways, Served
from tests.support.peers import FIXTURE_KINDS, LegacyServers, Running
from tests.support.seen import happened, seen_by, sent_on, session_of, unique
from tests.support.wire import Wire, abandoned, accept

ONE = {"mode": "pooled", "max": 1, "wait": "10s"}
"""One session: whoever does not let go of it is found out by the next call."""

pytestmark = pytest.mark.requirement("R33")


@pytest.fixture(params=FIXTURE_KINDS)
def server(request: pytest.FixtureRequest, legacy_servers: LegacyServers) -> Running:
    return legacy_servers.get(request.param)


async def left(server: Running, tag: str, leaving: "asyncio.Task[object]", opened: asyncio.Event) -> None:
    """Leave once the response streams; the server is told which call it was, and ends it."""
    await asyncio.wait_for(opened.wait(), 10)
    session = await session_of(server, tag=tag)
    await abandoned(leaving)  # type: ignore[arg-type]
    (cancelled,) = await sent_on(server, session, "notifications/cancelled")
    await happened(server, f"slow:cancelled:{tag}")
    (call,) = (await seen_by(server)).calls(tag=tag)
    assert cancelled["params"]["requestId"] == call["body"]["id"]


async def goes_on(served: Served) -> None:
    """The next call has a session to run on."""
    async with Wire(served.url) as wire:
        assert (await wire.tool("echo", {"text": "next"})).text == "next"


async def test_leaving_while_progress_streams_cancels_the_call(server: Running, gateway: Gateways) -> None:
    """Spec: cancellation; the response begins with the first notification, so by then one was streamed."""
    served = await gateway(server.url, sessions=ONE)
    tag, opened = unique("streaming"), asyncio.Event()

    async with Wire(served.url) as wire:
        call = wire.tool("progress", {"steps": 1, "seconds": 30, "tag": tag}, token="p", opened=opened)
        await left(server, tag, asyncio.ensure_future(call), opened)

    await goes_on(served)


async def test_leaving_while_the_second_round_streams_cancels_the_call(
    server: Running, gateway: Gateways
) -> None:
    """Spec: cancellation; the answer was given, the work it led to is stopped."""
    served = await gateway(server.url, sessions=ONE)
    tag, opened = unique("second"), asyncio.Event()

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_then_progress", {"steps": 1, "seconds": 30, "tag": tag}, token="first")
        (key,) = asked.asked
        retry = wire.retry(asked, {key: accept(name="Ann")}, token=0, opened=opened)
        await left(server, tag, asyncio.ensure_future(retry), opened)

    await goes_on(served)


async def test_leaving_while_a_call_is_held_cancels_nothing(server: Running, gateway: Gateways) -> None:
    """MODERN-WIRE 33: a parked call has no connection. Whoever comes back on another goes on with it."""
    served = await gateway(server.url, sessions=ONE)
    tag = unique("held")

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_name", {"tag": tag})
    async with Wire(served.url) as another:
        done = await another.retry(asked, {key: accept(name="Ann") for key in asked.asked})

    assert done.text == f"Hello Ann from {tag}"
    session = await session_of(server, tag=tag)
    assert "notifications/cancelled" not in (await seen_by(server)).methods(session)
    await goes_on(served)


@pytest.mark.requirement("R32")
@pytest.mark.requirement("R38")
async def test_a_later_round_hears_its_own_level(server: Running, gateway: Gateways) -> None:
    """Spec: the level is the request's own, also in a retry, on servers that filter and on those that do not."""
    served = await gateway(server.url)
    levels = ["debug", "info", "warning", "error"]
    heard: dict[str | None, list[str]] = {}

    async with Wire(served.url) as wire:
        for level in (None, "warning", "debug"):
            asked = await wire.tool("ask_then_progress", {"steps": 0, "levels": levels}, level="emergency")
            (key,) = asked.asked
            done = await wire.retry(asked, {key: accept(name="Ann")}, level=level)
            assert done.text == "Hello Ann"
            heard[level] = [entry["params"]["level"] for entry in done.notifications]

    assert heard == {None: [], "warning": levels[2:], "debug": levels}
