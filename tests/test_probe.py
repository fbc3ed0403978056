"""`holdfast probe` and real servers."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.peers import MODERN_KIND, LegacyServers, stdio_command
from tests.support.scripted import Scripted, Turn

ROOT = Path(__file__).parents[1]


async def probed(*arguments: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gateway",
        "probe",
        *arguments,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 20)
    return process.returncode, out.decode(), err.decode()


async def found(*arguments: str) -> dict[str, Any]:
    code, out, err = await probed("--json", *arguments)
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


async def test_events_that_have_the_id_of_the_session_make_no_server_resumable() -> None:
    """Java's SDK: whoever reads on hears nothing."""

    async def ping(turn: Turn) -> None:
        await turn.stream()
        await turn.event(turn.answer({}), id=turn.session)
        await turn.finish()

    async with Scripted(on={"ping": ping}) as server:
        assert (await found(server.url))["resumable"] is False


async def test_a_credential_that_is_not_there_is_not_left_out_in_silence() -> None:
    """Ours: a misspelt variable was a server that wants credentials."""
    code, out, err = await probed("--authorization-env", "NO_SUCH_VARIABLE", "http://127.0.0.1:9/mcp")
    told = "holdfast: the environment variable NO_SUCH_VARIABLE is not set, or empty\n"
    assert (code, out, err) == (1, "", told)


async def test_a_server_that_was_shown_credentials_will_want_those_of_callers(
    legacy_servers: LegacyServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: with the settings that were printed, every call was refused."""
    monkeypatch.setenv("TOKEN_OF_MINE", "Bearer t")
    url = legacy_servers.get("py-1.30").url
    shown = await found("--authorization-env", "TOKEN_OF_MINE", url)
    assert shown["configuration"].endswith("auth: {mode: passthrough}")
    assert "auth" not in (await found(url))["configuration"]


async def test_a_server_that_wants_credentials_is_told_with_how_to_give_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: the option was to be found in `--help` only."""

    async def refuse(turn: Turn) -> None:
        await turn.reply(401, "", {"WWW-Authenticate": "Bearer"})

    async with Scripted() as server:
        server.on |= {"initialize": refuse, "server/discover": refuse}
        code, _, err = await probed(server.url)
        assert code == 1
        assert err.endswith("credentials: HTTP 401 (--authorization-env NAME sends those in a variable)\n")
        monkeypatch.setenv("TOKEN_OF_MINE", "Bearer t")
        _, _, err = await probed("--authorization-env", "TOKEN_OF_MINE", server.url)
        assert err.endswith("credentials: HTTP 401\n")


@pytest.mark.parametrize(
    ("kind", "options", "facts"),
    [
        ("py-1.30", {}, {"sessions": "session ids", "resumable": False, "standingStream": True}),
        ("ts-1.32", {"event_store": True}, {"sessions": "session ids", "resumable": True}),
        ("py-1.30", {"json_response": True}, {"warning": "answered in JSON", "resumable": None}),
        ("ts-1.32", {"stateless": True}, {"sessions": "none (stateless)", "standingStream": False}),
        ("py-1.12", {}, {"versions": ["2025-06-18"]}),
        ("py-1.30", {"transport": "sse"}, {"transport": "sse", "sessions": "an event stream each"}),
        (MODERN_KIND, {}, {"era": "modern", "transport": "streamable-http"}),
    ],
)
async def test_a_server_is_described_as_it_is(
    legacy_servers: LegacyServers, kind: str, options: dict[str, Any], facts: dict[str, Any]
) -> None:
    server = legacy_servers.get(kind, **options)

    document = await found(server.url)

    warning = facts.pop("warning", "")
    assert document.items() >= {"era": "legacy", "transport": "streamable-http", **facts}.items()
    assert not warning or any(warning in words for words in document["warnings"])
    tools = {tool["name"]: tool["replay"] for tool in document["tools"]}
    assert tools["add"] is (kind != MODERN_KIND)
    assert server.url in document["configuration"]


async def test_a_command_is_started_and_ended() -> None:
    code, out, err = await probed("--", *stdio_command("everything-2026.8.31"))

    assert code == 0, err
    assert "stdio" in out
    assert "asks at start roots/list" in out
    assert "command: [" in out


async def test_a_server_that_is_not_there_is_an_error_in_words() -> None:
    code, out, err = await probed("http://127.0.0.1:9/mcp")

    assert (code, out) == (1, "")
    assert err == "holdfast: The upstream server cannot be reached: Connection refused\n"


@pytest.mark.parametrize("target", ["localhost:9000/mcp", "127.0.0.1:9000", "no-such-command"])
async def test_what_is_neither_url_nor_command_is_told_so(target: str) -> None:
    """Ours: a URL without its scheme is what people type first."""
    code, _, err = await probed(target)

    assert code == 1
    assert err == "holdfast: there is no such command; a URL begins with http:// or https://\n"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            ["no-such-command", "x"],
            "The upstream server's command cannot be started: no-such-command: No such file or directory",
        ),
        (["true"], "The upstream server's process ended while starting (exit code 0)"),
    ],
)
async def test_a_command_that_is_no_server_is_told_once(command: list[str], told: str) -> None:
    """Ours: the log's words and the client's say the same here."""
    code, _, err = await probed("--", *command)

    assert (code, err) == (1, f"holdfast: {told}\n")
