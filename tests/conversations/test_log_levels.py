"""A request's own log level, on servers that can be told one, that refuse, that ignore it, and that never answer."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from gateway.relay import legacy_call
from tests.support.gateways import Gateways
from tests.support.scripted import Scripted, Turn, ask, introduction, notice, text_result
from tests.support.wire import Answer, Wire, accept

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
SET_LEVEL = "logging/setLevel"
POOLED = {"mode": "pooled"}

pytestmark = pytest.mark.requirement("R32")


async def log_everything(turn: Turn) -> None:
    """A tool that logs at every level, whatever it was told, and on a call's own stream."""
    await turn.stream()
    for level in LEVELS:
        await turn.event(notice("notifications/message", level=level, data=f"at {level}"))
    await turn.event(turn.answer(text_result("done")))
    await turn.finish()


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted(on={"tools/call": log_everything}) as scripted:
        yield scripted


def logged(answer: Answer) -> list[str]:
    assert answer.text == "done"
    assert {entry["method"] for entry in answer.notifications} <= {"notifications/message"}
    return [entry["params"]["level"] for entry in answer.notifications]


def told(server: Scripted) -> list[str]:
    """The levels that the server was told, in order."""
    return [turn.message["params"]["level"] for turn in server.seen(SET_LEVEL)]


@pytest.mark.parametrize("level", LEVELS)
async def test_each_request_hears_its_own_level_and_above(
    level: str, server: Scripted, gateway: Gateways
) -> None:
    served = await gateway(server.url)
    async with Wire(served.url) as wire:
        assert logged(await wire.tool("echo", level=level)) == [*LEVELS[LEVELS.index(level) :]]
        assert told(server) == [level]
        assert logged(await wire.tool("echo")) == []


async def test_a_session_that_was_told_another_level_before_is_told_again(
    server: Scripted, gateway: Gateways
) -> None:
    served = await gateway(server.url, sessions=POOLED)
    async with Wire(served.url) as wire:
        assert logged(await wire.tool("echo", level="emergency")) == ["emergency"]
        assert logged(await wire.tool("echo")) == [], "what an earlier request wanted is nobody else's"
        assert logged(await wire.tool("echo", level="alert")) == ["alert", "emergency"]
        assert logged(await wire.tool("echo", level="alert")) == ["alert", "emergency"]
        assert told(server) == ["emergency", "alert"]
        assert len({turn.session for turn in server.seen("tools/call")}) == 1


async def _not_found(turn: Turn) -> None:
    await turn.json({"jsonrpc": "2.0", "id": turn.id, "error": {"code": -32601, "message": "no"}})


async def _refused(turn: Turn) -> None:
    await turn.reply(400, "what?")


async def _broken(turn: Turn) -> None:
    await turn.reply(500)


async def _nonsense(turn: Turn) -> None:
    await turn.reply(200, "<html>", {"Content-Type": "text/html"})


@pytest.mark.parametrize("refusal", [_not_found, _refused, _broken, _nonsense])
async def test_servers_that_refuse_to_be_told_log_all_the_same(
    refusal: Callable[[Turn], Awaitable[None]], server: Scripted, gateway: Gateways
) -> None:
    """LEGACY-WIRE 8: Python servers answer -32601 and log regardless."""
    server.on[SET_LEVEL] = refusal
    served = await gateway(server.url, sessions=POOLED)
    async with Wire(served.url) as wire:
        for _ in range(2):
            assert logged(await wire.tool("echo", level="alert")) == ["alert", "emergency"]
        assert told(server) == ["alert"], "once is enough"


async def test_servers_that_declare_no_logging_are_not_told_and_heard_all_the_same(
    server: Scripted, gateway: Gateways
) -> None:
    async def introduce(turn: Turn) -> None:
        result = {**introduction(server), "capabilities": {"tools": {}}}
        await turn.result(result, server.new_session())

    server.on["initialize"] = introduce
    served = await gateway(server.url)
    async with Wire(served.url) as wire:
        assert logged(await wire.tool("echo", level="alert")) == ["alert", "emergency"]
        assert told(server) == []


async def test_a_server_that_never_answers_is_called_all_the_same(
    server: Scripted, gateway: Gateways, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(turn: Turn) -> None:
        await turn.until_left()

    monkeypatch.setattr(legacy_call, "_LEVEL_SECONDS", 0.05)
    server.on[SET_LEVEL] = silent
    served = await gateway(server.url)
    async with Wire(served.url) as wire:
        assert logged(await wire.tool("echo", level="alert")) == ["alert", "emergency"]


async def test_a_session_that_is_found_lost_by_it_is_replaced_and_the_call_runs_once(
    server: Scripted, gateway: Gateways
) -> None:
    served = await gateway(server.url, sessions=POOLED)
    async with Wire(served.url) as wire:
        assert logged(await wire.tool("echo")) == []
        server.known.clear()
        server.on["GET"] = _no_stream  # so that it is the level that finds out
        assert logged(await wire.tool("echo", level="alert")) == ["alert", "emergency"]
        assert len(server.seen("tools/call")) == 2


async def _no_stream(turn: Turn) -> None:
    await turn.reply(405)


async def test_a_later_round_may_want_another_level(server: Scripted, gateway: Gateways) -> None:
    """A retry is a request of its own (R38), so what it wants to hear is its own too."""

    async def ask_then_log(turn: Turn) -> None:
        await turn.stream()
        await turn.event(notice("notifications/message", level="alert", data="before"))
        await turn.event(ask("q"))
        if await turn.answered("q") is not None:
            await turn.event(notice("notifications/message", level="info", data="after"))
            await turn.event(turn.answer(text_result("done")))
            await turn.finish()

    server.on["tools/call"] = ask_then_log
    served = await gateway(server.url)
    async with Wire(served.url) as wire:
        asked = await wire.tool("echo")
        assert asked.notifications == []
        done = await wire.retry(asked, {"name": accept(name="Ann")}, level="info")
        assert logged(done) == ["info"]
        assert told(server) == ["info"]
        methods = [turn.method for turn in server.turns]
        assert methods.index(SET_LEVEL) < methods.index("answer")
