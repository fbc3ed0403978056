"""What a hostile server says is bounded, ends in a clear error, and never reaches the client as an attack."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.eras.questions import MOST_OPEN
from tests.support.gateways import Gateways
from tests.support.scripted import Scripted, Turn, ask, notice, text_result
from tests.support.scripted_sse import ScriptedSse, accept, respond
from tests.support.wire import Wire

COLD = {"sessions": {"warm": 0}}
MOST_COURTESIES = 32
"""Answers to pings, and to what nobody knows, that may be on their way at once."""


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted() as scripted:
        yield scripted


def page(id_: Any, url: Any) -> dict[str, Any]:
    return ask(id_, params={"mode": "url", "message": "Open", "url": url, "elicitationId": "e"})


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "file:///etc/passwd", "https://a@evil.example/", "http://x.example"]
)
async def test_an_unsafe_page_is_refused_at_the_server_and_not_shown(
    gateway: Gateways, server: Scripted, url: str
) -> None:
    """Ours: the server is told why, and what it makes of that is what the client hears."""

    async def tool(turn: Turn) -> None:
        await turn.stream()
        await turn.event(page(1, url))
        told = await turn.answered(1)
        await turn.event(turn.answer(text_result(json.dumps((told or {}).get("error")))))
        await turn.finish()

    server.on["tools/call"] = tool
    served = await gateway(server.url, **COLD)
    async with Wire(served.url) as client:
        heard = await client.tool("echo")
    assert json.loads(heard.text)["code"] == -32602
    assert "not allowed" in heard.text
    assert url.encode() not in heard.body


async def test_an_unsafe_page_on_http_sse_is_refused_too(gateway: Gateways) -> None:
    """Ours: the transport does not matter."""
    async with ScriptedSse() as server:

        async def tool(turn: Turn) -> None:
            await accept(turn)
            stream = server.stream_of(turn)
            assert stream is not None
            await stream.event(page(1, "javascript:alert(1)"))
            told = await server.wait_for_answer(1)
            await respond(turn, text_result(told["error"]["message"]))

        server.on["tools/call"] = tool
        served = await gateway(server.url, transport="sse", **COLD)
        async with Wire(served.url) as client:
            heard = await client.tool("echo")
    assert "not allowed" in heard.text


async def test_an_error_that_lists_an_unsafe_page_is_told_without_it(
    gateway: Gateways, server: Scripted
) -> None:
    """Ours: -32042 carries its pages to the client, or it would."""

    async def tool(turn: Turn) -> None:
        listed = [{"mode": "url", "message": "m", "url": "javascript:alert(1)", "elicitationId": "e"}]
        error = {"code": -32042, "message": "URL", "data": {"elicitations": listed}}
        await turn.json({"jsonrpc": "2.0", "id": turn.id, "error": error})

    server.on["tools/call"] = tool
    served = await gateway(server.url, **COLD)
    async with Wire(served.url) as client:
        heard = await client.tool("echo")
    assert "not allowed" in heard.error["message"]
    assert b"javascript" not in heard.body


@pytest.mark.parametrize(
    "session",
    ["a b", "a\x01b", "a\x7f", "\u00e9", "s" * 10_000],
    ids=["space", "control", "del", "é", "long"],
)
async def test_a_session_id_that_no_header_may_carry_fails_the_handshake(
    gateway: Gateways, server: Scripted, session: str
) -> None:
    """basic/transports, "Session Management": visible ASCII only. It would become a header of ours."""

    async def initialize(turn: Turn) -> None:
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "serverInfo": {"name": "s", "version": "1"},
        }
        await turn.result(result, {"Mcp-Session-Id": session})

    server.on["initialize"] = initialize
    served = await gateway(server.url, era="legacy", **COLD)
    async with Wire(served.url) as client:
        heard = await client.tool("echo")
    assert (heard.status, heard.error["code"]) == (200, -32603)
    assert "upstream" in heard.error["message"]
    assert server.seen("tools/call") == []


async def test_a_flood_of_pings_is_answered_within_bounds_and_the_call_goes_on(
    gateway: Gateways, server: Scripted
) -> None:
    """Ours: each answer is a request of ours; a server must not make us send them without end."""
    is_over = asyncio.Event()

    async def answered(turn: Turn) -> None:
        await is_over.wait()  # so that they pile up
        await turn.reply(202)

    async def tool(turn: Turn) -> None:
        await turn.stream()
        for number in range(500):
            await turn.event(ask(f"p-{number}", "ping", {}))
            await turn.event(ask(f"x-{number}", "no/such", {}))
        await turn.event(turn.answer(text_result("done")))
        await turn.finish()

    server.on |= {"tools/call": tool, "answer": answered}
    served = await gateway(server.url, sessions={"mode": "pooled"})
    async with Wire(served.url) as client:
        assert (await client.tool("echo")).text == "done"
        # All of it was heard before that, and no answer has been taken yet: these are all that there will be.
        await server.wait_until(lambda: len(server.seen("answer")) >= MOST_COURTESIES)
        is_over.set()
        server.on.pop("tools/call")
        assert (await client.tool("echo")).text == "done"
    assert len(server.seen("answer")) == MOST_COURTESIES


async def test_a_flood_of_questions_is_cut_off(gateway: Gateways, server: Scripted) -> None:
    """Ours: so many at once, the rest refused; and past a thousand the call itself has failed."""

    async def tool(turn: Turn) -> None:
        await turn.stream()
        for number in range(1001):
            await turn.event(ask(number))
        await turn.until_left()

    server.on["tools/call"] = tool
    served = await gateway(server.url, settle="5s", **COLD)
    async with Wire(served.url) as client:
        heard = await client.tool("echo")
    assert heard.error["code"] == -32603
    await server.wait("notifications/cancelled")


async def test_a_round_has_no_more_questions_than_a_client_can_take(
    gateway: Gateways, server: Scripted
) -> None:
    """Ours: what is beyond is refused at once, the rest is asked."""

    async def tool(turn: Turn) -> None:
        await turn.stream()
        for number in range(MOST_OPEN + 10):
            await turn.event(ask(number))
        await turn.until_left()

    server.on["tools/call"] = tool
    served = await gateway(server.url, settle="300ms", **COLD)
    async with Wire(served.url) as client:
        heard = await client.tool("echo")
    assert len(heard.asked) == MOST_OPEN
    refused = [turn for turn in server.seen("answer") if "error" in turn.message]
    assert {turn.message["error"]["message"] for turn in refused} <= {"Too many questions at once"}


async def test_a_question_with_a_remote_schema_fetches_nothing(gateway: Gateways, server: Scripted) -> None:
    """Ours: a `$ref` is the server's word, and would be a request from inside the operator's network."""
    async with Scripted() as trap:
        schema = {
            "type": "object",
            "properties": {"name": {"type": "string", "$ref": f"http://127.0.0.1:{trap.port}/schema.json"}},
        }

        async def tool(turn: Turn) -> None:
            await turn.stream()
            await turn.event(ask(1, params={"message": "?", "requestedSchema": schema}))
            await turn.answered(1)
            await turn.event(turn.answer(text_result("done")))
            await turn.finish()

        server.on["tools/call"] = tool
        served = await gateway(server.url, **COLD)
        async with Wire(served.url) as client:
            asked = await client.tool("echo")
            answer = {"action": "accept", "content": {"name": "Ada"}}
            assert (await client.retry(asked, {"name": answer})).text == "done"
        assert trap.connections == 0


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_compressed_bomb_is_not_unfolded_beyond_the_limit(
    gateway: Gateways, server: Scripted, kind: str
) -> None:
    """Ours: 200 MiB of zeros are 200 KiB on the wire; `limits.event` counts what comes out."""
    bomb = gzip.compress(b"data: " + b"0" * (200 * 1024**2), 9)

    async def tool(turn: Turn) -> None:
        await turn.reply(200, bomb, {"Content-Type": kind, "Content-Encoding": "gzip"})

    server.on["tools/call"] = tool
    served = await gateway(server.url, settings={"limits": {"event": "64KiB"}}, **COLD)
    async with Wire(served.url) as client:
        heard = await client.tool("echo")
        server.on.pop("tools/call")
        assert (await client.tool("echo")).text == "done"
    assert heard.error["code"] == -32603


async def test_a_list_that_never_ends_is_read_no_further_than_its_bound(
    gateway: Gateways, server: Scripted
) -> None:
    """Ours: a call that claims headers makes us read the tools; a server may lead us on for ever."""

    async def endless(turn: Turn) -> None:
        cursor = turn.message.get("params", {}).get("cursor", "0")
        tools = [{"name": f"t{cursor}", "inputSchema": {"type": "object"}}]
        await turn.result({"tools": tools, "nextCursor": str(int(cursor) + 1)})

    server.on["tools/list"] = endless
    served = await gateway(server.url, **COLD)
    async with Wire(served.url) as client:
        assert (await client.tool("echo")).text == "done"
    assert len(server.seen("tools/list")) <= 256


async def test_what_is_not_ours_is_dropped_and_the_answer_is_the_answer(
    gateway: Gateways, server: Scripted
) -> None:
    """Ours: answers to nothing, twice, or for others; progress and logs of other calls, by the thousand."""

    async def tool(turn: Turn) -> None:
        await turn.stream()
        for id_ in (7, "nobody", -1, "hf-0-1"):
            await turn.event({"jsonrpc": "2.0", "id": id_, "result": text_result("forged")})
        for number in range(2000):
            await turn.event(notice("notifications/progress", progressToken="another", progress=number))
            await turn.event(notice("notifications/message", level="debug", data="x"))
        await turn.event(notice("notifications/cancelled", requestId=turn.id))
        await turn.event(turn.answer(text_result("first")))
        await turn.event(turn.answer(text_result("second")))
        await turn.finish()

    server.on["tools/call"] = tool
    served = await gateway(server.url, **COLD)
    async with Wire(served.url) as client:
        heard = await client.tool("echo", token="mine")
    assert heard.text == "first"
    assert heard.notifications == []


@pytest.mark.parametrize("id_", ["x" * 2000, "\r\nX: y", "\x00", 2**80, -1, ""], ids=lambda v: repr(v)[:12])
async def test_an_odd_id_of_a_question_is_echoed_or_refused(
    gateway: Gateways, server: Scripted, id_: Any
) -> None:
    """Ours: the id goes back as it came, whatever it is; one too long to keep is refused under itself."""

    async def tool(turn: Turn) -> None:
        await turn.stream()
        await turn.event(ask(id_))
        told = await turn.answered(id_)
        await turn.event(turn.answer(text_result("refused" if "error" in (told or {}) else "answered")))
        await turn.finish()

    server.on["tools/call"] = tool
    served = await gateway(server.url, **COLD)
    async with Wire(served.url) as client:
        heard = await client.tool("echo")
        if "inputRequests" in heard.result:
            heard = await client.retry(heard, {"name": {"action": "decline"}})
    assert heard.text == ("refused" if id_ == "x" * 2000 else "answered")
