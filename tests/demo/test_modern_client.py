"""The demo's modern client, against a modern server of a few lines."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.demo.modern_client import MAX_ROUNDS, CallFailed, Json, ModernClient, Round

META: Final = "io.modelcontextprotocol/"
Script = Callable[[Json], web.Response]


class Server:
    """Answers what the test scripts, and remembers what it was sent."""

    def __init__(self) -> None:
        self.script: Script = lambda body: answer(body, {"resultType": "complete"})
        self.bodies: list[Json] = []
        self.headers: list[Any] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        self.headers.append(request.headers)
        return self.script(body)


def answer(body: Json, result: Json) -> web.Response:
    return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": result})


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    app = web.Application()
    app.router.add_post("/mcp", server.handle)
    async with TestServer(app) as running:
        server.url = str(running.make_url("/mcp"))
        yield server


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http:
        yield http


def client(
    http: aiohttp.ClientSession, url: str, witness: Callable[[Round], None] = lambda _: None
) -> ModernClient:
    async def reply(key: str, ask: Json) -> Json:
        return {"action": "accept", "content": {key: ask["params"]["message"].upper()}}

    handler: Callable[[str, Json], Awaitable[Json]] = reply
    return ModernClient(http, url, answer=handler, witness=witness)


async def test_every_request_is_complete_in_itself(server: Server, http: aiohttp.ClientSession) -> None:
    """Spec: MODERN-WIRE 4, points 6 and 10 to 13."""
    await client(http, server.url).call_tool("echo", {"text": "x"})

    [headers], [body] = server.headers, server.bodies
    assert headers["MCP-Protocol-Version"] == "2026-07-28"
    assert (headers["Mcp-Method"], headers["Mcp-Name"]) == ("tools/call", "echo")
    assert headers["Accept"] == "application/json, text/event-stream"
    meta = body["params"]["_meta"]
    assert meta[META + "protocolVersion"] == "2026-07-28"
    assert meta[META + "clientCapabilities"] == {"elicitation": {}, "sampling": {}}


async def test_a_question_is_answered_in_a_retry_that_carries_the_state(
    server: Server, http: aiohttp.ClientSession
) -> None:
    def script(body: Json) -> web.Response:
        if "requestState" in body["params"]:
            return answer(body, {"resultType": "complete", "content": []})
        ask = {"method": "elicitation/create", "params": {"message": "who"}}
        return answer(
            body, {"resultType": "input_required", "inputRequests": {"name": ask}, "requestState": "sealed"}
        )

    server.script = script
    seen: list[Round] = []
    result = await client(http, server.url, seen.append).call_tool("greet", {"polite": True})

    first, second = (body["params"] for body in server.bodies)
    assert result["resultType"] == "complete"
    assert second["inputResponses"] == {"name": {"action": "accept", "content": {"name": "WHO"}}}
    assert second["requestState"] == "sealed"
    assert first["arguments"] == second["arguments"] == {"polite": True}
    assert server.bodies[0]["id"] != server.bodies[1]["id"]
    assert [turn.what for turn in seen] == ["sent", "received", "sent", "received"]


async def test_a_server_that_never_stops_asking_is_given_up(
    server: Server, http: aiohttp.ClientSession
) -> None:
    server.script = lambda body: answer(body, {"resultType": "input_required", "requestState": "again"})

    with pytest.raises(CallFailed, match="still asks"):
        await client(http, server.url).call_tool("loop", {})
    assert len(server.bodies) == MAX_ROUNDS


async def test_the_answer_is_the_last_event_of_a_stream(server: Server, http: aiohttp.ClientSession) -> None:
    def script(body: Json) -> web.Response:
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})
        reply = json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": {"resultType": "complete"}})
        text = f": ping\n\nevent: message\ndata: {note}\n\nevent: message\ndata: {reply}\n\n"
        return web.Response(text=text, content_type="text/event-stream")

    server.script = script
    assert await client(http, server.url).request("tools/list") == {"resultType": "complete"}


@pytest.mark.parametrize(
    ("status", "text", "reason"),
    [
        (
            400,
            '{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"Invalid params"}}',
            r"Invalid params \(-32602\)",
        ),
        (503, '{"jsonrpc":"2.0","id":"other","result":{}}', "HTTP 503"),
        (200, "<html>", "JSONDecodeError"),
        (200, "[]", "without an answer"),
    ],
)
async def test_whatever_is_not_a_result_fails_with_a_reason(
    server: Server, http: aiohttp.ClientSession, status: int, text: str, reason: str
) -> None:
    server.script = lambda _: web.Response(text=text, status=status, content_type="application/json")

    with pytest.raises(CallFailed, match=reason):
        await client(http, server.url).request("server/discover")


async def test_nobody_listening_fails_with_a_reason(
    http: aiohttp.ClientSession, unused_tcp_port: int
) -> None:
    with pytest.raises(CallFailed, match="ClientConnectorError"):
        await client(http, f"http://127.0.0.1:{unused_tcp_port}/mcp").request("server/discover")
