"""A server's process: what it sees, how it is ended, and that nothing of it stays."""

import asyncio
import ctypes
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from gateway.errors import UpstreamUnreachable
from gateway.upstreams import process as module
from gateway.upstreams.guard import Guard
from gateway.upstreams.process import ServerProcess, environment
from tests.support.processes import ended, gone, kill_group, own_zombies, state
from tests.support.waiting import until

ODDITY = Path(__file__).parents[1] / "servers" / "stdio_oddity.py"


class Started:
    """A process and all that it wrote."""

    def __init__(self) -> None:
        self.out = bytearray()
        self.err = bytearray()

    async def begin(self, guard: Guard, command: list[str], cwd: Path | None = None) -> None:
        self.process = await ServerProcess.start(
            command, env={"A": "b"}, cwd=cwd, guard=guard, hear=self.out.extend, overhear=self.err.extend
        )
        self.pid = self.process.pid

    async def said(self, word: bytes) -> bytes:
        """Wait for a word on standard error; the rest of its line."""

        async def look() -> bytes | None:
            return next((line for line in bytes(self.err).split(b"\n")[:-1] if line.startswith(word)), None)

        line = await until(look)
        assert line is not None
        return line[len(word) :]


Start = Callable[..., Awaitable[Started]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    guard, all_ = Guard(), list[Started]()

    async def begin(*oddities: str, command: list[str] | None = None, cwd: Path | None = None) -> Started:
        started = Started()
        await started.begin(guard, command or [sys.executable, "-I", "-S", str(ODDITY), *oddities], cwd)
        all_.append(started)
        return started

    yield begin
    for started in all_:
        kill_group(started.pid)
        await started.process.stop()
    await guard.close()


def test_a_process_inherits_what_it_needs_and_no_secrets() -> None:
    ours = {"PATH": "/bin", "HOME": "/h", "LANG": "C", "HOLDFAST_SEAL_KEY": "k", "AWS_SECRET_ACCESS_KEY": "s"}
    assert environment(ours, {"LANG": "de", "API": "x"}) == {
        "PATH": "/bin",
        "HOME": "/h",
        "LANG": "de",
        "API": "x",
    }


async def test_it_runs_where_and_with_what_it_is_told(start: Start, tmp_path: Path) -> None:
    code = "import os, json; print(json.dumps([dict(os.environ), os.getcwd(), os.getpgid(0) == os.getpid()]))"
    started = await start(command=[sys.executable, "-I", "-S", "-c", code], cwd=tmp_path)
    await started.process.ended()
    env, cwd, leads = json.loads(started.out)
    assert env.pop("HOLDFAST_GUARD")
    assert {name: value for name, value in env.items() if name != "LC_CTYPE"} == {"A": "b"}
    assert cwd == os.path.realpath(tmp_path)  # noqa: ASYNC240
    assert leads, "a process group of its own"
    assert os.getpgid(0) != started.pid


@pytest.mark.parametrize("command", [["/nonesuch/server"], ["/"], ["\0"], [str(ODDITY)]])
async def test_a_command_that_cannot_be_started_is_an_unreachable_server(
    start: Start, command: list[str]
) -> None:
    with pytest.raises(UpstreamUnreachable) as refused:
        await start(command=command)
    assert refused.value.message == "The upstream server's command cannot be started"


async def test_a_folder_that_is_not_there_is_told_in_the_log_only(start: Start, tmp_path: Path) -> None:
    with pytest.raises(UpstreamUnreachable) as refused:
        await start(cwd=tmp_path / "absent")
    assert "absent" not in refused.value.message
    assert str(refused.value) == f"cwd {tmp_path / 'absent'}: No such file or directory", (
        "and not the program's"
    )


async def test_a_server_that_ends_with_its_input_is_not_signalled(start: Start) -> None:
    started = await start()
    await started.process.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')

    async def answered() -> bool:
        return started.out.endswith(b"\n")

    await until(answered)
    await started.process.stop()
    assert started.process.ending == "exit code 0"
    assert state(started.pid) is None
    assert own_zombies() == []


async def test_a_server_that_lingers_gets_sigterm(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GOODBYE_SECONDS", 0.2)
    started = await start("lingers")
    await started.process.stop()
    assert b"input closed" in started.err, "its input was closed first"
    assert started.process.ending == "ended by SIGTERM"
    assert own_zombies() == []


async def test_a_server_that_ignores_everything_is_killed_with_its_children(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: closing stdin, SIGTERM, SIGKILL; no zombie."""
    monkeypatch.setattr(module, "_GOODBYE_SECONDS", 0.2)
    started = await start("stubborn", "parent")
    child = int(await started.said(b"child "))
    await started.process.stop()
    assert b"input closed" in started.err
    assert started.process.ending == "ended by SIGKILL"
    assert state(started.pid) is None
    await ended(child)
    assert own_zombies() == []


async def test_children_of_a_server_that_ended_by_itself_go_too(start: Start) -> None:
    started = await start("parent")
    child = int(await started.said(b"child "))
    await started.process.stop()
    assert started.process.ending == "exit code 0"
    await ended(child)


async def test_a_stop_in_a_hurry_kills_at_once(start: Start) -> None:
    """The pool cancels farewells that take too long; nothing may stay for that."""
    started = await start("stubborn")
    await started.process.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    stopping = asyncio.get_running_loop().create_task(started.process.stop())
    await started.said(b"input closed")
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert state(started.pid) is None
    assert own_zombies() == []


async def test_a_server_that_does_not_read_makes_writers_wait(start: Start) -> None:
    started = await start("ignores_input")
    await started.said(b"ready")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(fill(started), 0.2)


async def fill(started: Started) -> None:
    while True:
        await started.process.write(b"x" * 65536)


async def test_a_writer_that_waits_is_let_go_when_the_server_ends(start: Start) -> None:
    started = await start("ignores_input")
    await started.said(b"ready")
    task = asyncio.get_running_loop().create_task(fill(started))
    await asyncio.sleep(0)
    kill_group(started.pid)
    with pytest.raises(BrokenPipeError):
        await asyncio.wait_for(task, 5)


async def test_stopping_twice_is_stopping_once(start: Start) -> None:
    started = await start()
    await asyncio.gather(started.process.stop(), started.process.stop())
    await started.process.stop()
    await gone(started.pid)


async def test_orphans_that_fall_to_us_are_waited_for(start: Start) -> None:
    """In a container the gateway is process 1: whom a server leaves behind becomes our child."""
    subreaper = 36
    libc = ctypes.CDLL(None)
    libc.prctl(subreaper, 1, 0, 0, 0)
    try:
        started = await start("parent")
        child = int(await started.said(b"child "))
        await started.process.stop()
        assert state(child) is None, "not even a zombie"
    finally:
        libc.prctl(subreaper, 0, 0, 0, 0)
