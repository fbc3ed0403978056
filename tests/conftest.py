"""What all tests share: real legacy servers, gateways, and the rule that nothing is left running."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator

import hypothesis
import pytest

from tests.support.gateways import Gateways
from tests.support.order import pytest_collection_modifyitems
from tests.support.peers import LegacyServers
from tests.support.told import pytest_terminal_summary

__all__ = ["pytest_collection_modifyitems", "pytest_terminal_summary"]

# Properties are judged by what they find, never by how long a busy machine took over one example.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")

_FAREWELL_SECONDS = 1.0
"""How long what is already ending may take over it."""


@pytest.fixture(scope="session")
def legacy_servers() -> Iterator[LegacyServers]:
    """Legacy servers, each kind started when it is first wanted, once for all tests of this process."""
    with LegacyServers() as servers:
        yield servers


@pytest.fixture
async def gateway() -> AsyncIterator[Gateways]:
    """Call it with an upstream's URL and any of its settings to start a gateway; all end with the test."""
    gateways = Gateways()
    try:
        yield gateways
    finally:
        await gateways.stop()


@pytest.fixture(autouse=True)
def _nothing_left_running(request: pytest.FixtureRequest) -> None:
    # Asked for here, before any other fixture, so that it is the last to end.
    if inspect.iscoroutinefunction(request.function):
        request.getfixturevalue("_watched_tasks")


@pytest.fixture
async def _watched_tasks() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    if left:
        _, left = await asyncio.wait(left, timeout=_FAREWELL_SECONDS)
    assert not left, f"still running after the test: {sorted(str(task.get_coro()) for task in left)}"
    await _no_socket_left_open()


async def _no_socket_left_open() -> None:
    """Found here, and not by whichever later test the garbage collector happens to run in."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, asyncio.SelectorEventLoop):
        return
    known = loop._transports  # type: ignore[attr-defined]  # asyncio has no word for "all of them"
    until = loop.time() + _FAREWELL_SECONDS
    while left := [transport for transport in known.values() if transport._sock is not None]:
        if loop.time() > until:
            names = [(transport, transport.get_extra_info("peername")) for transport in left]
            pytest.fail(f"open after the test: {names}")
        await asyncio.sleep(0.001)
