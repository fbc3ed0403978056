"""The channel over stdio, against small servers that are odd in one way each."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from structlog.testing import capture_logs
from structlog.typing import EventDict

from gateway.errors import UpstreamLost, UpstreamSpokeNonsense, UpstreamUnreachable
from gateway.telemetry.logs import get_logger
from gateway.telemetry.redact import Blackout
from gateway.upstreams import process as process_module
from gateway.upstreams.guard import Guard
from gateway.upstreams.last_words import Allowance
from gateway.upstreams.session import Session, open_session
from gateway.upstreams.stdio import Stdio
from gateway.upstreams.transport import SessionGone
from gateway.wire.jsonrpc import Raw, Result, decode, encode_request
from tests.support.calling import LIMIT
from tests.support.processes import gone, own_zombies, state
from tests.support.waiting import until

ODDITY = Path(__file__).parents[1] / "servers" / "stdio_oddity.py"
Open = Callable[..., Awaitable[Stdio]]
Json = dict[str, Any]


def command(*oddities: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(ODDITY), *oddities]


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    guard, channels = Guard(), list[Stdio]()

    async def open_one(*oddities: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> Stdio:
        allowance = Allowance(asyncio.get_running_loop().time)
        channel = Stdio(max_line_bytes=LIMIT, log=get_logger(), allowance=allowance, blackout=Blackout(()))
        channels.append(channel)
        await channel.open(command(*oddities), env=env or {}, cwd=cwd, guard=guard)
        return channel

    yield open_one
    for channel in channels:
        await channel.close()
    await guard.close()
    assert own_zombies() == []


@pytest.fixture
def logged() -> Iterator[list[EventDict]]:
    with capture_logs() as lines:
        yield lines


async def session_on(channel: Stdio) -> Session:
    return await open_session(
        channel,
        request_id="init",
        client_info={"name": "t", "version": "1"},
        capabilities={},
        on_early_ask=lambda *_: None,
        on_end=lambda _: None,
    )


async def tool(session: Session, name: str, **arguments: Any) -> str:
    params = {"name": name, "arguments": arguments}
    async with asyncio.timeout(5):
        answer = await session.call(f"call-{name}", "tools/call", params)
    assert isinstance(answer, Result)
    text: str = decode(answer.result)["content"][0]["text"]
    return text


def pid_of(channel: Stdio) -> int:
    assert channel.session_id is not None
    return int(channel.session_id.removeprefix("pid-"))


# --- talking -----------------------------------------------------------------------------------


async def test_a_session_is_a_process(opened: Open) -> None:
    channel = await opened()
    session = await session_on(channel)
    assert await tool(session, "echo", text="a\u2028b\u0085c\n é") == "a\u2028b\u0085c\n é"
    assert await tool(session, "pid") == str(pid_of(channel))
    assert session.id == channel.session_id
    await session.close()
    await gone(pid_of(channel))


async def test_one_that_waits_to_be_used_does_not_look_dead(opened: Open, tmp_path: Path) -> None:
    """Servers of the Go SDK with `KeepAlive` ping from their start on, and end without a pong."""
    channel = await opened("needy", cwd=tmp_path)

    async def is_comforted() -> bool:
        return (tmp_path / "comforted").exists()

    await until(is_comforted)
    session = await session_on(channel)
    assert await tool(session, "echo", text="here") == "here"


async def test_it_sees_only_the_environment_that_it_is_given(opened: Open) -> None:
    session = await session_on(await opened(env={"API_KEY": "k", "PATH": "/bin"}))
    seen = json.loads(await tool(session, "environment"))
    assert seen["env"].pop("HOLDFAST_GUARD"), "nothing of ours but this"
    assert {name: value for name, value in seen["env"].items() if name != "LC_CTYPE"} == {
        "API_KEY": "k",
        "PATH": "/bin",
    }


async def test_a_message_is_one_line_however_the_client_formats_its_json(opened: Open) -> None:
    """What is only forwarded stays bytes, and may have line ends between its tokens."""
    session = await session_on(await opened())
    pretty = Raw(b'{\r\n  "text":\r"two\\nlines"\n}')
    params = {"name": Raw(b'"echo"'), "arguments": pretty}
    async with asyncio.timeout(5):
        answer = await session.call("pretty", "tools/call", params)
    assert isinstance(answer, Result)
    assert decode(answer.result)["content"][0]["text"] == "two\nlines"


async def test_banners_are_logged_and_passed_over(opened: Open, logged: list[EventDict]) -> None:
    session = await session_on(await opened("banner"))
    assert await tool(session, "echo", text="hi") == "hi"
    details = [line["detail"] for line in logged if line["event"] == "upstream_protocol"]
    assert details == [
        "not JSON on standard output: Welcome!",
        "not JSON on standard output: * Serving on stdio",
        "not JSON on standard output: {'not': 'json'}",
    ]


async def test_large_messages_come_whole(opened: Open) -> None:
    session = await session_on(await opened())
    size = LIMIT - 1000
    assert await tool(session, "giant", characters=size) == "x" * size
    assert await tool(session, "echo", text="y" * (LIMIT - 1000)) == "y" * (LIMIT - 1000)


# --- nonsense ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"), [("giant", {"characters": 3 * LIMIT}), ("garbled", {}), ("nonsense", {})]
)
async def test_an_answer_that_cannot_be_read_fails_the_call_and_not_the_process(
    opened: Open, logged: list[EventDict], name: str, arguments: Json
) -> None:
    session = await session_on(await opened())
    with pytest.raises(UpstreamSpokeNonsense):
        await tool(session, name, **arguments)
    assert await tool(session, "echo", text="still here") == "still here"
    assert [line["event"] for line in logged] == ["upstream_protocol"]
    assert len(logged[0]["detail"]) < 200, "payloads are not quoted"


async def test_json_that_is_no_message_is_passed_over(opened: Open, logged: list[EventDict]) -> None:
    """Loggers write JSON to standard output, PHP writes `[]` for no parameters: SDK clients go on."""
    session = await session_on(await opened())
    assert await tool(session, "json_logs") == "logged"
    assert [line["event"] for line in logged] == ["upstream_protocol"] * 2


async def test_a_last_message_without_a_line_end_counts(opened: Open) -> None:
    session = await session_on(await opened())
    assert await tool(session, "unfinished") == "unfinished"


# --- the end -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "how"),
    [
        ("exit", {"code": 7}, "exit code 7"),
        ("exit", {"code": 0}, "exit code 0"),
        ("abort", {}, "ended by SIGABRT"),
    ],
)
async def test_a_crash_names_the_exit_code_to_the_client_and_the_last_words_to_the_log(
    opened: Open, logged: list[EventDict], name: str, arguments: Json, how: str
) -> None:
    """Issue: a crash is a clear error; what the server printed may hold secrets and goes no further."""
    channel = await opened()
    session = await session_on(channel)
    with pytest.raises(UpstreamLost) as lost:
        await tool(session, name, **arguments)
    assert lost.value.message == (
        f"The upstream server's process ended ({how}) before it answered; the call may have run"
    )
    assert not isinstance(lost.value, SessionGone)
    assert session.is_dead

    async def told() -> list[EventDict]:
        return [line for line in logged if line["event"] == "upstream_exited"]

    (line,) = await until(told)
    assert (line["detail"], line["pid"]) == (how, pid_of(channel))
    if name == "exit":
        assert line["stderr"] == ["about to fail", "password=hunter2", "last words"]
    assert state(pid_of(channel)) is None


async def test_a_server_that_fails_to_start_says_so(opened: Open, logged: list[EventDict]) -> None:
    channel = await opened("fails")
    with pytest.raises(UpstreamUnreachable) as refused:
        await session_on(channel)
    assert refused.value.message == "The upstream server's process ended while starting (exit code 3)"

    async def told() -> list[EventDict]:
        return [line for line in logged if line["event"] == "upstream_exited"]

    assert (await until(told))[0]["stderr"] == ["cannot find my configuration"]


async def test_a_server_that_is_over_before_it_is_greeted_failed_to_start(opened: Open) -> None:
    """Ours: nothing was run, so nobody is told that something may have been."""
    channel = await opened("fails")

    async def is_over() -> bool:
        return not channel.is_running

    await until(is_over)
    with pytest.raises(UpstreamUnreachable) as refused:
        await session_on(channel)
    assert refused.value.message == "The upstream server's process ended while starting (exit code 3)"


async def test_after_the_end_nothing_can_have_been_sent(opened: Open) -> None:
    channel = await opened()
    session = await session_on(channel)
    with pytest.raises(UpstreamLost):
        await tool(session, "exit")
    with pytest.raises(SessionGone):
        await channel.request("r", encode_request("r", "ping", {}), lambda _: True)
    with pytest.raises(SessionGone):
        await channel.send(b"{}")


async def test_a_process_that_dies_idle_ends_its_session(opened: Open) -> None:
    """The pool must not lease it to anybody."""
    ended = asyncio.Event()
    channel = await opened()
    session = await open_session(
        channel,
        request_id="init",
        client_info=None,
        capabilities={},
        on_early_ask=lambda *_: None,
        on_end=lambda _: ended.set(),
    )
    assert channel._process is not None
    await channel._process.write(
        encode_request("nobody waits", "tools/call", {"name": "exit", "arguments": {}}) + b"\n"
    )
    await asyncio.wait_for(ended.wait(), 5)
    assert session.is_dead


async def test_a_server_that_closes_its_output_is_over(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "_GOODBYE_SECONDS", 0.1)
    channel = await opened("stubborn")
    session = await session_on(channel)
    with pytest.raises(UpstreamLost, match="output closed"):
        await tool(session, "close_output")
    await gone(pid_of(channel))


async def test_a_call_in_progress_is_lost_when_the_session_is_closed(opened: Open) -> None:
    channel = await opened("ignores_input")
    task = asyncio.get_running_loop().create_task(
        channel.request("r", encode_request("r", "ping", {}), lambda _: True)
    )
    await asyncio.sleep(0)
    closing = asyncio.get_running_loop().create_task(channel.close())
    with pytest.raises(UpstreamLost):
        await asyncio.wait_for(task, 5)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    assert state(pid_of(channel)) is None, "in a hurry it is killed"


# --- the other event loop ----------------------------------------------------------------------


def test_it_is_the_same_on_uvloop() -> None:
    """The gateway runs on it where it is installed; it starts processes in its own way."""

    async def talk() -> list[str]:
        guard = Guard()
        heard = []
        for last in ("exit", "abort"):
            channel = Stdio(
                max_line_bytes=LIMIT,
                log=get_logger(),
                allowance=Allowance(lambda: 0.0),
                blackout=Blackout(()),
            )
            await channel.open(command("parent"), env={}, cwd=None, guard=guard)
            session = await session_on(channel)
            heard.append(await tool(session, "giant", characters=50_000))
            try:
                await tool(session, last)
            except UpstreamLost as lost:
                heard.append(lost.message.partition("(")[2].partition(")")[0])
            await session.close()
            assert state(pid_of(channel)) is None
        await guard.close()
        return heard

    with capture_logs():
        assert uvloop.run(talk()) == ["x" * 50_000, "exit code 7", "x" * 50_000, "ended by SIGABRT"]
    assert own_zombies() == []
