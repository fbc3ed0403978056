"""When an upstream is asked for its era, and what is believed until it answers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.relay import era as room
from gateway.relay.era import UpstreamEra, asking_for_era
from gateway.telemetry.logs import get_logger
from gateway.upstreams.background import Background
from gateway.upstreams.era_probe import ask_era
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
    async def asking(authorization: str | None) -> Any:
        assert forwarder is not None
        era, _ = await ask_era(forwarder, version="1", authorization=authorization)
        return era

    return UpstreamEra(configured, asking, Background(), log=get_logger())


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


async def test_a_server_that_is_a_command_is_asked_by_its_process(
    server: Scripted, forwarder: Forwarder
) -> None:
    """Ours: where there is no address, a process is started and asked; where there is one, the address is."""

    class Processes:
        asked = 0

        async def ask_process(self) -> Any:
            self.asked += 1
            return "modern", {}

    processes: Any = Processes()
    server.on["server/discover"] = legacy

    assert await asking_for_era(None, processes, "1")(None) == "modern"
    assert await asking_for_era(forwarder, processes, "1")(None) == "legacy"
    assert processes.asked == 1


async def test_the_session_of_the_question_is_left_where_the_settings_say_so(
    server: Scripted, forwarder: Forwarder
) -> None:
    """Ours: `sessions.end`."""

    async def refuses(turn: Turn) -> None:
        await turn.json({"error": "Missing session ID"}, status=400, headers={"Mcp-Session-Id": "stray"})

    server.on["server/discover"] = refuses
    processes: Any = None

    assert await asking_for_era(forwarder, processes, "1", "leave")(None) == "legacy"
    assert [turn.method for turn in server.turns] == ["server/discover"]
