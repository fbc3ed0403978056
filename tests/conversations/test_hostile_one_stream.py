"""Hostile servers over stdio and HTTP+SSE, where calls, questions and news share one stream: bounded, and told."""

import json
from typing import Any

import pytest

from tests.support.gateways import Gateways
from tests.support.hostile import EVENT_BYTES, TRANSPORTS, behind
from tests.support.scripted import Scripted, ask, notice, text_result
from tests.support.wire import Answer, Wire, accept

Json = dict[str, Any]

pytestmark = pytest.mark.parametrize("transport", TRANSPORTS)


async def is_served(client: Wire) -> None:
    """The next call is a call like any other."""
    assert (await client.tool("obey")).text == "done"


async def obeyed(client: Wire, **arguments: Any) -> Answer:
    return await client.tool("obey", arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"endless": True},
        {"say": [notice("notifications/message", level="info", data="x" * (EVENT_BYTES + 1))]},
        {"say": [ask(1, params={"message": "x" * (EVENT_BYTES + 1)})]},
    ],
    ids=["without end", "a giant notification", "a giant question"],
)
async def test_what_is_too_long_fails_its_call_and_no_other(
    gateway: Gateways, transport: str, arguments: Json
) -> None:
    """Ours: `limits.event` counts while it comes; nobody waits for the end of the line."""
    async with behind(gateway, transport) as served, Wire(served.url) as client:
        heard = await obeyed(client, **arguments)
        assert (heard.status, heard.error["code"]) == (200, -32603)
        assert len(heard.body) < 1000
        await is_served(client)


async def test_a_flood_of_questions_is_cut_off(gateway: Gateways, transport: str) -> None:
    """Ours: past a thousand the call has failed, whether it would ever stop or not."""
    async with behind(gateway, transport, settle="5s") as served, Wire(served.url) as client:
        heard = await obeyed(client, say=[ask(number) for number in range(1001)], wait=1000)
        assert heard.error["code"] == -32603
        await is_served(client)


async def test_one_question_asked_without_end_is_one_question(gateway: Gateways, transport: str) -> None:
    """Ours: a question is known by its id."""
    async with behind(gateway, transport, settle="200ms") as served, Wire(served.url) as client:
        asked = await obeyed(client, say=[ask("q")], times=1001, wait="q")
        (key,) = asked.asked
        told = json.loads((await client.retry(asked, {key: accept(name="Ada")})).text)
        assert told["result"]["content"] == {"name": "Ada"}
        await is_served(client)


async def test_what_is_not_ours_is_dropped(gateway: Gateways, transport: str) -> None:
    """Ours: answers to requests never sent, progress of other calls, notifications for other sessions."""
    forged = [
        {"jsonrpc": "2.0", "id": id_, "result": text_result("forged")} for id_ in (7, "nobody", -1, "hf-0-1")
    ]
    refused = [{"jsonrpc": "2.0", "id": "nobody", "error": {"code": -1, "message": "forged"}}]
    others = [
        notice("notifications/progress", progressToken="another", progress=1),
        notice("notifications/cancelled", requestId="another"),
        notice("notifications/resources/updated", uri="file:///another"),
        notice("notifications/no/such", sessionId="another"),
    ]
    async with behind(gateway, transport) as served, Wire(served.url) as client:
        heard = await client.tool("obey", {"say": forged + refused + others, "times": 100}, token="mine")
        assert (heard.text, heard.notifications) == ("done", [])
        await is_served(client)


@pytest.mark.parametrize("id_", [2**80, -1, "", "\r\nX: y", "\x00", "é"], ids=repr)
async def test_an_odd_id_of_a_question_goes_back_as_it_came(
    gateway: Gateways, transport: str, id_: Any
) -> None:
    """JSON-RPC 2.0, 5: the same value as the id of the request."""
    async with behind(gateway, transport) as served, Wire(served.url) as client:
        asked = await obeyed(client, say=[ask(id_)], wait=id_)
        (key,) = asked.asked
        told = json.loads((await client.retry(asked, {key: {"action": "decline"}})).text)
        assert (told["id"], told["result"]["action"]) == (id_, "decline")
        await is_served(client)


async def test_an_id_too_long_to_keep_is_refused_under_itself(gateway: Gateways, transport: str) -> None:
    """Ours: it would be kept for as long as the call is held."""
    async with behind(gateway, transport) as served, Wire(served.url) as client:
        told = json.loads((await obeyed(client, say=[ask("x" * 2000)], wait="x" * 2000)).text)
        assert told["error"]["message"] == "The id is too long"
        await is_served(client)


@pytest.mark.parametrize("id_", [1.5, True, [], {}, None], ids=repr)
async def test_an_id_of_no_type_that_ids_have_asks_nobody(
    gateway: Gateways, transport: str, id_: Any
) -> None:
    """JSON-RPC 2.0, 4: a string or a number; MCP allows no fractions and no null."""
    async with behind(gateway, transport) as served, Wire(served.url) as client:
        heard = await obeyed(client, say=[ask(id_)])
        assert "inputRequests" not in heard.message.get("result", {})
        assert heard.message.get("error", {}).get("code", -32603) == -32603
        await is_served(client)


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "http://x.example"])
async def test_an_unsafe_page_is_refused_at_the_server_and_not_shown(
    gateway: Gateways, transport: str, url: str
) -> None:
    """Issue: https, or http on loopback."""
    page = ask(1, params={"mode": "url", "message": "Open", "url": url, "elicitationId": "e"})
    async with behind(gateway, transport) as served, Wire(served.url) as client:
        heard = await obeyed(client, say=[page], wait=1)
        assert json.loads(heard.text)["error"]["code"] == -32602
        assert url.encode() not in heard.body
        await is_served(client)


async def test_a_form_with_a_remote_schema_fetches_nothing(gateway: Gateways, transport: str) -> None:
    """Issue: asks with remote `$ref` schemas are never fetched."""
    async with Scripted() as trap, behind(gateway, transport) as served, Wire(served.url) as client:
        far = {"type": "string", "$ref": f"http://127.0.0.1:{trap.port}/schema.json"}
        schema = {"type": "object", "properties": {"name": far}}
        asked = await obeyed(client, say=[ask(1, params={"message": "?", "requestedSchema": schema})], wait=1)
        told = json.loads((await client.retry(asked, {"name": accept(name="Ada")})).text)
        assert told["result"]["content"] == {"name": "Ada"}
        await is_served(client)
        assert trap.connections == 0
