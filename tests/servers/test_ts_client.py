"""The TypeScript client's driver reports truly: here against a modern server of a few lines."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.support.peers import ts_client

QUESTION = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Your name? [t1]",
        "requestedSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
    },
}
SAMPLING = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Capital?"}}],
        "maxTokens": 5,
    },
}


def _outcome(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "server/discover":
        meta = {"io.modelcontextprotocol/serverInfo": {"name": "stub", "version": "1"}}
        capabilities: dict[str, Any] = {"tools": {}, "logging": {}}
        return {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, "_meta": meta}
    if method == "tools/list":
        return {"tools": []}
    answers = params.get("inputResponses")
    if answers is None:
        asks = {"name": QUESTION, "capital": SAMPLING, "roots": {"method": "roots/list", "params": {}}}
        return {"resultType": "input_required", "inputRequests": asks, "requestState": "s1"}
    return {"content": [{"type": "text", "text": json.dumps([answers, params["requestState"]])}]}


async def _mcp(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    if body["params"].get("name") == "broken":
        error = {"code": -32602, "message": "no", "data": {"reason": "why"}}
        return web.json_response({"jsonrpc": "2.0", "id": body["id"], "error": error}, status=400)
    result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    result |= _outcome(body["method"], body["params"])
    meta = body["params"]["_meta"]
    token, level = meta.get("progressToken"), meta.get("io.modelcontextprotocol/logLevel")
    events: list[dict[str, Any]] = []
    if result["resultType"] == "complete" and token is not None:
        step = {"progressToken": token, "progress": 1, "total": 2}
        events.append({"jsonrpc": "2.0", "method": "notifications/progress", "params": step})
    if result["resultType"] == "complete" and level is not None:
        record = {"level": level, "data": "hi"}
        events.append({"jsonrpc": "2.0", "method": "notifications/message", "params": record})
    events.append({"jsonrpc": "2.0", "id": body["id"], "result": result})
    if len(events) == 1:
        return web.json_response(events[0])
    text = "".join(f"event: message\ndata: {json.dumps(event)}\n\n" for event in events)
    return web.Response(text=text, content_type="text/event-stream")


@pytest.fixture
async def url() -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/mcp", _mcp)
    async with TestServer(app) as server:
        yield str(server.make_url("/mcp"))


@pytest.mark.parametrize("mode", ["pin", "auto"])
async def test_a_plan_is_carried_out_and_reported(url: str, mode: str) -> None:
    report = await ts_client(
        {
            "url": url,
            "mode": mode,
            "answers": {
                "elicitation": [{"match": "name", "content": {"name": "Ann $tag"}}],
                "sampling": "Paris",
                "roots": [{"uri": "file:///r"}],
            },
            "calls": [
                {"method": "tools/list"},
                {"method": "tools/call", "name": "ask", "arguments": {}, "logLevel": "info"},
                {"method": "tools/call", "name": "broken", "arguments": {}},
            ],
        }
    )
    assert (report["era"], report["version"]) == ("modern", "2026-07-28")
    listed, asked, broken = report["results"]
    assert listed["result"]["tools"] == []
    answers, state = json.loads(asked["result"]["content"][0]["text"])
    assert state == "s1"
    assert answers["name"] == {"action": "accept", "content": {"name": "Ann t1"}}
    assert answers["capital"]["content"]["text"] == "Paris"
    assert answers["roots"] == {"roots": [{"uri": "file:///r"}]}
    assert {ask["method"] for ask in report["asked"]} == {
        "elicitation/create",
        "sampling/createMessage",
        "roots/list",
    }
    assert report["rounds"] == [0, 1, 0]
    assert [(step["call"], step["progress"]) for step in report["progress"]] == [(1, 1)]
    assert [record["data"] for record in report["logs"]] == ["hi"]
    assert (broken["error"]["code"], broken["error"]["data"]) == (-32602, {"reason": "why"})
    assert [entry["method"] for entry in report["http"]].count("tools/call") == 3


async def test_a_question_without_an_answer_fails_the_call(url: str) -> None:
    report = await ts_client(
        {"url": url, "calls": [{"method": "tools/call", "name": "ask", "arguments": {}}]}
    )
    assert "no answer to" in json.dumps(report["results"][0]["error"])


async def test_rounds_can_be_driven_by_hand(url: str) -> None:
    report = await ts_client(
        {
            "url": url,
            "autoFulfill": False,
            "calls": [{"method": "tools/call", "name": "ask", "arguments": {}}],
        }
    )
    assert report["results"][0]["result"]["resultType"] == "input_required"
    assert report["results"][0]["result"]["requestState"] == "s1"


async def test_a_dead_server_is_a_connect_error() -> None:
    report = await ts_client({"url": "http://127.0.0.1:9/mcp", "calls": []})
    assert "connectError" in report
