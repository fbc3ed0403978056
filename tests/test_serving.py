"""The process: how it stops, how it fails to start, and what its log never says."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.scripted import Scripted, Turn, ask, asking, text_result
from tests.support.serving import Serving, free_port, serving
from tests.support.wire import Answer, Wire, accept


class Tools(Scripted):
    """`ask` asks, `wait` waits for `release`, `hang` never ends."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.release = asyncio.Event()
        self.on["tools/call"] = self._call

    async def _call(self, turn: Turn) -> None:
        match turn.message["params"]["name"]:
            case "ask":
                await asking(turn)
            case "wait":
                await self.release.wait()
                await turn.result(text_result("finished"))
            case _:
                await turn.until_left()

    def called(self, name: str) -> Turn:
        (found,) = [turn for turn in self.seen("tools/call") if turn.message["params"]["name"] == name]
        return found


@pytest.fixture
async def server() -> AsyncIterator[Tools]:
    async with Tools() as tools:
        yield tools


async def started(client: Wire, server: Tools, name: str) -> "asyncio.Task[Answer]":
    """A call that is under way."""
    before = len(server.seen("tools/call"))
    calling = asyncio.ensure_future(client.tool(name))
    await server.wait("tools/call", before + 1)
    return calling


# --- the end -------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_cleanly(tmp_path: Path, server: Tools, number: signal.Signals) -> None:
    """Running rounds end, held calls are cancelled upstream, sessions are given back, exit code 0."""
    async with serving(tmp_path, {"url": server.url}, drain="3s") as gateway, Wire(gateway.url) as client:
        await client.tool("ask")
        running = await started(client, server, "wait")
        gateway.tell(number)
        await gateway.until_readiness(503)
        assert not running.done()
        server.release.set()
        assert (await running).text == "finished"
        assert await gateway.ended() == 0
    (cancelled,) = server.seen("notifications/cancelled")
    assert cancelled.message["params"]["requestId"] == server.called("ask").id
    (answer,) = server.seen("answer")
    assert answer.message["result"] == {"action": "cancel"}
    assert server.known == set(), "every session was ended"
    events = [json.loads(line)["event"] for line in gateway.said().splitlines()]
    assert events[-1] == "stopped"
    assert "draining" in events
    assert "internal_error" not in events
    assert "library" not in events, gateway.said()


async def test_while_it_drains_who_comes_back_with_an_answer_is_served(tmp_path: Path, server: Tools) -> None:
    """Ours: a single replica waits for its holds; it ends when the last of them has, and not later."""
    async with serving(tmp_path, {"url": server.url}) as gateway, Wire(gateway.url) as client:
        asked = await client.tool("ask")
        gateway.tell()
        await gateway.until_readiness(503)
        [key] = asked.asked
        filled = dict.fromkeys(asked.asked[key]["params"]["requestedSchema"]["properties"], "Ann")
        done = await client.retry(asked, {key: accept(**filled)})
        assert done.result["resultType"] == "complete"
        assert await gateway.ended() == 0
    lines = [json.loads(line) for line in gateway.said().splitlines()]
    [told] = [line for line in lines if line["event"] == "draining"]
    assert (told["waiting"], told["most_seconds"]) == (1, 25), "or Ctrl-C looks as if it did nothing"
    assert not server.seen("notifications/cancelled")
    assert server.known == set()


async def test_while_it_drains_nobody_new_is_served(tmp_path: Path, server: Tools) -> None:
    async with serving(tmp_path, {"url": server.url}) as gateway, Wire(gateway.url) as client:
        running = await started(client, server, "wait")
        gateway.tell()
        await gateway.until_readiness(503)
        refused = await client.tool("ask")
        assert (refused.status, refused.error["code"]) == (503, -32603)
        assert refused.headers["Retry-After"]
        server.release.set()
        assert (await running).text == "finished"
        assert await gateway.ended() == 0


async def test_with_a_lame_duck_time_it_serves_on_while_probes_already_say_no(
    tmp_path: Path, server: Tools
) -> None:
    async with (
        serving(tmp_path, {"url": server.url}, lame_duck="1s") as gateway,
        Wire(gateway.url) as client,
    ):
        gateway.tell()
        await gateway.until_readiness(503)
        server.release.set()
        assert (await client.tool("wait")).text == "finished"
        assert await gateway.ended() == 0


async def test_a_drain_that_takes_too_long_is_cut(tmp_path: Path, server: Tools) -> None:
    """Design: a stream ends with a message, also this one."""
    async with (
        serving(tmp_path, {"url": server.url}, drain="200ms") as gateway,
        Wire(gateway.url) as client,
    ):
        running = await started(client, server, "hang")
        gateway.tell()
        assert await gateway.ended() == 0
        told = await running
        assert (told.status, told.error["code"], told.error["data"]["reason"]) == (
            200,
            -31001,
            "gateway_stopped",
        )
    await server.wait("notifications/cancelled")


async def test_a_second_signal_ends_it_at_once(tmp_path: Path, server: Tools) -> None:
    """Also when the upstream takes no farewell."""
    async with serving(tmp_path, {"url": server.url}) as gateway, Wire(gateway.url) as client:
        running = await started(client, server, "hang")
        server.on["DELETE"] = server.on["notifications/cancelled"] = Turn.until_left
        gateway.tell()
        await gateway.until_readiness(503)
        gateway.tell()
        assert await gateway.ended(8) == 2, "and the drain would be 25 s"
        await asyncio.gather(running, return_exceptions=True)
    assert "internal_error" not in gateway.said()


async def test_it_ends_without_an_upstream_too(tmp_path: Path, server: Tools) -> None:
    async with serving(tmp_path, {"url": server.url}) as gateway, Wire(gateway.url) as client:
        await client.tool("ask")
        await server.stop()
        gateway.tell()
        assert await gateway.ended() == 0
    assert "internal_error" not in gateway.said()


# --- the beginning -------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["listen", "admin"])
async def test_a_port_that_is_taken_ends_it_with_a_reason(tmp_path: Path, server: Tools, which: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        taken = {"port": port} if which == "listen" else {"admin": f"127.0.0.1:{port}"}
        async with serving(tmp_path, {"url": server.url}, wait=False, **taken) as gateway:
            assert await gateway.ended(15) == 1
    said = gateway.said()
    assert f"holdfast: cannot start: cannot listen on 127.0.0.1:{port}: Address already in use\n" in said
    assert "Traceback" not in said
    assert "internal_error" not in said
    assert '"library"' not in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_signals_are_heeded_from_the_start(tmp_path: Path, number: signal.Signals) -> None:
    """Ours: process 1 of a container that does not heed one is killed, after all the time that it has for ending."""
    file = tmp_path / "holdfast.yaml"
    os.mkfifo(file)
    program = [sys.executable, "-m", "gateway", "serve", "--config", str(file)]
    process = await asyncio.create_subprocess_exec(*program, stderr=asyncio.subprocess.PIPE)
    async with asyncio.timeout(15):
        with await asyncio.to_thread(file.open, "w"):  # it reads, and waits for us to write
            process.send_signal(number)
            if number is signal.SIGTERM:
                await process.wait()
        _, said = await process.communicate()
    if number is signal.SIGTERM:
        assert (process.returncode, said) == (0, b"")
    else:
        assert (process.returncode, b"is empty" in said) == (1, True)


async def test_it_starts_without_its_upstream(tmp_path: Path) -> None:
    async with serving(tmp_path, {"url": f"http://127.0.0.1:{free_port()}/mcp"}) as gateway:
        assert await gateway.readiness() == 200
        gateway.tell()
        assert await gateway.ended() == 0


# --- what the log never says -----------------------------------------------------------------------

KEY = "c2VhbGluZy1jYW5hcnktc2VhbGluZy1jYW5hcnktMDE"
CANARIES = ["CANARY", KEY, "Bearer", "session-1"]


async def garbage(turn: Turn) -> None:
    await turn.stream()
    await turn.event("CANARY-heartbeat")
    await turn.event('{"jsonrpc": "2.0", "result": CANARY-garbage')
    await turn.until_left()


async def refuse(turn: Turn) -> None:
    error = {"code": -32050, "message": "CANARY-error", "data": {"why": "CANARY-data"}}
    await turn.json({"jsonrpc": "2.0", "id": turn.id, "error": error})


async def page(turn: Turn) -> None:
    await turn.reply(500, "<html>CANARY-page</html>")


async def challenge(turn: Turn) -> None:
    await turn.reply(401, "CANARY-body", {"WWW-Authenticate": 'Bearer realm="CANARY-challenge"'})


async def tell_and_ask(turn: Turn) -> None:
    await turn.stream()
    await turn.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "CANARY-log"}})
    number = turn.server.number("ask")
    question = {"message": "CANARY-question", "requestedSchema": {"type": "object"}}
    await turn.event(ask(number, params=question))
    await turn.answered(number)
    await turn.event(turn.answer(text_result("CANARY-result")))
    await turn.finish()


async def misuse(gateway: Serving, server: Tools, client: Wire) -> list[str]:
    """Everything that may tempt a log into saying too much; the tickets that were given out meanwhile."""
    arguments = {"secret": "CANARY-argument"}
    server.on["tools/call"] = tell_and_ask
    asked = await client.tool("echo", arguments)
    await client.retry(asked, {"elicitation-1": {"action": "CANARY-action"}})
    await client.retry(asked, {"elicitation-1": accept(password="CANARY-answer")})
    await client.retry(asked, {"elicitation-1": accept(password="CANARY-other-answer")})
    await client.retry(asked, changes={"arguments": {"secret": "CANARY-changed"}})
    await client.retry(asked, state="CANARY-state")
    for script in (garbage, refuse, page, challenge):
        server.on["tools/call"] = script
        await client.tool("echo", arguments)
    server.on["tools/call"] = tell_and_ask
    held = await client.tool("echo", arguments)
    await server.stop()
    await client.retry(held, {"elicitation-1": accept(password="CANARY-late-answer")})
    await client.tool("echo", arguments)
    return [asked.state, held.state]


async def test_no_secret_and_no_payload_is_ever_logged(tmp_path: Path, server: Tools) -> None:
    upstream = {"url": f"{server.url}?key=CANARY-query", "auth": {"mode": "passthrough"}}
    async with (
        serving(tmp_path, upstream, sealing={"keys": [KEY]}) as gateway,
        Wire(gateway.url, authorization="Bearer CANARY-credential") as client,
    ):
        tickets = await misuse(gateway, server, client)
        gateway.tell()
        assert await gateway.ended() == 0
    said = gateway.said()
    rounds = [line for line in map(json.loads, said.splitlines()) if line["event"] == "round"]
    assert len(rounds) == 13
    assert {line["target"] for line in rounds if "target" in line} == {"echo"}
    assert "internal_error" not in said
    for canary in [*CANARIES, *tickets, *(ticket[:40] for ticket in tickets)]:
        assert canary not in said, canary
