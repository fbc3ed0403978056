"""The demo's legacy server over raw HTTP. It must be a true legacy server, or the demo proves nothing."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp
import pytest

from gateway.demo.legacy_server import LegacyServer, Sighting

BOTH: Final = {"Accept": "application/json, text/event-stream"}
WAIT: Final = 5.0

Json = dict[str, Any]


class Wire:
    """A hand-held legacy client: it sends what it is told and reads one event at a time."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self.http = http
        self.url = url
        self.session_id: str | None = None
        self._open: list[aiohttp.ClientResponse] = []

    def headers(self, **extra: str) -> dict[str, str]:
        session = {"Mcp-Session-Id": self.session_id} if self.session_id is not None else {}
        return {**BOTH, **session, **extra}

    async def post(self, body: Any, **extra: str) -> aiohttp.ClientResponse:
        response = await self.http.post(self.url, json=body, headers=self.headers(**extra))
        self._open.append(response)
        return response

    async def status(self, body: Any, **extra: str) -> int:
        return (await self.post(body, **extra)).status

    async def listen(self) -> aiohttp.ClientResponse:
        response = await self.http.get(self.url, headers=self.headers())
        self._open.append(response)
        return response

    async def initialize(self, version: str = "2025-11-25", *, capabilities: Json | None = None) -> Json:
        params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": {"name": "t"}}
        response = await self.post(request(0, "initialize", params))
        self.session_id = response.headers["Mcp-Session-Id"]
        reply = await event(response)
        assert await self.status({"jsonrpc": "2.0", "method": "notifications/initialized"}) == 202
        return reply

    async def call(self, tool: str, arguments: Json, call_id: int = 1) -> aiohttp.ClientResponse:
        return await self.post(request(call_id, "tools/call", {"name": tool, "arguments": arguments}))

    async def reply(self, ask_id: int, result: Json) -> None:
        assert await self.status({"jsonrpc": "2.0", "id": ask_id, "result": result}) == 202

    def close(self) -> None:
        for response in self._open:
            response.close()


def request(request_id: int, method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}}


async def event(response: aiohttp.ClientResponse) -> Json:
    """The next SSE event's message."""
    assert response.content_type == "text/event-stream", await response.text()
    async with asyncio.timeout(WAIT):
        block = await response.content.readuntil(b"\r\n\r\n")
    data = next(line for line in block.split(b"\r\n") if line.startswith(b"data:"))
    message: Json = json.loads(data[5:])
    return message


async def text_of(response: aiohttp.ClientResponse) -> str:
    reply = await event(response)
    return str(reply["result"]["content"][0]["text"])


@pytest.fixture
async def sightings() -> list[Sighting]:
    return []


@pytest.fixture
async def wire(sightings: list[Sighting]) -> AsyncIterator[Wire]:
    server = LegacyServer(witness=sightings.append)
    await server.start()
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=WAIT)) as http:
        wire = Wire(http, server.url)
        yield wire
        wire.close()
    async with asyncio.timeout(WAIT):
        await server.stop()


# --- sessions ---------------------------------------------------------------


async def test_initialize_opens_a_session_and_answers_with_sse(wire: Wire) -> None:
    reply = await wire.initialize()

    assert wire.session_id is not None
    assert len(wire.session_id) == 32
    assert reply["id"] == 0
    assert reply["result"]["protocolVersion"] == "2025-11-25"
    assert "tools" in reply["result"]["capabilities"]


@pytest.mark.parametrize(
    ("asked", "given"),
    [("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"), ("2026-07-28", "2025-11-25")],
)
async def test_an_unknown_version_is_answered_with_the_newest_one(wire: Wire, asked: str, given: str) -> None:
    """LEGACY-WIRE 5: `initialize` with an unknown version succeeds everywhere."""
    assert (await wire.initialize(asked))["result"]["protocolVersion"] == given


async def test_a_missing_session_is_400_and_an_unknown_one_404(wire: Wire) -> None:
    assert await wire.status(request(1, "tools/list")) == 400
    wire.session_id = "0" * 32
    assert await wire.status(request(1, "tools/list")) == 404
    assert (await wire.listen()).status == 404


async def test_delete_ends_the_session_and_a_call_that_waits_in_it(wire: Wire) -> None:
    await wire.initialize()
    listener = await wire.listen()
    call = await wire.call("book_table", {"restaurant": "Ada"})
    await event(call)

    deleted = await wire.http.delete(wire.url, headers=wire.headers())

    assert deleted.status == 200
    assert "Connection closed" in await text_of(call)
    assert await listener.content.read() == b""
    assert await wire.status(request(2, "tools/list")) == 404


async def test_a_call_before_initialized_is_refused(wire: Wire) -> None:
    """LEGACY-WIRE 6: Python 1.12 does so; a gateway must wait for the 202."""
    opened = await wire.post(request(0, "initialize", {"protocolVersion": "2025-06-18"}))
    wire.session_id = opened.headers["Mcp-Session-Id"]

    reply = await event(await wire.call("echo", {"text": "early"}))

    assert reply["error"]["code"] == -32602


async def test_a_second_get_stream_is_409_until_the_first_one_is_gone(wire: Wire) -> None:
    await wire.initialize()
    first = await wire.listen()

    assert first.status == 200
    assert (await wire.listen()).status == 409
    first.close()
    async with asyncio.timeout(WAIT):
        while (await wire.listen()).status == 409:
            pass


# --- refusals ---------------------------------------------------------------


async def test_accept_must_list_both_types(wire: Wire) -> None:
    assert await wire.status(request(0, "initialize"), Accept="application/json") == 406


async def test_what_is_not_one_json_rpc_message_is_400(wire: Wire) -> None:
    assert await wire.status([request(0, "initialize")]) == 400
    broken = await wire.http.post(wire.url, data=b"{", headers=wire.headers())
    assert broken.status == 400
    assert (await broken.json())["error"]["code"] == -32700


async def test_a_modern_version_header_is_400(wire: Wire) -> None:
    await wire.initialize()
    assert await wire.status(request(1, "tools/list"), **{"MCP-Protocol-Version": "2026-07-28"}) == 400


async def test_a_foreign_origin_is_403(wire: Wire) -> None:
    assert await wire.status(request(0, "initialize"), Origin="https://evil.example") == 403


async def test_unknown_methods_and_tools_are_json_rpc_errors(wire: Wire) -> None:
    await wire.initialize()

    assert (await event(await wire.post(request(1, "server/discover"))))["error"]["code"] == -32601
    assert (await event(await wire.call("no_such_tool", {})))["error"]["code"] == -32602


async def test_a_missing_argument_is_an_error_of_the_tool(wire: Wire) -> None:
    await wire.initialize()
    reply = await event(await wire.call("echo", {}))
    assert reply["result"]["isError"] is True


# --- tools ------------------------------------------------------------------


async def test_the_four_tools_are_listed_with_object_schemas(wire: Wire) -> None:
    await wire.initialize()
    tools = (await event(await wire.post(request(1, "tools/list"))))["result"]["tools"]

    assert [tool["name"] for tool in tools] == ["echo", "book_table", "summarize", "plan_trip"]
    assert {tool["inputSchema"]["type"] for tool in tools} == {"object"}


async def test_echo_returns_its_text(wire: Wire) -> None:
    await wire.initialize()
    assert await text_of(await wire.call("echo", {"text": "\u2028 and \u00e9"})) == "\u2028 and \u00e9"


async def test_book_table_asks_on_the_stream_of_the_call(wire: Wire, sightings: list[Sighting]) -> None:
    await wire.initialize()
    await wire.listen()
    call = await wire.call("book_table", {"restaurant": "Ada", "guests": 4})
    ask = await event(call)

    assert (ask["id"], ask["method"]) == (0, "elicitation/create")
    assert list(ask["params"]["requestedSchema"]["properties"]) == ["time"]
    await wire.reply(0, {"action": "accept", "content": {"time": "18:30"}})

    assert await text_of(call) == "Booked: Ada, 4 guests, 18:30."
    told = [(sighting.what, sighting.stream) for sighting in sightings]
    assert told == [
        ("opened", "POST"),
        ("called", "POST"),
        ("asked", "POST"),
        ("answered", "POST"),
        ("finished", "POST"),
    ]


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_declined_question_ends_the_tool_without_an_error(wire: Wire, action: str) -> None:
    await wire.initialize()
    call = await wire.call("book_table", {"restaurant": "Ada"})
    await event(call)
    await wire.reply(0, {"action": action})

    assert await text_of(call) == "Nothing was booked."


async def test_an_answer_that_does_not_fit_is_an_error_of_the_tool(wire: Wire) -> None:
    await wire.initialize()
    call = await wire.call("book_table", {"restaurant": "Ada"})
    await event(call)
    await wire.reply(0, {"action": "accept", "content": {"time": "noon"}})

    assert (await event(call))["result"]["isError"] is True


async def test_an_error_as_answer_is_an_error_of_the_tool(wire: Wire) -> None:
    await wire.initialize()
    call = await wire.call("book_table", {"restaurant": "Ada"})
    await event(call)
    error = {"code": -32601, "message": "cannot be asked"}
    assert await wire.status({"jsonrpc": "2.0", "id": 0, "error": error}) == 202

    assert "cannot be asked" in await text_of(call)


async def test_summarize_asks_on_the_get_stream_when_there_is_one(wire: Wire) -> None:
    """LEGACY-WIRE 1: Python's `create_message` by default."""
    await wire.initialize()
    listener = await wire.listen()
    call = await wire.call("summarize", {"text": "long"})
    ask = await event(listener)

    assert ask["method"] == "sampling/createMessage"
    await wire.reply(
        ask["id"], {"role": "assistant", "content": {"type": "text", "text": "short"}, "model": "m"}
    )
    assert await text_of(call) == "Summary by m: short"


async def test_summarize_asks_on_the_call_when_nobody_listens(wire: Wire) -> None:
    await wire.initialize()
    call = await wire.call("summarize", {"text": "long"})

    assert (await event(call))["method"] == "sampling/createMessage"


async def test_plan_trip_asks_twice_and_the_second_question_knows_the_first_answer(wire: Wire) -> None:
    await wire.initialize()
    call = await wire.call("plan_trip", {"days": 5})
    first = await event(call)
    await wire.reply(first["id"], {"action": "accept", "content": {"destination": "Oslo"}})
    second = await event(call)

    assert (first["id"], second["id"]) == (0, 1)
    assert "Oslo" in second["params"]["message"]
    await wire.reply(second["id"], {"action": "accept", "content": {"month": "May"}})
    assert "5 days in Oslo in May" in await text_of(call)


async def test_two_calls_of_two_sessions_ask_under_the_same_id_and_do_not_mix(wire: Wire) -> None:
    """LEGACY-WIRE 2: ids count from 0 in every session, so two sessions always collide."""
    other = Wire(wire.http, wire.url)
    await wire.initialize()
    await other.initialize()
    calls = [await one.call("book_table", {"restaurant": name}) for one, name in ((wire, "A"), (other, "B"))]
    asks = [await event(call) for call in calls]
    await other.reply(0, {"action": "accept", "content": {"time": "20:45"}})
    await wire.reply(0, {"action": "accept", "content": {"time": "18:30"}})

    assert [ask["id"] for ask in asks] == [0, 0]
    assert [await text_of(call) for call in calls] == [
        "Booked: A, 2 guests, 18:30.",
        "Booked: B, 2 guests, 20:45.",
    ]
    other.close()


async def test_unknown_and_second_answers_are_202_and_ignored(wire: Wire) -> None:
    await wire.initialize()
    await wire.reply(7, {"action": "accept"})
    assert await wire.status({"jsonrpc": "2.0", "id": None, "error": {"code": 0, "message": ""}}) == 202


async def test_a_cancelled_call_is_answered_with_an_error(wire: Wire) -> None:
    """LEGACY-WIRE 8, as Python does."""
    await wire.initialize()
    call = await wire.call("book_table", {"restaurant": "Ada"}, call_id=9)
    await event(call)
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}
    assert await wire.status(note) == 202

    assert (await event(call))["error"] == {"code": 0, "message": "Request cancelled"}


async def test_stopping_ends_open_streams_at_once(wire: Wire) -> None:
    server = LegacyServer()
    await server.start()
    guest = Wire(wire.http, server.url)
    await guest.initialize()
    listener = await guest.listen()

    async with asyncio.timeout(WAIT):
        await server.stop()
        assert await listener.content.read() == b""
    guest.close()
