"""Pages in a browser: asked before they call, and able to read what comes, on every way an answer takes."""

from typing import Any

import aiohttp
import pytest

from tests.support.gateways import Gateways
from tests.support.peers import LegacyServers
from tests.support.scripted import Scripted
from tests.support.wire import Answer, Wire

APP = "https://app.example"
OPEN = {"limits": {"allowed_origins": [APP]}}
ASKS = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "content-type,mcp-method,mcp-param-region,authorization",
}
HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "page", "version": "1"},
    },
}


def is_readable(answer: aiohttp.ClientResponse | Answer, origin: str = APP) -> bool:
    """May a page of this origin read it, in the eyes of a browser?"""
    return (
        [value for name, value in answer.headers.items() if name == "Access-Control-Allow-Origin"] == [origin]
        and "Access-Control-Allow-Credentials" not in answer.headers
        and "mcp-session-id" in answer.headers["Access-Control-Expose-Headers"].lower()
        and "Origin" in answer.headers["Vary"]
    )


@pytest.mark.requirement("R2")
@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE"])
async def test_a_browser_that_asks_for_an_allowed_page_is_told_yes(gateway: Gateways, verb: str) -> None:
    """Fetch: 204 to the preflight, with the methods and every header that a client of MCP sends."""
    async with Scripted() as server, aiohttp.ClientSession() as http:
        served = await gateway(server.url, settings=OPEN)
        asked = {**ASKS, "Origin": APP, "Access-Control-Request-Method": verb}
        answer = await http.options(served.url, headers=asked)
        names = {name.strip() for name in answer.headers["Access-Control-Allow-Headers"].lower().split(",")}

        assert (answer.status, await answer.read()) == (204, b"")
        assert answer.headers["Access-Control-Allow-Origin"] == APP
        assert verb in answer.headers["Access-Control-Allow-Methods"].split(", ")
        assert set(ASKS["Access-Control-Request-Headers"].split(",")) <= names
        assert {"mcp-session-id", "mcp-protocol-version", "mcp-name", "last-event-id"} <= names
        assert answer.headers["Vary"] == "Origin"
        assert not [turn for turn in server.turns if turn.method == "OPTIONS"], "it is ours to answer"


@pytest.mark.requirement("R2")
async def test_a_foreign_page_is_told_nothing(gateway: Gateways) -> None:
    """Spec: 403, and no word that would let the page read why."""
    async with Scripted() as server, aiohttp.ClientSession() as http:
        served = await gateway(server.url, settings=OPEN)
        for verb in ("OPTIONS", "POST"):
            answer = await http.request(
                verb, served.url, headers={**ASKS, "Origin": "https://evil.example"}, data=b"{}"
            )
            assert answer.status == 403
            assert not [name for name in answer.headers if name.lower().startswith("access-control")]


async def test_a_question_that_is_no_browser_s_is_a_verb_that_is_not_served(gateway: Gateways) -> None:
    """R4: OPTIONS without Origin, or without what is asked for, is no preflight."""
    async with Scripted() as server, aiohttp.ClientSession() as http:
        served = await gateway(server.url, settings=OPEN)
        answers = [
            await http.options(served.url, headers=headers) for headers in ({}, {"Origin": APP}, dict(ASKS))
        ]

    assert [answer.status for answer in answers] == [405, 405, 405]


async def test_a_page_can_read_results_streams_and_refusals_of_the_modern_era(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Fetch: without the header a page sees none of it, and cannot tell a refusal from a dead network."""
    served = await gateway(legacy_servers.get("py-1.30").url, settings=OPEN)

    async with Wire(served.url) as wire:
        page = {"Origin": APP}
        answers = [
            await wire.request("server/discover", headers=page),
            await wire.request("tools/list", headers=page),
            await wire.tool("progress", {"steps": 2}, token="t", headers=page),
            await wire.request("no/such", headers=page),
            await wire.tool("big", {"characters": 200_000}, headers=page),  # more than is written at once
        ]
        plain = await wire.request("tools/list")

    assert not answers[2].is_json
    assert all(map(is_readable, answers))
    assert not [name for name in plain.headers if name.lower().startswith("access-control")]


async def test_a_page_with_a_legacy_client_gets_our_rules_and_not_the_server_s(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Ours: its session id must be readable, on the answer and on the streams; two rules would void each other."""
    served = await gateway(legacy_servers.get("ts-1.32").url, settings=OPEN)
    accept = {"Accept": "application/json, text/event-stream", "Origin": APP}

    async with aiohttp.ClientSession() as http:
        opened = await http.post(served.url, json=HELLO, headers=accept)
        session = {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"], "Origin": APP}
        listening = await http.get(served.url, headers={**session, "Accept": "text/event-stream"})
        listening.close()
        ended = await http.delete(served.url, headers=session)

    assert all(map(is_readable, (opened, listening, ended)))


async def test_all_pages_may_be_let_in_without_their_credentials(gateway: Gateways) -> None:
    """Fetch: `*` never goes with credentials, so no browser adds cookies by itself."""
    async with Scripted() as server, aiohttp.ClientSession() as http:
        served = await gateway(server.url, settings={"limits": {"allowed_origins": ["*"]}})
        asked = await http.options(served.url, headers={**ASKS, "Origin": "https://anything.example"})
        sent = await http.post(served.url, data=b"{}", headers={"Origin": "null"})

    assert (asked.status, asked.headers["Access-Control-Allow-Origin"]) == (204, "*")
    assert is_readable(sent, "*")


async def test_a_page_of_this_machine_needs_no_setting_on_a_loopback_listener(gateway: Gateways) -> None:
    """Ours: the inspector runs on another port."""
    async with Scripted() as server, aiohttp.ClientSession() as http:
        served = await gateway(server.url)
        asked = await http.options(served.url, headers={**ASKS, "Origin": "http://localhost:6274"})

    assert (asked.status, asked.headers["Access-Control-Allow-Origin"]) == (204, "http://localhost:6274")
