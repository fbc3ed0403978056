"""What an answer to `server/discover` proves, and what proves nothing."""

import json
from typing import Any

import pytest

from gateway.upstreams.era_probe import ask_era
from gateway.upstreams.forwarding import Forwarder
from tests.support.scripted import Scripted, Turn

DESCRIBED = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}


async def era_of(script: Any) -> tuple[str | None, dict[str, Any], Turn]:
    async with Scripted(sessions=False) as server:
        server.on["server/discover"] = script
        forwarder = Forwarder(server.url, connect_timeout=1)
        await forwarder.start()
        try:
            era, described = await ask_era(forwarder, version="1", authorization="Bearer t")
        finally:
            await forwarder.close()
        return era, described, server.turns[0]


async def test_a_well_formed_answer_is_a_modern_servers() -> None:
    async def answers(turn: Turn) -> None:
        await turn.result(DESCRIBED)

    era, described, turn = await era_of(answers)

    assert (era, described) == ("modern", DESCRIBED)
    assert turn.headers["authorization"] == "Bearer t"
    assert (turn.headers["mcp-protocol-version"], turn.headers["mcp-method"]) == (
        "2026-07-28",
        "server/discover",
    )


async def test_it_may_come_as_an_event() -> None:
    async def answers(turn: Turn) -> None:
        await turn.stream()
        await turn.chunk(b": hello\n\n")
        await turn.event(turn.answer(DESCRIBED))
        await turn.finish()

    assert (await era_of(answers))[0] == "modern"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            400,
            {
                "jsonrpc": "2.0",
                "id": "server-error",
                "error": {"code": -32600, "message": "Missing session ID"},
            },
        ),
        (400, "plain text"),
        (404, ""),
        (405, "<html>"),
        (
            200,
            {
                "jsonrpc": "2.0",
                "id": "era",
                "error": {"code": -32602, "message": "Invalid request parameters"},
            },
        ),
        (200, {"jsonrpc": "2.0", "id": "era", "result": {}}),
        (200, {"jsonrpc": "2.0", "id": "era", "result": {"supportedVersions": ["2025-11-25"]}}),
        (200, {"jsonrpc": "2.0", "id": "era", "result": {"supportedVersions": "2026-07-28"}}),
        (200, "not JSON"),
        (202, ""),
    ],
)
async def test_anything_else_is_a_legacy_servers(status: int, body: Any) -> None:
    """LEGACY-WIRE 5: no legacy server answered it with success."""

    async def refuses(turn: Turn) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        await turn.reply(status, text, {"Content-Type": "application/json"})

    assert (await era_of(refuses))[:2] == ("legacy", {})


@pytest.mark.parametrize("status", [401, 403, 429, 500, 502, 503])
async def test_a_refusal_that_any_server_may_give_proves_nothing(status: int) -> None:
    async def refuses(turn: Turn) -> None:
        await turn.reply(status)

    assert (await era_of(refuses))[0] is None


async def test_no_answer_proves_nothing() -> None:
    async def hangs_up(turn: Turn) -> None:
        turn.hang_up()

    assert (await era_of(hangs_up))[0] is None


async def test_a_session_that_was_opened_by_the_question_is_ended() -> None:
    """Ours: Python SDKs up to 1.26 open one for whatever comes without a session, and refuse it then."""

    async def refuses(turn: Turn) -> None:
        await turn.json({"error": "Missing session ID"}, status=400, headers={"Mcp-Session-Id": "stray"})

    async with Scripted(sessions=False) as server:
        server.on["server/discover"] = refuses
        forwarder = Forwarder(server.url, connect_timeout=1)
        await forwarder.start()
        try:
            assert await ask_era(forwarder, version="1", authorization="Bearer t") == ("legacy", {})
        finally:
            await forwarder.close()
        _, ended = server.turns
    assert (ended.verb, ended.headers["mcp-session-id"]) == ("DELETE", "stray")
    assert ended.headers["authorization"] == "Bearer t"
