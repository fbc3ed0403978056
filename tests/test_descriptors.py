"""How much of what the system gives is asked for, and what becomes of clients when there is nothing left."""

import asyncio
import contextlib
import json
import resource
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway import descriptors
from tests.support.scripted import Scripted, asking
from tests.support.serving import Serving, serving
from tests.support.waiting import until
from tests.support.wire import Wire, accept

ENDLESS = resource.RLIM_INFINITY
_FEW = 128


@pytest.mark.parametrize(
    ("before", "least", "after"),
    [
        ((1024, 4096), 5_000, (4096, 4096)),
        ((1024, 1_048_576), 5_000, (65_536, 1_048_576)),
        ((1024, 1_048_576), 100_000, (100_000, 1_048_576)),
        ((1024, ENDLESS), 5_000, (65_536, ENDLESS)),
        ((256, 256), 5_000, (256, 256)),
        ((500_000, 1_048_576), 5_000, (500_000, 1_048_576)),
    ],
)
def test_as_many_are_asked_for_as_are_of_use(
    monkeypatch: pytest.MonkeyPatch, before: tuple[int, int], least: int, after: tuple[int, int]
) -> None:
    """Ours: a thousand, which is the usual, are gone at a few hundred held calls."""
    bounds = [before]
    monkeypatch.setattr(resource, "getrlimit", lambda _: bounds[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, bound: bounds.append(bound))
    assert descriptors.ask_for_more(least) == after[0]
    assert bounds[-1] == after


def test_nothing_is_asked_for_where_nothing_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: RLIM_INFINITY is minus one, and not to be taken for less than is needed."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (ENDLESS, ENDLESS))
    monkeypatch.delattr(resource, "setrlimit")
    assert descriptors.ask_for_more(5_000) == 5_000


def test_a_system_that_gives_no_more_is_no_reason_not_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: some sandboxes refuse the question itself."""

    def refuse(_: int, __: tuple[int, int]) -> None:
        raise ValueError("not allowed")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert descriptors.ask_for_more(5_000) == 256


async def test_more_calls_are_held_than_the_usual_limit_of_open_files_allows(
    tmp_path: Path, server: Scripted
) -> None:
    """Ours: shells and many services start with a soft limit of 1,024 files, the end of some 500 holds."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with contextlib.AsyncExitStack() as running:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_FEW, before[1]))
        try:
            gateway = await running.enter_async_context(serving(tmp_path, {"url": server.url}))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        client = await running.enter_async_context(Wire(gateway.url))
        held = await asyncio.gather(*(client.tool("ask", {"n": n}) for n in range(_FEW)))
        ended = await asyncio.gather(
            *(
                client.retry(call, {key: accept(name=f"{n}") for key in call.asked})
                for n, call in enumerate(held)
            )
        )
    assert [call.text for call in ended] == [f"Hello {n}" for n in range(_FEW)]


@pytest.mark.parametrize(
    ("soft", "most"), [(ENDLESS, 16_384), (65_536, 16_384), (20_000, 10_000), (256, 128), (1, 1)]
)
def test_clients_get_no_more_than_half(monkeypatch: pytest.MonkeyPatch, soft: int, most: int) -> None:
    """Ours: the other half is for servers, without which no client is helped."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, ENDLESS))
    assert descriptors.for_clients(16_384) == most


# --- nothing left ----------------------------------------------------------------------------------


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted() as scripted:
        scripted.on["tools/call"] = asking
        yield scripted


@pytest.mark.parametrize("has_uvloop", [True, False])
async def test_a_process_without_descriptors_recovers_and_does_not_drown_in_its_log(
    tmp_path: Path, server: Scripted, *, has_uvloop: bool
) -> None:
    """Ours: asyncio of Python 3.11 tries, and complains, as often as the backlog is long, each second."""
    async with (
        serving(
            tmp_path, {"url": server.url, "sessions": {"warm": 0}}, is_judged=False, has_uvloop=has_uvloop
        ) as gateway,
        Wire(gateway.url) as client,
    ):
        asked = await client.tool("echo")
        most = _open(gateway) + 4
        resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE, (most, most))
        crowd = [socket.create_connection(_address(gateway)) for _ in range(200)]

        async def is_full() -> bool:
            return _open(gateway) >= most or "socket.accept" in gateway.said()

        await until(is_full)
        for one in crowd:
            one.close()
        done = await client.retry(asked, {"name": accept(name="Ann")})
        assert done.text == "Hello Ann"
        lines = [json.loads(line) for line in gateway.said().splitlines()]
        assert sum(line["event"] == "library" for line in lines) < 100
        gateway.tell()
        assert await gateway.ended() == 0


def _open(gateway: Serving) -> int:
    return len(list(Path(f"/proc/{gateway.process.pid}/fd").iterdir()))


def _address(gateway: Serving) -> tuple[str, int]:
    host, _, port = gateway.url.removeprefix("http://").removesuffix("/mcp").partition(":")
    return host, int(port)
