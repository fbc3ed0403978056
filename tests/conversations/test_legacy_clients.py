"""Clients of the legacy era through the gateway: as if it were not there."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from tests.support.gateways import Gateways
from tests.support.legacy_calls import both, tool
from tests.support.legacy_peers import LEGACY_CLIENTS
from tests.support.peers import LegacyServers, start_legacy, stdio_command, ts_client
from tests.support.python_client import text_of
from tests.support.scripted import Scripted, Turn

Json = dict[str, Any]


HELLO: Json = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}
BOTH = {"Accept": "application/json, text/event-stream"}


@pytest.mark.parametrize("client", LEGACY_CLIENTS)
@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.32"])
async def test_a_legacy_client_sees_the_same_through_the_gateway_as_without_it(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str, client: str
) -> None:
    server = legacy_servers.get(kind)
    served = await gateway(server.url)

    direct, through = await both(client, server.url, served.url)

    assert len(direct["asked"]) >= 8
    assert through == direct


@pytest.mark.parametrize("client", LEGACY_CLIENTS)
@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.32"])
async def test_an_http_sse_client_of_an_http_sse_server_sees_the_same(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str, client: str
) -> None:
    server = legacy_servers.get(kind, transport="sse")
    served = await gateway(server.url)

    direct, through = await both(client, server.url, served.url, ("sse", "sse"))

    assert through == direct


@pytest.mark.parametrize("client", LEGACY_CLIENTS)
async def test_a_streamable_http_client_is_served_by_an_http_sse_server(
    legacy_servers: LegacyServers, gateway: Gateways, client: str
) -> None:
    server = legacy_servers.get("py-1.30", transport="sse")
    served = await gateway(server.url)

    direct, bridged = await both(client, server.url, served.url, ("sse", "http"))

    assert bridged == direct


@pytest.mark.parametrize("client", LEGACY_CLIENTS)
async def test_a_streamable_http_client_is_served_by_a_stdio_server(
    legacy_servers: LegacyServers, gateway: Gateways, client: str
) -> None:
    settings = {"listen": "127.0.0.1:0", "upstreams": {"x": {"command": stdio_command("ts-1.32")}}}
    served = await gateway.start(settings)

    direct, bridged = await both(client, legacy_servers.get("ts-1.32").url, served.url)

    assert bridged == direct


@pytest.mark.parametrize("client", LEGACY_CLIENTS)
@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.32"])
async def test_an_http_sse_client_is_served_by_a_streamable_http_server(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str, client: str
) -> None:
    """Issue: a legacy client of an upstream on another transport is served as well."""
    server = legacy_servers.get(kind)
    served = await gateway(server.url)

    direct, bridged = await both(client, server.url, served.url, ("http", "sse"))

    assert len(direct["asked"]) >= 8
    assert bridged == direct


@pytest.mark.parametrize("client", LEGACY_CLIENTS)
async def test_an_http_sse_client_is_served_by_a_stdio_server(
    legacy_servers: LegacyServers, gateway: Gateways, client: str
) -> None:
    """Issue: the same, with a process for each visit."""
    settings = {"listen": "127.0.0.1:0", "upstreams": {"x": {"command": stdio_command("ts-1.32")}}}
    served = await gateway.start(settings)

    direct, bridged = await both(client, legacy_servers.get("ts-1.32").url, served.url, ("http", "sse"))

    assert bridged == direct


async def test_the_modern_typescript_client_in_its_default_mode_is_a_legacy_client(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """MODERN-WIRE 1, 6: a default `new Client()` never sends discover."""
    served = await gateway(legacy_servers.get("ts-1.32").url)
    answers = {"elicitation": [{"content": {"name": "Ada"}}]}

    report = await ts_client(
        {"url": served.url, "mode": "legacy", "answers": answers, "calls": [tool("ask_name")]}
    )

    assert (report["era"], report["version"]) == ("legacy", "2025-11-25")
    assert "Ada" in report["results"][0]["result"]["content"][0]["text"]


@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.32"])
async def test_the_modern_python_client_in_its_default_mode_works(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str
) -> None:
    from tests.support.python_client import PythonClient  # noqa: PLC0415 - slow to import

    served = await gateway(legacy_servers.get(kind).url)

    async with PythonClient(served.url, mode="auto") as client:
        result = await client.tool("ask_name")

    assert text_of(result)


# --- byte by byte --------------------------------------------------------------------------------


async def test_requests_and_responses_are_those_of_the_two_ends(gateway: Gateways) -> None:
    """Statuses, headers, framing, comments, event ids: nothing is read, nothing re-written."""
    stream = b": hi\r\n\r\nid: 7\r\nevent: message\r\ndata: {}\r\nretry: 5\r\n\r\nevent: other\ndata:\xe2\x80\xa8\n\n"

    async def calls(turn: Turn) -> None:
        await turn.stream(
            {"X-Own": "a, b", "Mcp-Session-Id": "s-1", "Connection": "x-secret", "X-Secret": "no"}
        )
        await turn.chunk(stream[:25])
        await turn.chunk(stream[25:])
        await turn.finish()

    body = b'{ "jsonrpc":"2.0",\n"id": 1.0e0, "method":"tools/call", "extra": [1,2 ] }'
    async with Scripted(sessions=False) as server, aiohttp.ClientSession() as http:
        server.on["answer"] = calls  # its id is no integer: to us it would be no request
        server.on["tools/call"] = calls
        served = await gateway(server.url)
        answer = await http.post(
            served.url,
            params={"q": "1"},
            data=body,
            headers={
                **BOTH,
                "Content-Type": "application/json",
                "MCP-Protocol-Version": "2025-06-18",
                "Authorization": "Bearer t",
                "Origin": "http://localhost:1",
                "X-Forwarded-For": "10.0.0.1",
                "Proxy-Authorization": "secret",
                "X-Own": "yes",
            },
        )
        received = await answer.read()
        (turn,) = [turn for turn in server.turns if turn.body == body]

    assert (answer.status, received) == (200, stream)
    assert answer.headers["X-Own"] == "a, b"
    assert "X-Secret" not in answer.headers
    assert turn.path == "/mcp?q=1"
    sent = turn.headers
    assert (sent["authorization"], sent["x-own"]) == ("Bearer t", "yes")
    assert sent["host"] == f"127.0.0.1:{server.port}"
    assert sent["x-forwarded-for"] == "10.0.0.1, 127.0.0.1"
    assert sent["x-forwarded-proto"] == "http"
    assert sent["x-forwarded-host"] == served.url.split("/")[2]
    assert not {"origin", "proxy-authorization", "connection", "transfer-encoding"} & sent.keys()


@pytest.mark.parametrize(
    ("status", "body"), [(404, b"gone"), (400, b""), (409, b"<h1>no</h1>"), (503, b"{}")]
)
async def test_a_refusal_of_the_server_is_its_own(gateway: Gateways, status: int, body: bytes) -> None:
    async def refuse(turn: Turn) -> None:
        await turn.reply(status, body, {"Content-Type": "text/plain", "Retry-After": "3"})

    async with Scripted() as server, aiohttp.ClientSession() as http:
        server.unknown_session = refuse
        served = await gateway(server.url)
        for verb in ("POST", "GET", "DELETE"):
            answer = await http.request(
                verb, served.url, headers={"Mcp-Session-Id": "x"}, data=b"{}" if verb == "POST" else None
            )
            assert (answer.status, await answer.read()) == (status, body)
            assert answer.headers["Retry-After"] == "3"


async def test_events_are_not_held_back_and_a_client_that_leaves_is_not_waited_for(gateway: Gateways) -> None:
    async with Scripted() as server, aiohttp.ClientSession() as http:
        served = await gateway(server.url)
        opened = await http.post(served.url, json=HELLO, headers=BOTH)
        session = opened.headers["Mcp-Session-Id"]
        headers = {"Mcp-Session-Id": session, "Accept": "text/event-stream", "Last-Event-ID": "41"}
        listening = await http.get(served.url, headers=headers)
        await server.wait_until(lambda: session in server.standing)
        await server.say({"jsonrpc": "2.0", "method": "notifications/x"}, session)
        async with asyncio.timeout(5):
            first = await listening.content.readany()
        turn = server.standing[session]
        listening.close()
        await server.wait_until(lambda: turn.has_left)

    assert b"notifications/x" in first
    assert turn.headers["last-event-id"] == "41"


async def test_a_stream_that_breaks_off_breaks_off_for_the_client_too(gateway: Gateways) -> None:
    async def breaks(turn: Turn) -> None:
        await turn.stream()
        await turn.chunk(b"data: {}\n\n")
        turn.reset()

    async with Scripted(sessions=False) as server, aiohttp.ClientSession() as http:
        server.on["tools/call"] = breaks
        served = await gateway(server.url)
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        answer = await http.post(
            served.url, json=body, headers={**BOTH, "MCP-Protocol-Version": "2025-06-18"}
        )
        with pytest.raises(aiohttp.ClientError):
            await answer.read()


async def test_a_server_that_cannot_be_reached_is_told_by_the_status(gateway: Gateways) -> None:
    served = await gateway("http://127.0.0.1:9/mcp")

    async with aiohttp.ClientSession() as http:
        answer = await http.post(served.url, json=HELLO, headers=BOTH)
        told = await answer.json()

    assert (answer.status, told["id"], told["error"]["code"]) == (502, 0, -32603)


async def test_an_address_that_we_did_not_give_out_leads_nowhere(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    served = await gateway(legacy_servers.get("py-1.30", transport="sse").url)

    async with aiohttp.ClientSession() as http:
        made_up = await http.post(f"{served.url}?holdfast=L21lc3NhZ2Vz", json=HELLO)
        listening = await http.get(served.url, headers={"Accept": "text/event-stream"})
        given = (await listening.content.readuntil(b"\r\n\r\n")).decode().split("data: ")[1].strip()
        changed = await http.post(served.url.split("/mcp")[0] + given[:-3] + "abc", json=HELLO)
        listening.close()

    assert made_up.status == changed.status == 404


@pytest.mark.parametrize("transport", ["sse", "stdio", "py-1.12", "py-1.30", "ts-1.32"])
async def test_an_http_sse_client_may_name_a_revision_before_its_handshake(
    legacy_servers: LegacyServers, gateway: Gateways, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    """As npm `@ai-sdk/mcp` 2.0.99 does: taken for a client of Streamable HTTP, it was told to show a session."""
    monkeypatch.setattr("gateway.relay.passthrough._HANDSHAKE_SECONDS", 0.05)
    if transport == "sse":
        upstream: Json = {"url": legacy_servers.get("py-1.30", transport="sse").url}
    elif transport == "stdio":
        upstream = {"command": stdio_command("py-1.30")}
    else:
        upstream = {"url": legacy_servers.get(transport).url}
    served = await gateway.start({"listen": "127.0.0.1:0", "upstreams": {"x": upstream}})
    begins = {"Accept": "text/event-stream", "MCP-Protocol-Version": "2025-11-25"}

    async with (
        asyncio.timeout(20),
        aiohttp.ClientSession() as http,
        http.get(served.url, headers=begins) as seen,
    ):
        address = await _data_of(seen)
        said = await http.post(served.url.removesuffix("/mcp") + address, json=HELLO)
        answer = json.loads(await _data_of(seen))

    assert (seen.status, said.status) == (200, 202)
    assert answer["result"]["serverInfo"]["name"] in ("py-legacy", "ts-legacy")


@pytest.mark.parametrize("transport", ["stdio", "ts-1.32"])
async def test_a_client_that_wants_a_stream_before_its_session_has_that_of_its_session_in_the_end(
    legacy_servers: LegacyServers, gateway: Gateways, transport: str
) -> None:
    """As npm `@ai-sdk/mcp` 1 does: it asks again after `initialized`, but only if it was given none by then."""
    is_process = transport == "stdio"
    upstream = (
        {"command": stdio_command("ts-1.32")} if is_process else {"url": legacy_servers.get(transport).url}
    )
    served = await gateway.start({"listen": "127.0.0.1:0", "upstreams": {"x": upstream}})
    named = {"Accept": "text/event-stream", "MCP-Protocol-Version": "2025-11-25"}

    async with asyncio.timeout(20), aiohttp.ClientSession() as http:
        early = asyncio.ensure_future(http.get(served.url, headers=named))
        try:
            answer = await http.post(served.url, json=HELLO, headers={**named, **BOTH})
            mine = {**named, "Mcp-Session-Id": answer.headers["Mcp-Session-Id"]}
            ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            told = await http.post(served.url, json=ready, headers={**mine, **BOTH})
            has_stream = early.done()
            async with http.get(served.url, headers=mine) as stream:
                pass
        finally:
            early.cancel()

    assert (told.status, has_stream, stream.status) == (202, False, 200)


@pytest.mark.parametrize("status", [200, 405, 404])
async def test_the_stream_of_a_client_without_a_session_id_is_as_its_server_has_it(
    gateway: Gateways, status: int
) -> None:
    """Ours: a server without session ids may have a stream or none, and its clients are told which."""

    async def listens(turn: Turn) -> None:
        await turn.reply(status, b": hello\n\n", {"Content-Type": "text/event-stream"})

    named = {"Accept": "text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    async with Scripted(sessions=False, on={"GET": listens}) as server, aiohttp.ClientSession() as http:
        served = await gateway(server.url)
        answer = await http.get(served.url, headers=named)
        assert (answer.status, await answer.read()) == (status, b": hello\n\n")


async def _data_of(stream: aiohttp.ClientResponse) -> str:
    """That of the next event."""
    while not (line := await stream.content.readline()).startswith(b"data: "):
        assert line, stream.status
    return line.decode().removeprefix("data: ").strip()


async def test_legacy_clients_may_be_refused(legacy_servers: LegacyServers, gateway: Gateways) -> None:
    served = await gateway(legacy_servers.get("py-1.30").url, legacy_clients="refuse")

    async with aiohttp.ClientSession() as http:
        answer = await http.post(served.url, json=HELLO, headers=BOTH)
        told = await answer.json()
        listening = await http.get(served.url, headers={"Accept": "text/event-stream"})

    assert (answer.status, told["error"]["code"]) == (400, -32022)
    assert told["error"]["data"].items() >= {"supported": ["2026-07-28"], "requested": "2025-11-25"}.items()
    assert listening.status == 405


async def test_a_bridged_session_belongs_to_whoever_opened_it_and_ends_when_told(gateway: Gateways) -> None:
    settings = {"listen": "127.0.0.1:0", "upstreams": {"x": {"command": stdio_command("py-1.30")}}}
    served = await gateway.start(settings)
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    async with aiohttp.ClientSession() as http:
        opened = await http.post(served.url, json=HELLO, headers={**BOTH, "Authorization": "Bearer a"})
        session = {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"], "Authorization": "Bearer a"}
        told = await http.post(
            served.url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session
        )
        own = await http.post(served.url, json=listing, headers={**BOTH, **session})
        stolen = await http.post(
            served.url, json=listing, headers={**BOTH, **session, "Authorization": "Bearer b"}
        )
        first = await http.get(served.url, headers={**session, "Accept": "text/event-stream"})
        second = await http.get(served.url, headers={**session, "Accept": "text/event-stream"})
        ended = await http.delete(served.url, headers=session)
        async with asyncio.timeout(5):
            rest = await first.read()
        after = await http.post(served.url, json=listing, headers={**BOTH, **session})

    statuses = [answer.status for answer in (opened, told, own, stolen, first, second, ended, after)]
    assert statuses == [200, 202, 200, 404, 200, 409, 200, 404]
    assert rest == b""
    assert json.loads(await own.read())["id"] == 1


async def test_a_gateway_that_stops_ends_the_streams_of_legacy_clients(gateway: Gateways) -> None:
    async with start_legacy("ts-1.32") as server, aiohttp.ClientSession() as http:
        served = await gateway(server.url, settings={"drain": "5s"})
        opened = await http.post(served.url, json=HELLO, headers=BOTH)
        headers = {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"], "Accept": "text/event-stream"}
        listening = await http.get(served.url, headers=headers)

        async with asyncio.timeout(3):
            await served.gateway.drain()
        with pytest.raises(aiohttp.ClientError):
            await listening.read()
        again = await http.get(served.url, headers=headers)

    assert again.status == 503
