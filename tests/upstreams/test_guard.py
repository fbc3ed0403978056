"""Nobody outlives the gateway: the guard ends what is left when the process that watched over it is killed."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
from structlog.testing import capture_logs

from gateway.upstreams.guard import Guard
from tests.support.processes import children, ended, kill_group, own_zombies, state
from tests.support.waiting import until

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
WATCHED = f"""
import asyncio, subprocess, sys
from gateway.upstreams.guard import Guard

child = subprocess.Popen([sys.executable, "-I", "-S", "-c", {STUBBORN!r}],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
child.stdout.readline()
Guard().watch(child.pid)
print(child.pid, flush=True)
sys.stdin.read()
"""


@contextmanager
def stubborn(env: dict[str, str] | None = None) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-I", "-S", "-c", STUBBORN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True, env=env) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            kill_group(process.pid)


@pytest.fixture
async def guard() -> AsyncIterator[Guard]:
    watching = Guard()
    yield watching
    await watching.close()


async def test_a_killed_gateway_takes_its_processes_along() -> None:
    """Issue: no process outlives the gateway; this one ignores SIGTERM and its input."""
    gateway = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WATCHED, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert gateway.stdout is not None
    child = int(await asyncio.wait_for(gateway.stdout.readline(), 10))
    (guard,) = set(children(gateway.pid)) - {child}
    try:
        gateway.kill()
        await gateway.wait()
        await ended(child)
        await ended(guard)
    finally:
        kill_group(child)


async def test_a_process_that_nobody_told_of_is_found_by_its_mark(guard: Guard) -> None:
    """The gateway may be killed between starting a process and telling the guard; a server's child may leave."""
    with stubborn(guard.mark()) as marked, stubborn({"HOLDFAST_GUARD": "somebody else's"}) as other:
        await guard.close()
        await asyncio.to_thread(marked.wait, 5)
        assert marked.returncode == -signal.SIGKILL
        assert state(other.pid) == "S"


async def test_nothing_is_started_before_there_is_something_to_watch(guard: Guard) -> None:
    before = children(os.getpid())
    guard.release(12345)
    assert children(os.getpid()) == before


async def test_what_was_released_is_left_alone(guard: Guard) -> None:
    with stubborn() as kept, stubborn() as watched:
        guard.watch(kept.pid)
        guard.watch(watched.pid)
        guard.release(kept.pid)
        await guard.close()
        await asyncio.to_thread(watched.wait, 5)
        assert state(kept.pid) == "S"
        assert watched.returncode == -signal.SIGKILL


async def test_signals_to_the_gateway_s_group_do_not_end_the_guard(guard: Guard) -> None:
    """Ctrl-C reaches the whole group, and systemd signals everybody: the gateway still has to drain."""
    with stubborn() as watched:
        guard.watch(watched.pid)
        assert guard._process is not None
        assert os.getpgid(guard._process.pid) == guard._process.pid
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            await until(lambda number=number: ignores(guard, number))  # type: ignore[misc]
            guard._process.send_signal(number)
        assert guard._process.poll() is None


async def ignores(guard: Guard, number: int) -> bool:
    assert guard._process is not None
    with open(f"/proc/{guard._process.pid}/status", encoding="utf-8") as status:  # noqa: ASYNC230, PTH123
        mask = next(line for line in status if line.startswith("SigIgn"))
    return bool(int(mask.split()[1], 16) >> (number - 1) & 1)


async def test_a_guard_that_was_killed_is_replaced_and_told_everything(guard: Guard) -> None:
    with stubborn() as first, stubborn() as second:
        guard.watch(first.pid)
        assert guard._process is not None
        guard._process.kill()
        guard._process.wait(5)
        guard.watch(second.pid)
        await guard.close()
        for process in (first, second):
            await asyncio.to_thread(process.wait, 5)
            assert process.returncode == -signal.SIGKILL


async def test_closing_leaves_no_zombie(guard: Guard) -> None:
    with stubborn() as watched:
        guard.watch(watched.pid)
        guard.release(watched.pid)
        await guard.close()
        assert own_zombies() == []
    await guard.close()


async def test_without_a_guard_servers_still_run(guard: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonesuch")
    with capture_logs() as logged:
        guard.watch(12345)
        guard.release(12345)
    assert [line["event"] for line in logged] == ["guard_failed"]
