"""The process around the gateway: what it asks of the operating system, and of the interpreter."""

import asyncio
import gc
import resource
import socket
import weakref

import aiohttp
import pytest
from structlog.testing import capture_logs

from gateway import process
from gateway.settings.model import Settings
from tests.support.gateways import Gateways
from tests.support.scripted import Scripted, Turn, text_result
from tests.support.waiting import until
from tests.support.wire import Wire


def test_the_collector_walks_few_objects_at_a_time_and_those_that_stay_hardly_ever() -> None:
    """Ours: a million at once held all calls up for half a second, at some nine thousand holds."""
    before = gc.get_threshold()
    try:
        process._calm_the_collector()
        young, middle, old = gc.get_threshold()
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()

    assert young * middle <= 100_000
    assert young * middle * old >= 100_000_000


async def test_circles_are_found_now_and_then_all_the_same(
    gateway: Gateways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: in a quiet moment, and without one as well; else memory of a process that runs for months is lost."""

    class Circle:
        def __init__(self) -> None:
            self.itself = self

    monkeypatch.setattr(process, "_SWEEP_SECONDS", 0.01)
    monkeypatch.setattr(process, "_LOOK_SECONDS", 0.001)
    monkeypatch.setattr(process, "_MOST_LOOKS", 10)
    finish = asyncio.Event()

    async def wait(turn: Turn) -> None:
        await finish.wait()
        await turn.result(text_result("finished"))

    async with Scripted() as server:
        server.on["tools/call"] = wait
        served = await gateway(server.url)
        async with Wire(served.url) as client:
            gc.disable()
            sweeping = asyncio.ensure_future(process._sweep(served.gateway))
            try:
                await until_collected(Circle())
                running = asyncio.ensure_future(client.tool("wait"))
                await server.wait("tools/call")
                await until_collected(Circle())
                finish.set()
                assert (await running).text == "finished"
            finally:
                gc.enable()
                sweeping.cancel()


async def until_collected(circle: object) -> None:
    """Let go of it, and wait for its end."""
    seen = weakref.ref(circle)
    del circle

    async def is_gone() -> bool:
        return seen() is None

    await until(is_gone)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
async def test_every_address_is_those_of_both_families(gateway: Gateways) -> None:
    """Ours: as other servers take `[::]`; asyncio would keep IPv4 out."""
    async with Scripted() as server:
        served = await gateway(server.url, settings={"listen": "[::]:0", "admin": "[::]:0"})
        assert served.gateway.admin_address is not None
        for url in (served.url, f"http://{served.gateway.admin_address}/livez"):
            for host in ("127.0.0.1", "[::1]"):
                async with aiohttp.ClientSession() as http, http.get(url.replace("[::]", host)) as response:
                    assert response.status in (200, 405, 406), "it is reached"


def test_a_hard_limit_that_is_too_low_for_the_holds_is_told() -> None:
    """Ours: the first to notice must not be the client of the hold for which there is no connection."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    upstreams = {"legacy": {"url": "http://127.0.0.1:9/mcp", "holds": {"max": 1_000_000_000}}}
    settings = Settings.model_validate({"listen": "127.0.0.1:0", "upstreams": upstreams})
    try:
        with capture_logs() as logged:
            process._open_enough_files(settings)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    (line,) = logged
    assert (line["event"], line["limit"]) == ("few_open_files", before[1])
    assert line["needed"] > 1_000_000_000
