"""When an upstream is asked for its era, and what is believed until it answers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.relay import era as room
from gateway.relay.era import UpstreamEra
from gateway.telemetry.logs import get_logger
from gateway.upstreams.background import Background
from gateway.upstreams.forwarding import Forwarder
from tests.support.scripted import Scripted, Turn


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted(sessions=False) as scripted:
        yield scripted


@pytest.fixture
async def forwarder(server: Scripted) -> AsyncIterator[Forwarder]:
    made = Forwarder(server.url, connect_timeout=1)
    await made.start()
    yield made
    await made.close()


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_PAUSE_SECONDS", 0.0)


def made(forwarder: Forwarder | None, configured: Any = "auto") -> UpstreamEra:
    return UpstreamEra(configured, forwarder, Background(), version="1", log=get_logger())


async def modern(turn: Turn) -> None:
    await turn.result({"supportedVersions": ["2026-07-28"], "capabilities": {}})


async def legacy(turn: Turn) -> None:
    await turn.reply(400, "No valid session ID provided")


async def test_it_is_asked_once_by_however_many(server: Scripted, forwarder: Forwarder) -> None:
    server.on["server/discover"] = modern
    era = made(forwarder)

    await asyncio.gather(*(era.settle() for _ in range(5)))
    await era.settle()

    assert era.is_modern
    assert len(server.seen("server/discover")) == 1


async def test_a_doubt_is_settled_by_asking_again(server: Scripted, forwarder: Forwarder) -> None:
    server.on["server/discover"] = legacy
    era = made(forwarder)
    await era.settle()
    before = era.is_modern
    server.on["server/discover"] = modern

    era.doubt()
    await era.settle()

    assert (before, era.is_modern) == (False, True)


async def test_a_server_that_proves_nothing_is_what_it_was(server: Scripted, forwarder: Forwarder) -> None:
    server.on["server/discover"] = modern
    era = made(forwarder)
    await era.settle()

    async def unauthorized(turn: Turn) -> None:
        await turn.reply(401)

    server.on["server/discover"] = unauthorized
    era.doubt()
    await era.settle()

    assert era.is_modern
    assert not era.is_certain


async def test_doubts_in_quick_succession_are_settled_by_two_questions(
    server: Scripted, forwarder: Forwarder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_PAUSE_SECONDS", 60.0)
    server.on["server/discover"] = legacy
    era = made(forwarder)
    for _ in range(5):
        await era.settle()
        era.doubt()

    assert len(server.seen("server/discover")) == 2, "the first found out, the second found nothing new"


@pytest.mark.parametrize(("configured", "is_modern"), [("modern", True), ("legacy", False)])
async def test_what_is_configured_is_never_asked_for(
    server: Scripted,
    forwarder: Forwarder,
    configured: str,
    is_modern: bool,  # noqa: FBT001
) -> None:
    era = made(forwarder, configured)
    era.doubt()
    await era.settle()

    assert era.is_modern is is_modern
    assert server.turns == []


async def test_a_process_is_not_asked() -> None:
    era = made(None)
    await era.settle()

    assert (era.is_certain, era.is_modern) == (True, False)
