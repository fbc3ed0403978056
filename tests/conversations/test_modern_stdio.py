"""A modern server that is a command: recognised, and every modern request handed to its process as it is."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from mcp import Client

from tests.support.gateways import Gateways, Served
from tests.support.listening import TOOLS, listening
from tests.support.peers import MODERN_KIND, stdio_command, ts_client
from tests.support.python_client import text_of
from tests.support.waiting import until
from tests.support.wire import Answer, Wire, accept

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def _as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a process that takes too long to start would pass for a legacy one."""
    monkeypatch.setattr("gateway.upstreams.era_probe._PROCESS_SECONDS", 30.0)


async def started(gateway: Gateways, command: list[str] | None = None, **upstream: Any) -> Served:
    own = {"command": command or stdio_command(MODERN_KIND), **upstream}
    return await gateway.start({"listen": "127.0.0.1:0", "upstreams": {"x": own}})


def answers(asked: Answer, name: str) -> Json:
    return {key: accept(name=name) for key in asked.result["inputRequests"]}


async def test_a_modern_process_is_recognised_and_its_rounds_are_its_own(gateway: Gateways) -> None:
    """Issue: MRTR untouched; the server opens its own `requestState`, which it would not if a byte had changed."""
    served = await started(gateway)

    async with Wire(served.url) as wire:
        listed = await wire.request("tools/list")
        asked = await wire.tool("ask_name")
        done = await wire.retry(asked, answers(asked, "Ada"))
        discovered = await wire.request("server/discover")
        tampered = await wire.retry(asked, answers(asked, "Ada"), state=asked.state[:-4] + "AAAA")

    assert "ask_name" in [tool["name"] for tool in listed.result["tools"]]
    assert asked.state.startswith("v1."), "sealed by the server itself"
    assert done.text == "Hello Ada, says the modern one"
    assert discovered.result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "modern-fixture"
    assert (tampered.status, tampered.error["code"]) == (400, -32602)


async def test_both_modern_clients_use_it(gateway: Gateways) -> None:
    """Issue: `mcp.Client` and the TypeScript client in mode `auto`, with progress and a question."""
    served = await started(gateway)
    steps: list[tuple[float, float | None]] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total))

    async with Client(served.url) as client:
        result = await client.call_tool("progress", {"steps": 2}, progress_callback=progressed)
    report = await ts_client(
        {
            "url": served.url,
            "answers": {"elicitation": [{"content": {"name": "Ada"}}]},
            "calls": [{"method": "tools/call", "name": "ask_name", "arguments": {}}],
        }
    )

    assert text_of(result) == "done"
    assert steps == [(1.0, 2.0), (2.0, 2.0)]
    assert report["results"][0]["result"]["content"][0]["text"] == "Hello Ada, says the modern one"


async def test_clients_with_the_same_ids_and_tokens_do_not_hear_each_other(gateway: Gateways) -> None:
    """MODERN-WIRE 1.11: ids and tokens repeat from client to client, and one process serves all of them."""
    served = await started(gateway)

    async def count(wire: Wire, steps: int) -> Answer:
        return await wire.tool("progress", {"steps": steps}, token=1)

    async with Wire(served.url) as one, Wire(served.url) as other:
        heard = await asyncio.gather(*(count(wire, steps) for wire in (one, other) for steps in (1, 2, 3)))

    for answer, steps in zip(heard, (1, 2, 3, 1, 2, 3), strict=True):
        told = [notice["params"] for notice in answer.notifications]
        assert [(notice["progressToken"], notice["progress"]) for notice in told] == [
            (1, step + 1) for step in range(steps)
        ]


async def test_logs_go_to_the_one_who_wants_them(gateway: Gateways) -> None:
    """Spec: only to a request that asked for its level."""
    served = await started(gateway)

    async with Wire(served.url) as wire:
        loud = await wire.tool("logs", {"words": "hear this"}, level="info")
        quiet = await wire.tool("logs", {"words": "hear this"}, level="error")
        silent = await wire.tool("logs", {"words": "hear this"})

    assert [notice["params"]["data"] for notice in loud.notifications] == ["hear this"]
    assert quiet.notifications == silent.notifications == []


async def test_errors_have_the_statuses_of_a_modern_http_server(gateway: Gateways) -> None:
    """Spec: 404 for an unknown method, 400 for what is wrong with the request."""
    served = await started(gateway)

    async with Wire(served.url) as wire:
        unknown = await wire.request("vendor/method")
        asked = await wire.tool("ask_name")
        wrong = await wire.retry(asked, answers(asked, "Ada"), state="not one of theirs")
        told = await _notified(served.url)

    assert (unknown.status, unknown.error["code"]) == (404, -32601)
    assert (wrong.status, wrong.error["code"]) == (400, -32602)
    assert told == 202


async def _notified(url: str) -> int:
    async with aiohttp.ClientSession() as http:
        notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        answer = await http.post(url, json=notice, headers={"MCP-Protocol-Version": "2026-07-28"})
        return answer.status


async def test_a_client_that_leaves_cancels_its_call_and_no_other(gateway: Gateways) -> None:
    """Spec: on stdio a cancellation has to be said; the process serves on."""
    served = await started(gateway)

    async with Wire(served.url) as wire:
        begun = asyncio.Event()
        leaving = asyncio.get_running_loop().create_task(wire.tool("slow", token="t", opened=begun))
        async with asyncio.timeout(10):
            await begun.wait()
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        after = await wire.tool("add", {"a": 1, "b": 2})

    assert after.text == "3 says the modern one"


async def test_who_listens_hears_what_a_call_of_another_changed(gateway: Gateways) -> None:
    """Spec: acknowledged first, tagged with the client's own id, ended with a result when the gateway stops."""
    served = await started(gateway)

    async with Wire(served.url) as wire, listening(wire, "mine", toolsListChanged=True) as stream:
        promised = await stream.honoured()
        await wire.tool("touch")
        heard = await stream.heard()
        await served.gateway.drain()
        await stream.ended()

    assert promised == {"toolsListChanged": True}
    assert heard == [(TOOLS, None)]


async def test_a_process_that_ends_is_told_and_started_anew(gateway: Gateways) -> None:
    """Ours: the call that ended it fails with the reason; the next one finds a new process."""
    served = await started(gateway)

    async with Wire(served.url) as wire:
        lost = await wire.tool("crash")
        after = await wire.tool("add", {"a": 1, "b": 2})

    assert (lost.status, lost.error["code"]) == (200, -32603)
    assert "exit code 3" in lost.error["message"]
    assert after.text == "3 says the modern one"


# --- headers that a process cannot see ---------------------------------------------------------------


async def test_a_call_that_disagrees_with_its_headers_never_reaches_the_process(gateway: Gateways) -> None:
    """basic/transports/streamable-http: whoever takes the request must compare them, and the process cannot."""
    served = await started(gateway, era="modern")
    right = {"Mcp-Param-Region": "eu"}

    async with Wire(served.url) as wire:
        refused = [
            await wire.tool("deploy", {"region": "eu"}, headers=headers)
            for headers in ({"Mcp-Param-Region": "us"}, {}, {"mcp-param-REGION": "=?base64?dXM=?="})
        ]
        done = await wire.tool("deploy", {"region": "eu"}, headers=right)
        strange = await wire.tool("add", {"a": 1, "b": 2}, headers=right)

    assert {(one.status, one.error["code"]) for one in refused} == {(400, -32020)}
    assert all("Mcp-Param-Region" in one.error["message"] for one in refused)
    assert done.text == "Deployed to eu"
    assert strange.text == "3 says the modern one"


async def test_both_modern_clients_get_through_with_headers_that_they_repeat(gateway: Gateways) -> None:
    """Ours: refused once where they have not listed the tools yet, they list them and come again."""
    served = await started(gateway, era="modern")

    async with Client(served.url, mode="2026-07-28") as client:
        done = await client.call_tool("deploy", {"region": "Zürich "})
    report = await ts_client(
        {
            "url": served.url,
            "calls": [{"method": "tools/call", "name": "deploy", "arguments": {"region": "Zürich "}}],
        }
    )

    assert text_of(done) == "Deployed to Zürich "
    assert report["results"][0]["result"]["content"][0]["text"] == "Deployed to Zürich "


# --- legacy servers that are asked for their era ---------------------------------------------------


@pytest.mark.parametrize("how", ["hangs", "ends"])
async def test_a_legacy_process_that_cannot_take_the_question_is_served_by_a_fresh_one(
    gateway: Gateways, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str
) -> None:
    """Ours: bounded wait, then a process that was never asked."""
    monkeypatch.setattr("gateway.upstreams.era_probe._PROCESS_SECONDS", 0.5 if how == "hangs" else 30.0)
    wrapper = tmp_path / "first.py"
    wrapper.write_text(_FUSSY, "utf-8")
    command = [sys.executable, str(wrapper), how, *stdio_command("py-1.30")]
    served = await started(gateway, command)

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_name")
        done = await wire.retry(asked, {key: accept(name="Ann") for key in asked.asked})

    assert done.text.startswith("Hello Ann")


_FUSSY = """
import os, sys, time
first = os.read(0, 65536)
if b"server/discover" in first:
    if sys.argv[1] == "ends":
        sys.exit(7)
    time.sleep(60)
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    os.close(reading)
    while first:
        os.write(writing, first)
        first = os.read(0, 65536)
    os._exit(0)
os.close(writing)
os.dup2(reading, 0)
os.execv(sys.argv[2], sys.argv[2:])
"""


async def test_a_legacy_process_is_asked_for_its_era_and_then_used(gateway: Gateways) -> None:
    """Ours: as clients of both eras do; no process is started for the question alone."""
    served = await started(gateway, stdio_command("py-1.30"), sessions={"mode": "pooled", "warm": 0})

    async with Wire(served.url, authorization="Bearer a") as wire:
        await until(_has_children(1))
        done = await wire.tool("add", {"a": 1, "b": 2})

    assert done.text == "3"


def _has_children(least: int) -> Any:
    async def look() -> bool:
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        return len((await asyncio.to_thread(children.read_text, "utf-8")).split()) >= least

    return look


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_era_may_be_given(gateway: Gateways, era: str) -> None:
    """Ours: then nothing is asked; a server of both eras is used in the one that was named."""
    served = await started(gateway, era=era)

    async with Wire(served.url) as wire:
        asked = await wire.tool("ask_name")

    assert asked.state.startswith("v1.") is (era == "modern")
