"""The process around the gateway: what it asks of the operating system, and of the interpreter."""

import asyncio
import contextlib
import gc
import resource
from collections.abc import Iterator
from pathlib import Path

from structlog.testing import capture_logs

from gateway import process
from gateway.settings.model import Settings
from tests.support.scripted import Scripted, asking
from tests.support.serving import serving
from tests.support.wire import Wire, accept

_FEW = 128


@contextlib.contextmanager
def soft_limit(files: int) -> Iterator[int]:
    """What is started in this block may open so few files, until it raises the limit itself; yields the most."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, before[1]))
    try:
        yield before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def holding(most: int) -> Settings:
    return Settings.model_validate(
        {
            "listen": "127.0.0.1:0",
            "upstreams": {"legacy": {"url": "http://127.0.0.1:9/mcp", "holds": {"max": most}}},
        }
    )


async def test_more_calls_are_held_than_the_usual_limit_of_open_files_allows(tmp_path: Path) -> None:
    """Ours: shells and many services start with a soft limit of 1,024 files, the end of some 500 holds."""
    async with contextlib.AsyncExitStack() as running:
        server = await running.enter_async_context(Scripted())
        server.on["tools/call"] = asking
        with soft_limit(_FEW):
            gateway = await running.enter_async_context(serving(tmp_path, {"url": server.url}))
        client = await running.enter_async_context(Wire(gateway.url))
        held = await asyncio.gather(*(client.tool("ask", {"n": n}) for n in range(_FEW)))
        ended = await asyncio.gather(
            *(
                client.retry(call, {key: accept(name=f"{n}") for key in call.asked})
                for n, call in enumerate(held)
            )
        )
    assert [call.text for call in ended] == [f"Hello {n}" for n in range(_FEW)]


def test_a_hard_limit_that_is_too_low_for_the_holds_is_told() -> None:
    """Ours: the first to notice must not be the client of the hold for which there is no connection."""
    with soft_limit(_FEW) as most, capture_logs() as logged:
        process._open_enough_files(holding(10_000_000))
        raised, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert raised == most
    (line,) = logged
    assert (line["event"], line["limit"]) == ("few_open_files", most)
    assert line["wanted"] > 10_000_000


def test_the_limit_is_raised_no_further_than_the_holds_need() -> None:
    """Ours: servers that are started as processes inherit it, and some walk through all of it."""
    with soft_limit(_FEW), capture_logs() as logged:
        process._open_enough_files(holding(10))
        raised, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert _FEW < raised < 10_000
    assert not logged


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
