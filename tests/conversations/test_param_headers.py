"""Arguments that clients repeat in `Mcp-Param-*` headers, because a legacy tool's schema says so."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.gateways import Gateways
from tests.support.peers import CONFORMANCE_KINDS, LegacyServers, Running, ts_client
from tests.support.python_client import PythonClient, text_of
from tests.support.scripted import Scripted, Turn, asking, notice
from tests.support.wire import Wire, accept

Json = dict[str, Any]

TOOL = "test_x_mcp_header"
GIVEN: Json = {
    "region": "Zürich ",
    "priority": 42,
    "dryRun": False,
    "tenant": {"id": "=?base64?x?="},
    "note": "not repeated",
}

SCHEMA: Json = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}


@pytest.fixture(params=CONFORMANCE_KINDS)
def server(request: pytest.FixtureRequest, legacy_servers: LegacyServers) -> Running:
    return legacy_servers.get(request.param)


@pytest.fixture
async def scripted() -> AsyncIterator[Scripted]:
    """A server with one tool, which asks for a name, on the second page of its list."""

    async def list_tools(turn: Turn) -> None:
        if turn.message.get("params", {}).get("cursor") == "two":
            await turn.result({"tools": [{"name": "ask", "inputSchema": SCHEMA}]})
        else:
            await turn.result({"tools": [], "nextCursor": "two"})

    async with Scripted(on={"tools/list": list_tools, "tools/call": asking}) as server:
        yield server


# --- real clients ------------------------------------------------------------------------------------------


@pytest.mark.requirement("R19", "R21")
async def test_the_python_client_is_told_to_list_first_and_then_gets_through(
    server: Running, gateway: Gateways
) -> None:
    """Both clients list the tools and try once more when their headers are refused."""
    served = await gateway(server.url)

    async with PythonClient(served.url, mode="2026-07-28") as client:
        assert text_of(await client.tool(TOOL, GIVEN)) == "Came with its headers."
        assert text_of(await client.tool(TOOL, GIVEN)) == "Came with its headers."

    assert [(entry.method, entry.status) for entry in client.rounds] == [
        ("tools/call", 400),
        ("tools/list", 200),
        ("tools/call", 200),
        ("tools/call", 200),
    ]


@pytest.mark.requirement("R19")
async def test_the_python_client_that_has_listed_is_never_refused(server: Running, gateway: Gateways) -> None:
    served = await gateway(server.url)

    async with PythonClient(served.url) as client:
        await client.client.list_tools()
        for arguments in (GIVEN, {"region": ""}, {"region": "eu", "priority": 2**60, "tenant": {}}):
            assert text_of(await client.tool(TOOL, arguments)) == "Came with its headers."

    assert {entry.status for entry in client.rounds} == {200}


@pytest.mark.requirement("R19")
@pytest.mark.parametrize(("first", "refusals"), [([{"method": "tools/list"}], 0), ([], 1)])
async def test_the_typescript_client_gets_through_too(
    server: Running, gateway: Gateways, first: list[Json], refusals: int
) -> None:
    served = await gateway(server.url)
    calls: list[Json] = [
        {"method": "tools/call", "name": TOOL, "arguments": arguments}
        for arguments in (GIVEN, {"region": ""}, {"region": "eu", "priority": 2**53})
    ]

    report = await ts_client({"url": served.url, "calls": [*first, *calls]})

    texts = [entry["result"]["content"][0]["text"] for entry in report["results"][len(first) :]]
    assert texts == ["Came with its headers."] * 3
    assert sum(entry["status"] == 400 for entry in report["http"]) == refusals


# --- every round, every page ---------------------------------------------------------------------------------


@pytest.mark.requirement("R19", "R21")
async def test_a_call_that_disagrees_with_its_headers_never_reaches_the_server(
    scripted: Scripted, gateway: Gateways
) -> None:
    served = await gateway(scripted.url)

    async with Wire(served.url) as client:
        for headers in ({}, {"Mcp-Param-Region": "us"}, {"mcp-param-REGION": "=?base64?ZXU?="}):
            refused = await client.tool("ask", {"region": "eu"}, headers=headers)
            assert (refused.status, refused.error["code"]) == (400, -32020)
            assert "Mcp-Param-Region" in refused.error["message"]

    assert scripted.seen("tools/call") == []
    assert len(scripted.seen("tools/list")) == 2  # two pages, once


@pytest.mark.requirement("R19")
async def test_every_round_is_checked_and_a_refused_one_leaves_the_hold_as_it_was(
    scripted: Scripted, gateway: Gateways
) -> None:
    served = await gateway(scripted.url)
    right = {"Mcp-Param-Region": "eu"}

    async with Wire(served.url) as client:
        asked = await client.tool("ask", {"region": "eu"}, headers=right)
        answers = {key: accept(name="Ann") for key in asked.asked}
        refused = await client.retry(asked, answers, headers={"Mcp-Param-Region": "us"})
        done = await client.retry(asked, answers, headers=right)

    assert refused.error["code"] == -32020
    assert done.text == "Hello Ann"
    assert len(scripted.seen("tools/call")) == 1


@pytest.mark.requirement("R21")
async def test_a_server_that_changes_its_tools_is_asked_again(scripted: Scripted, gateway: Gateways) -> None:
    served = await gateway(scripted.url, sessions={"warm": 0})

    async def list_plain(turn: Turn) -> None:
        await turn.result({"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]})

    async with Wire(served.url) as client:
        refused = await client.tool("ask", {"region": "eu"})
        scripted.on["tools/list"] = list_plain
        for session in list(scripted.standing):
            await scripted.say(notice("notifications/tools/list_changed"), session)
        await scripted.say({"jsonrpc": "2.0", "id": "heard", "method": "ping"}, session)
        await scripted.wait_for_answer("heard")
        asked = await client.tool("ask", {"region": "eu"})

    assert refused.error["code"] == -32020
    assert asked.asked


@pytest.mark.requirement("R20")
async def test_a_server_without_annotations_is_asked_for_its_list_once_and_strange_headers_do_not_matter(
    gateway: Gateways,
) -> None:
    async with Scripted() as plain:
        served = await gateway(plain.url)
        async with Wire(served.url) as client:
            for headers in ({}, {}, {"Mcp-Param-Region": "eu"}, {"Mcp-Param-Region": "=?base64?!?="}):
                assert (await client.tool("echo", {"region": "us"}, headers=headers)).text == "done"

    assert len(plain.seen("tools/list")) == 1


async def test_a_server_that_cannot_list_its_tools_still_runs_them(gateway: Gateways) -> None:
    """Ours: where nothing is annotated as far as anybody knows, nobody is refused."""

    async def broken(turn: Turn) -> None:
        await turn.json({"jsonrpc": "2.0", "id": turn.id, "error": {"code": -32603, "message": "no"}})

    async with Scripted(on={"tools/list": broken}) as server:
        served = await gateway(server.url)
        async with Wire(served.url) as client:
            assert (await client.tool("echo")).text == "done"
            assert (await client.tool("echo")).text == "done"
            refused = await client.tool("echo", headers={"Mcp-Param-Region": "eu"})

    assert refused.error["code"] == -32603
    assert len(server.seen("tools/call")) == 2
