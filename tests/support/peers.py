"""Starts the real peers of the tests as processes of their own: legacy servers, and the TypeScript client.

Knows where `bash tests/run` puts them, nothing of the gateway. A peer that is missing is a failure, never a
skip: a proof that was not run is no proof.
"""

import asyncio
import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".tools"
NODE = TOOLS / "bin" / "node"
SERVERS = ROOT / "tests" / "servers"
TS_CLIENT = ROOT / "tests" / "peers" / "ts_client.mjs"
CONFORMANCE = TOOLS / "node/modern/node_modules/@modelcontextprotocol/conformance/dist/index.js"

PYTHON_KINDS = ("py-1.12", "py-1.26", "py-1.30")
TYPESCRIPT_KINDS = ("ts-1.12", "ts-1.32")
FIXTURE_KINDS = PYTHON_KINDS + TYPESCRIPT_KINDS
EVERYTHING_KINDS = ("everything-2025.9.25", "everything-2026.8.31")
ONE_CLIENT_KIND = "everything-2025.3.19"
"""Knows HTTP+SSE and stdio only, serves one client, and ends when that leaves."""
FASTMCP_KINDS = ("fastmcp-2.14", "fastmcp-3.4")
"""Both on the Python SDK 1.30."""
CONFORMANCE_KINDS = ("conformance-py", "conformance-ts")
"""What the official suite wants of a server, on py-1.30 and on ts-1.32."""
KINDS = FIXTURE_KINDS + EVERYTHING_KINDS + CONFORMANCE_KINDS

MODERN_KIND = "py-2.3"
"""What a legacy server is upgraded to: the SDK of this very environment."""

PUBLISHED_KINDS = ("filesystem", "memory", "sequential-thinking")
"""Servers as published, which speak stdio only."""

_START_SECONDS = 30.0  # five peers starting at once on two busy cores took 8 s
_ATTEMPTS = 3


class PeerFailed(AssertionError):
    """A peer is not installed, did not start, or ended badly."""


@dataclass(frozen=True, slots=True)
class Running:
    """A legacy server that accepts connections."""

    kind: str
    url: str
    port: int
    process: subprocess.Popen[bytes]
    log: Path

    async def observed(self) -> dict[str, Any]:
        """What one of our fixture servers saw: `http` (in order), `events`, `counters`, `sessions` (open)."""
        return await asyncio.to_thread(self._side_channel, "_observed", "GET")

    async def forget_sessions(self) -> None:
        """Make a fixture server forget every session id, as a restart would."""
        await asyncio.to_thread(self._side_channel, "_forget", "POST")

    def kill(self) -> None:
        """End the process and its children at once, without a goodbye on any stream."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(5)

    def said(self) -> str:
        """The end of what the process wrote."""
        return self.log.read_text("utf-8", "replace")[-4000:] if self.log.exists() else ""

    def _side_channel(self, path: str, method: str) -> dict[str, Any]:
        request = Request(f"http://127.0.0.1:{self.port}/{path}", method=method)
        with urlopen(request, timeout=5) as response:  # noqa: S310
            value: dict[str, Any] = json.load(response)
            return value


def launch(
    kind: str,
    *,
    port: int = 0,
    json_response: bool = False,
    stateless: bool = False,
    event_store: bool = False,
    transport: str = "streamable-http",
    arguments: Sequence[str] = (),
) -> Running:
    """Start a legacy server and wait until it accepts; `stop` ends it. Its transport may also be `sse`.

    `arguments` go to the fixture as they are (`--bad-tools`, `--page-size 3`, `--roots-on-init`, …).
    """
    if kind in EVERYTHING_KINDS or kind == ONE_CLIENT_KIND:
        if json_response or stateless or event_store or arguments:
            raise PeerFailed(f"{kind} takes no options")
        return _launch_everything(kind, port, transport)
    switches = [
        *(["--json-response"] if json_response else []),
        *(["--stateless"] if stateless else []),
        *(["--event-store"] if event_store else []),
        *(["--transport", "sse"] if transport == "sse" else []),
        *arguments,
    ]
    command = [*fixture_command(kind), "--port", str(port), *switches]
    running = _spawn(kind, command, stdout=subprocess.PIPE)
    try:
        assert running.process.stdout is not None
        found = _announced_port(running, running.process.stdout)
    except BaseException:
        stop(running)
        raise
    return _at(running, found, transport)


def stop(running: Running) -> None:
    """End a server and everything that it started."""
    running.kill()
    for pipe in (running.process.stdin, running.process.stdout):
        if pipe is not None:
            pipe.close()
    shutil.rmtree(running.log.parent, ignore_errors=True)


@contextlib.asynccontextmanager
async def start_legacy(kind: str, **options: Any) -> AsyncIterator[Running]:
    """Run a legacy server of one's own for the time of the block; options as for `launch`."""
    running = await asyncio.to_thread(launch, kind, **options)
    try:
        yield running
    finally:
        await asyncio.to_thread(stop, running)


class LegacyServers:
    """Legacy servers shared by many tests: each combination is started once, all end together."""

    def __init__(self) -> None:
        self._running: dict[str, Running] = {}

    def get(self, kind: str, **options: Any) -> Running:
        """Give the shared server of this kind; a test that kills one starts its own instead."""
        key = json.dumps([kind, options], sort_keys=True)
        found = self._running.get(key)
        if found is None or found.process.poll() is not None:
            found = self._running[key] = launch(kind, **options)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for running in self._running.values():
            stop(running)


async def ts_client(plan: Mapping[str, Any], timeout: float = 30.0) -> dict[str, Any]:  # noqa: ASYNC109
    """Carry out a plan with the modern TypeScript client; the plan is described in `ts_client.mjs`."""
    process = await asyncio.create_subprocess_exec(
        _present(NODE),
        str(TS_CLIENT),
        _present(TOOLS / "node" / "modern"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(json.dumps(plan).encode()), timeout)
    except TimeoutError:
        raise PeerFailed(f"the TypeScript client was not done after {timeout} s") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if process.returncode != 0:
        raise PeerFailed(f"the TypeScript client failed:\n{err.decode(errors='replace')[-4000:]}")
    report: dict[str, Any] = json.loads(out)
    return report


def _present(path: Path) -> str:
    if not path.exists():
        raise PeerFailed(
            f"{path.relative_to(ROOT)} is missing: run `bash tests/run` once, it installs the peers"
        )
    return str(path)


def fixture_command(kind: str) -> list[str]:
    """What starts a fixture server, switches excepted; for gateways that start their server themselves."""
    if kind == "conformance-py":
        return [_present(TOOLS / "py-mcp-1.30" / "bin" / "python"), str(SERVERS / "conformance_legacy.py")]
    if kind == "conformance-ts":
        sdk = _present(TOOLS / "node" / "ts-1.32")
        return [_present(NODE), str(SERVERS / "conformance_legacy.mjs"), "--sdk", sdk]
    if kind == MODERN_KIND:
        return [sys.executable, str(SERVERS / "py_modern.py")]
    release = kind.partition("-")[2]
    if kind in FASTMCP_KINDS:
        return [_present(TOOLS / f"py-{kind}" / "bin" / "python"), str(SERVERS / "fastmcp_legacy.py")]
    if kind in PYTHON_KINDS:
        return [_present(TOOLS / f"py-mcp-{release}" / "bin" / "python"), str(SERVERS / "py_legacy.py")]
    if kind in TYPESCRIPT_KINDS:
        sdk = _present(TOOLS / "node" / kind)
        return [_present(NODE), str(SERVERS / "ts_legacy.mjs"), "--sdk", sdk]
    raise PeerFailed(f"no such legacy server: {kind} (there are {', '.join(KINDS)})")


def stdio_command(kind: str, arguments: Sequence[str] = ()) -> list[str]:
    """What starts a server over stdio: for the gateway to start."""
    if kind in EVERYTHING_KINDS:
        return [_present(NODE), _present(_published(kind, "everything")), "stdio"]
    if kind == ONE_CLIENT_KIND:
        return [_present(NODE), _present(_published(kind, "everything"))]
    if kind in PUBLISHED_KINDS:
        return [_present(NODE), _present(_published("servers-2026.8.31", kind)), *arguments]
    return [*fixture_command(kind), "--transport", "stdio", *arguments]


def _published(folder: str, server: str) -> Path:
    return TOOLS / "node" / folder / f"node_modules/@modelcontextprotocol/server-{server}/dist/index.js"


def _launch_everything(kind: str, port: int, transport: str) -> Running:
    main = _published(kind, "everything")
    mode = "sse" if transport == "sse" else "streamableHttp"
    if kind == ONE_CLIENT_KIND:  # a program for each transport, then
        main = main.with_name("sse.js")
    command = [_present(NODE), _present(main), mode]
    for _ in range(_ATTEMPTS):
        # It does not tell which port it got, so one is chosen here; another process may be faster to take it.
        chosen = port or _free_port()
        running = _spawn(kind, command, {"PORT": str(chosen)})
        if _accepts(running, chosen):
            return _at(running, chosen, transport)
        words = running.said()
        stop(running)
    raise PeerFailed(f"{kind} did not start:\n{words}")


def _spawn(
    kind: str, command: list[str], env: Mapping[str, str] | None = None, stdout: int | None = None
) -> Running:
    log = Path(tempfile.mkdtemp(prefix="peer-")) / "log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # closes when this process ends, however it ends: fixtures end with it
            stdout=sink if stdout is None else stdout,
            stderr=sink,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
    return Running(kind, "", 0, process, log)


def _at(running: Running, port: int, transport: str) -> Running:
    path = "sse" if transport == "sse" else "mcp"
    return Running(running.kind, f"http://127.0.0.1:{port}/{path}", port, running.process, running.log)


def _announced_port(running: Running, stdout: IO[bytes]) -> int:
    words = b""
    for _ in _until_deadline():
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            part = os.read(stdout.fileno(), 4096) if selector.select(timeout=1) else None
        if part == b"":
            break
        words += part or b""
        if words.endswith(b"\n") and words.startswith(b"LISTENING "):
            return int(words.split()[1])
    raise PeerFailed(f"{running.kind} did not start:\n{running.said()}")


def _accepts(running: Running, port: int) -> bool:
    for _ in _until_deadline():
        if running.process.poll() is not None:
            return False
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return "EADDRINUSE" not in running.said()
        time.sleep(0.05)
    return False


def _until_deadline() -> Iterator[None]:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        yield


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
