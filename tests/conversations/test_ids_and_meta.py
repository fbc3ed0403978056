"""Ids come back exactly as they were sent, and what `_meta` carries for others reaches them."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.support.gateways import Gateways, Served
from tests.support.peers import LegacyServers
from tests.support.scripted import Scripted, Turn
from tests.support.seen import seen_by, unique
from tests.support.waiting import until

META = "io.modelcontextprotocol/"
IDS = ["0", "-7", "1267650600228229401496703205376", '""', '"0"', '"\u00fc\\u2028\U0001f9ed"', '"\\u0000"']
"""As JSON: what is sent and what comes back are compared as that."""
TRACE = {
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "tracestate": "vendor=opaque,other=1",
    "baggage": "user=ann;note=%E2%9C%93",
    "com.example/vendor": {"big": 2**70, "list": [1.5, None]},
}


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted() as server:
        yield server


async def post(
    served: Served, id_: str, method: str, meta: dict[str, Any] | None = None, **params: Any
) -> tuple[int, str, str]:
    """Status, media type and body."""
    whole = {
        **params,
        "_meta": {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}, **(meta or {})},
    }
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        **({"Mcp-Name": params["name"]} if "name" in params else {}),
    }
    body = f'{{"jsonrpc":"2.0","id":{id_},"method":"{method}","params":{json.dumps(whole)}}}'
    timeout = aiohttp.ClientTimeout(total=5)
    async with (
        aiohttp.ClientSession(timeout=timeout) as http,
        http.post(served.url, data=body.encode(), headers=headers) as response,
    ):
        return response.status, response.content_type, await response.text()


def same_id(message: str, id_: str) -> None:
    found, sent = json.loads(message)["id"], json.loads(id_)
    assert (found, type(found)) == (sent, type(sent))


@pytest.mark.parametrize("id_", IDS)
@pytest.mark.requirement("R8")
async def test_an_id_of_any_legal_kind_comes_back_in_results_errors_and_streams(
    server: Scripted, gateway: Gateways, id_: str
) -> None:
    async def speak_first(turn: Turn) -> None:
        token = turn.message["params"]["_meta"]["progressToken"]
        params = {"progressToken": token, "progress": 1}
        await turn.stream()
        await turn.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        await turn.event(turn.answer({"content": []}))
        await turn.finish()

    server.on["tools/call"] = speak_first
    served = await gateway(server.url, sessions={"warm": 0})

    status, kind, listed = await post(served, id_, "tools/list")
    assert (status, kind) == (200, "application/json")
    same_id(listed, id_)
    status, kind, missing = await post(served, id_, "ping")
    assert (status, kind) == (404, "application/json")
    same_id(missing, id_)
    status, kind, streamed = await post(
        served, id_, "tools/call", {"progressToken": 0}, name="t", arguments={}
    )
    assert (status, kind) == (200, "text/event-stream")
    progress, answer = [line[6:] for line in streamed.split("\n") if line.startswith("data: ")]
    assert json.loads(progress)["params"]["progressToken"] == 0
    same_id(answer, id_)


@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.32"])
async def test_trace_context_and_vendor_keys_reach_the_server_and_reserved_ones_do_not(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str
) -> None:
    """Issue: who follows a trace sees it go through; what the handshake says is said there only."""
    legacy = legacy_servers.get(kind)
    served = await gateway(legacy.url)
    tag = unique("trace")

    meta = {**TRACE, f"{META}logLevel": "error", f"{META}clientInfo": {"name": "c", "version": "1"}}
    status, _, _ = await post(
        served, "1", "tools/call", meta, name="echo", arguments={"text": "x", "tag": tag}
    )

    assert status == 200
    (call,) = (await seen_by(legacy)).calls(tag=tag)
    assert call["body"]["params"]["_meta"] == TRACE


async def test_a_client_that_leaves_the_queue_costs_the_server_nothing(
    server: Scripted, gateway: Gateways
) -> None:
    """Spec: cancellation; a call that waits for a session has not been sent, so there is nothing to cancel."""
    go = asyncio.Event()

    async def work(turn: Turn) -> None:
        await go.wait()
        await turn.result({"content": []})

    server.on["tools/call"] = work
    served = await gateway(server.url, sessions={"warm": 0, "max": 1, "mode": "affinity"})
    first = asyncio.ensure_future(post(served, "1", "tools/call", name="one", arguments={}))
    await server.wait("tools/call")
    queued = asyncio.ensure_future(post(served, "2", "tools/call", name="two", arguments={}))

    async def both_are_here() -> bool:
        return served.gateway._front.in_progress == 2

    await until(both_are_here)
    queued.cancel()
    await asyncio.gather(queued, return_exceptions=True)
    go.set()

    assert (await first)[0] == 200
    assert (await post(served, "3", "tools/call", name="three", arguments={}))[0] == 200
    assert [turn.message["params"]["name"] for turn in server.seen("tools/call")] == ["one", "three"]
    assert server.seen("notifications/cancelled") == []


@pytest.mark.parametrize("kind", ["py-1.12", "py-1.30", "ts-1.32"])
@pytest.mark.parametrize(
    "odd",
    [
        {"clientInfo": {"name": "x", "version": "1", "title": 5, "icons": [{"src": None}], "websiteUrl": 7}},
        {"clientCapabilities": {"experimental": {"a": None, "b": True}, "sampling": {"tools": 5}}},
    ],
    ids=lambda odd: next(iter(odd)),
)
async def test_what_a_client_says_wrong_of_itself_does_not_cost_it_the_handshake(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str, odd: dict[str, Any]
) -> None:
    """Ours: modern servers hardly look at it, and legacy ones refuse all of a session for one wrong member."""
    served = await gateway(legacy_servers.get(kind).url)

    meta = {f"{META}{name}": value for name, value in odd.items()}
    status, _, body = await post(served, "1", "tools/list", meta)

    assert (status, list(json.loads(body))) == (200, ["jsonrpc", "id", "result"]), body


@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.12", "ts-1.32"])
async def test_a_server_that_knows_no_null_is_given_none(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str
) -> None:
    """Ours: the reference server takes null for "none", and so do legacy servers in Python; TypeScript ones refuse."""
    served = await gateway(legacy_servers.get(kind).url)
    asked = {"ref": {"type": "ref/prompt", "name": "simple"}, "argument": {"name": "topic", "value": "r"}}

    _, _, prompt = await post(served, "1", "prompts/get", name="simple", arguments=None)
    _, _, completed = await post(served, "2", "completion/complete", **asked, context=None)

    assert "Write about nothing." in prompt
    assert json.loads(completed)["result"]["completion"]["values"] == ["rain", "river", "rust"]
