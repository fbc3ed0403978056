"""Legacy servers over stdio, started by the gateway: published ones, and our own on every release of the SDKs."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.relay import relay
from tests.support.everything import RELEASES, Release, Visitor
from tests.support.gateways import UPSTREAM, Gateways, Served
from tests.support.matrix import SETTLE, shortcomings
from tests.support.peers import FIXTURE_KINDS, stdio_command
from tests.support.person import Person
from tests.support.processes import children, ended, gone, kill_group, own_zombies
from tests.support.python_client import PythonClient, text_of
from tests.support.waiting import until
from tests.support.wire import Wire, abandoned, accept

Json = dict[str, Any]
NEWEST = ("py-1.30", "ts-1.32")
ODDITY = [sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "servers" / "stdio_oddity.py")]
POOLED: Json = {"mode": "pooled"}
"""Python servers take a second to start: one process serves a whole test unless that is what is tested."""


@pytest.fixture
async def serving(gateway: Gateways) -> AsyncIterator[Callable[..., Awaitable[Served]]]:
    """Start a gateway that starts this command; in the end nothing of it may be left, not even a zombie."""

    async def start(command: list[str], **upstream: Any) -> Served:
        return await gateway.start(
            {"listen": "127.0.0.1:0", "upstreams": {UPSTREAM: {"command": command, **upstream}}}
        )

    before = set(children_now())
    yield start
    await gateway.stop()
    assert set(children_now()) <= before
    assert own_zombies() == []


def children_now() -> list[int]:
    return children(os.getpid())


Serving = Callable[..., Awaitable[Served]]


# --- the bridge --------------------------------------------------------------------------------


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", FIXTURE_KINDS)
async def test_every_conversation_goes_as_with_a_modern_server(serving: Serving, kind: str) -> None:
    """Issue: the whole bridge matrix over stdio."""
    served = await serving(stdio_command(kind), settle=SETTLE, sessions=POOLED)
    assert await shortcomings(served.url, kind) == {}


@pytest.mark.parametrize("kind", FIXTURE_KINDS)
async def test_progress_logs_and_large_results_come_whole_and_in_order(serving: Serving, kind: str) -> None:
    served = await serving(stdio_command(kind), sessions=POOLED, settle="200ms")

    async with PythonClient(served.url, log_level="warning") as client:
        await client.tool("progress", {"steps": 3})
        first, client.progress = client.progress, []
        await client.tool("ask_then_progress", {"steps": 3})
        await client.tool("logs", {"levels": ["debug", "warning", "error"]})
        three = await client.carry_out("tools/call", {"name": "mixed_three", "arguments": {}})
        large = await client.tool("big", {"characters": 3_000_000})
        echoed = await client.tool("echo", {"text": "line\nline\r\n\u2028" * 10_000})

    assert first == client.progress == [(1, 3), (2, 3), (3, 3)]
    assert [record.level for record in client.logs] == ["warning", "error"]
    assert json.loads(three) == {"name": "Ann", "sampled": "Paris", "roots": ["file:///one", "file:///two"]}
    assert len(text_of(large)) == 3_000_000
    assert text_of(echoed) == "line\nline\r\n\u2028" * 10_000


@pytest.mark.parametrize("kind", NEWEST)
async def test_a_client_that_leaves_cancels_the_running_call(
    serving: Serving, kind: str, tmp_path: Path
) -> None:
    events = tmp_path / "events"
    served = await serving(stdio_command(kind, ["--events", str(events)]), sessions={"warm": 0})

    def happened(event: str) -> Callable[[], Awaitable[bool]]:
        async def look() -> bool:
            return await asyncio.to_thread(lambda: events.exists() and event in events.read_text("utf-8"))

        return look

    async with Wire(served.url) as wire:
        running = asyncio.ensure_future(wire.tool("slow", {"seconds": 30, "tag": "t"}))
        await until(happened("slow:started:t"))
        await abandoned(running)
        await until(happened("slow:cancelled:t"))


# --- servers as published ----------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.kind)
async def test_everything_asks_over_stdio(serving: Serving, release: Release) -> None:
    served = await serving(stdio_command(release.kind), sessions=POOLED)

    async with PythonClient(served.url, person=Visitor(release.form)) as client:
        elicited = await client.tool(release.elicit)
        drawn = await client.tool(release.sample, {"prompt": "Capital?", "maxTokens": 20})
        rooted = await client.tool(release.roots)
        total = await client.tool(release.sum, {"a": 1, "b": 2})

    assert release.told in "\n".join(getattr(block, "text", "") for block in elicited.content)
    assert "Paris" in text_of(drawn)
    assert "file:///one" in text_of(rooted)
    assert "3" in text_of(total)


class Landlord(Person):
    """Has one folder to show."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def answer(self, method: str, params: Json) -> Json:
        if method != "roots/list":
            return super().answer(method, params)
        self.asked.append((method, params))
        return {"roots": [{"uri": self.folder.as_uri(), "name": "Mine"}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hello.txt").write_text("Hello from a file", "utf-8")
    return tmp_path


async def test_the_filesystem_server_learns_the_client_s_folders_before_its_first_call(
    serving: Serving, folder: Path
) -> None:
    """Issue: `roots/list` comes at `initialized`; its answer decides what the call may read.

    Anonymous callers get a process per call, so each call proves it again, on warm spares too.
    """
    served = await serving(stdio_command("filesystem"), sessions={"warm": 1})

    async with PythonClient(served.url, person=Landlord(folder)) as client:
        for _ in range(3):
            read = await client.tool("read_text_file", {"path": str(folder / "hello.txt")})
            assert text_of(read) == "Hello from a file"
        outside = await client.tool("read_text_file", {"path": "/etc/passwd"})
        listed = await client.client.list_tools()

    assert outside.is_error
    assert "Access denied" in text_of(outside)
    assert client.person.kinds == ["roots/list"] * 4
    assert "read_text_file" in {tool.name for tool in listed.tools}


async def test_the_filesystem_server_that_died_meanwhile_learns_the_folders_again_before_the_call(
    serving: Serving, folder: Path
) -> None:
    """Ours: a call on a new process waits for its first question as well, and the user is asked once."""
    others = set(children_now())
    served = await serving(stdio_command("filesystem"), sessions={"warm": 0})

    async with Wire(served.url) as wire:
        asked = await wire.tool("read_text_file", {"path": str(folder / "hello.txt")})
        assert asked.asked["roots-1"]["method"] == "roots/list"
        for pid in set(children_now()) - others:
            if "server-filesystem" in _words(pid):
                kill_group(pid)
                await gone(pid)
        read = await wire.retry(asked, {"roots-1": {"roots": [{"uri": folder.as_uri()}]}})

    assert read.text == "Hello from a file"


async def test_the_filesystem_server_takes_folders_from_the_configuration(
    serving: Serving, folder: Path
) -> None:
    """`roots: static`: answered at `initialized` by the gateway; nobody is asked, and the call waits for it."""
    asks = {"roots": "static", "static_roots": [{"uri": folder.as_uri()}]}
    served = await serving(stdio_command("filesystem"), sessions={"warm": 0}, asks=asks)

    async with PythonClient(served.url) as client:
        for _ in range(2):
            read = await client.tool("read_text_file", {"path": str(folder / "hello.txt")})
            assert text_of(read) == "Hello from a file"

    assert client.person.kinds == []


async def test_the_filesystem_server_serves_the_folders_of_its_command_to_clients_without_roots(
    serving: Serving, folder: Path
) -> None:
    served = await serving(stdio_command("filesystem", [str(folder)]), sessions={"warm": 0})

    async with PythonClient(served.url, without=frozenset({"roots"})) as client:
        read = await client.tool("read_text_file", {"path": str(folder / "hello.txt")})

    assert text_of(read) == "Hello from a file"


async def test_the_memory_server_keeps_its_memory_where_its_environment_says(
    serving: Serving, tmp_path: Path
) -> None:
    file = tmp_path / "memory.jsonl"
    served = await serving(stdio_command("memory"), env={"MEMORY_FILE_PATH": str(file)}, sessions={"warm": 0})
    ann = {"name": "Ann", "entityType": "person", "observations": ["likes rain"]}

    async with PythonClient(served.url) as client:
        await client.tool("create_entities", {"entities": [ann]})
        graph = await client.tool("read_graph")  # by another process

    assert "likes rain" in text_of(graph)
    assert "likes rain" in await asyncio.to_thread(file.read_text, "utf-8")


async def test_the_sequential_thinking_server_thinks(serving: Serving) -> None:
    served = await serving(stdio_command("sequential-thinking"), sessions=POOLED)
    thought = {"thought": "First", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 2}

    async with PythonClient(served.url) as client:
        await client.tool("sequentialthinking", thought)
        second = await client.tool("sequentialthinking", {**thought, "thoughtNumber": 2})

    assert json.loads(text_of(second))["thoughtHistoryLength"] == 2, "one process, one history"


# --- processes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "distinct"), [("auto", 3), ("fresh", 3), ("pooled", 1), ("affinity", 1)])
async def test_the_mode_decides_how_many_processes_calls_use(
    serving: Serving, mode: str, distinct: int
) -> None:
    """Design: a process is a session with an identity, so anonymous callers share none under `auto`."""
    served = await serving(ODDITY, sessions={"mode": mode, "warm": 1})

    async with Wire(served.url) as wire:
        pids = [(await wire.tool("pid")).text for _ in range(3)]

    assert len(set(pids)) == distinct


async def test_a_burst_of_calls_does_not_start_a_process_each(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: 200 at once would take minutes to start, and more memory than there is; a call takes milliseconds."""
    monkeypatch.setattr(relay, "_MOST_STARTING", 1)
    served = await serving(ODDITY, sessions={"mode": "pooled", "warm": 0})

    async with Wire(served.url) as wire:
        pids = [told.text for told in await asyncio.gather(*(wire.tool("pid") for _ in range(30)))]

    assert len(set(pids)) < 15


async def test_a_crash_names_the_exit_code_and_nothing_of_what_was_printed(serving: Serving) -> None:
    served = await serving(ODDITY)

    async with Wire(served.url) as wire:
        lost = await wire.tool("exit", {"code": 7})
        after = await wire.tool("echo", {"text": "again"})

    assert lost.error["code"] == -32603
    assert lost.error["message"] == (
        "The upstream server's process ended (exit code 7) before it answered; the call may have run"
    )
    assert b"hunter2" not in lost.body
    assert after.text == "again"


@pytest.mark.parametrize("kind", NEWEST)
async def test_a_server_that_crashes_while_held_is_told_to_who_comes_back(
    serving: Serving, kind: str
) -> None:
    others = set(children_now())  # servers that this worker has started for other tests
    served = await serving(stdio_command(kind), sessions={"warm": 0})

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_name")
        for pid in set(children_now()) - others:
            if "--transport" in _words(pid):
                kill_group(pid)
                await gone(pid)
        told = await wire.retry(asked, {"name": accept(name="Ann")})

    assert "ended by SIGKILL" in told.error["message"]


async def test_a_command_that_does_not_work_is_a_clear_error_and_discovery_goes_on(serving: Serving) -> None:
    served = await serving([*ODDITY, "fails"])
    absent = await serving(["/nonesuch/server"])

    async with Wire(served.url) as wire, Wire(absent.url) as nowhere:
        discovered = await wire.request("server/discover")
        failed = await wire.tool("echo")
        unstarted = await nowhere.tool("echo")

    assert discovered.result["resultType"] == "complete"
    assert failed.error["message"] == "The upstream server's process ended while starting (exit code 3)"
    assert unstarted.error["message"] == "The upstream server's command cannot be started"


# --- the end of the gateway --------------------------------------------------------------------


@asynccontextmanager
async def separate_gateway(tmp_path: Path, *oddities: str) -> AsyncIterator[tuple[int, list[int]]]:
    """A gateway in a process of its own; its pid, and those of the servers that it started."""
    config = tmp_path / "holdfast.yaml"
    server = {"command": [*ODDITY, *oddities], "sessions": {"warm": 0}}
    await asyncio.to_thread(
        config.write_text, json.dumps({"listen": "127.0.0.1:0", "upstreams": {"x": server}}), "utf-8"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "gateway", "serve", "--config", str(config)),
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    group: list[int] = []

    def servers() -> list[int]:
        started = [pid for pid in children(process.pid) if "stdio_oddity" in _words(pid)]
        return started + [child for pid in started for child in children(pid)]

    async def all_started() -> list[int]:
        found = servers()
        return found if len(found) >= (2 if "parent" in oddities else 1) else []

    try:
        group = await until(all_started, 15)
        yield process.pid, group
    finally:
        for pid in (process.pid, *group):
            kill_group(pid)
        await process.wait()


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""


async def test_a_killed_gateway_leaves_no_server_behind(tmp_path: Path) -> None:
    """Issue: no process outlives the gateway; not one that ignores its input and SIGTERM, nor its child."""
    async with separate_gateway(tmp_path, "stubborn", "parent") as (gateway, servers):
        assert len(servers) == 2
        signal_process(gateway, signal.SIGKILL)
        for pid in servers:
            await ended(pid)


async def test_a_gateway_that_is_told_to_stop_ends_its_servers_first(tmp_path: Path) -> None:
    async with separate_gateway(tmp_path, "parent") as (gateway, servers):
        signal_process(gateway, signal.SIGTERM)
        for pid in (*servers, gateway):
            await ended(pid, 10)


def signal_process(pid: int, number: signal.Signals) -> None:
    os.kill(pid, number)
