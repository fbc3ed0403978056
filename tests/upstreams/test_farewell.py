"""Sessions are ended, but not where that would end the server."""

from typing import Any

import pytest

from gateway.upstreams.farewell import Ending, end_session
from gateway.upstreams.forwarding import Forwarder
from tests.support.scripted import Scripted, Turn

PYTHON = "6bc06f29b9ec4f8da91adfa94f1c9ab9"
OTHER = "6bc06f29-b9ec-4f8d-a91a-dfa94f1c9ab9"
CANCELLED = "notifications/cancelled"


async def said(session: str, version: str | None, ending: Ending, *, status: int = 202) -> list[str]:
    """What a server hears at the end of a session, if it answers a revision it cannot know like this."""

    async def answers(turn: Turn) -> None:
        assert turn.headers["mcp-protocol-version"] == "2026-07-28"
        await turn.reply(status)

    async with Scripted(sessions=False, on={CANCELLED: answers}) as server:
        forwarder = Forwarder(server.url, connect_timeout=1)
        await forwarder.start()
        try:
            await end_session(
                session,
                version,
                ending,
                lambda verb, headers, body: forwarder.sent(verb, list(headers.items()), body or b""),
            )
        finally:
            await forwarder.close()
        return [turn.method for turn in server.turns]


@pytest.mark.parametrize(
    ("session", "version", "status", "heard"),
    [
        (PYTHON, "2025-03-26", 202, [CANCELLED]),
        (PYTHON, None, 202, [CANCELLED]),
        (PYTHON, "2025-03-26", 400, [CANCELLED, "DELETE"]),
        (PYTHON, None, 400, [CANCELLED, "DELETE"]),
        (PYTHON, "2025-06-18", 202, ["DELETE"]),
        (OTHER, "2025-03-26", 202, ["DELETE"]),
        (OTHER, None, 202, ["DELETE"]),
    ],
)
async def test_a_server_that_would_not_survive_it_is_spared(
    session: str, version: str | None, status: int, heard: list[str]
) -> None:
    """Real: Python SDK 1.9.4 answers 500 to everything after the first DELETE; 1.10 does not, and knows revisions."""
    assert await said(session, version, "auto", status=status) == heard


@pytest.mark.parametrize(("ending", "heard"), [("delete", ["DELETE"]), ("leave", [])])
async def test_it_can_be_said_what_is_to_be_done(ending: Any, heard: list[str]) -> None:
    assert await said(PYTHON, "2025-03-26", ending) == heard
    assert await said(OTHER, "2025-11-25", ending) == heard
