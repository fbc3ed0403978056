"""Legacy clients where callers are authenticated: the same door, and a session that is its opener's alone."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import pytest

from tests.support.callers import VERIFIED, Callers, callers
from tests.support.gateways import Gateways
from tests.support.peers import LegacyServers, stdio_command

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "legacy", "version": "1"},
}
KEY = "ab" * 32


@pytest.fixture(params=VERIFIED)
async def both(request: pytest.FixtureRequest) -> AsyncIterator[Callers]:
    async with callers(request.param) as found:
        yield found


class Legacy:
    """A legacy client of bare HTTP, with these headers."""

    def __init__(self, http: aiohttp.ClientSession, url: str, headers: Mapping[str, str]) -> None:
        self._http = http
        self.url = url
        self.headers = {**headers, "Accept": "application/json, text/event-stream"}

    async def send(self, method: str, params: Any, session: str | None = None) -> tuple[int, Any, str | None]:
        """Status, answer, and the session's id."""
        headers = {**self.headers, **({} if session is None else {"Mcp-Session-Id": session})}
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if not method.startswith("notifications/"):
            body["id"] = 1
        async with self._http.post(self.url, json=body, headers=headers) as response:
            text = await response.text()
            lines = [line for line in text.splitlines() if line.startswith(("data: {", "{"))]
            found = json.loads(lines[-1].removeprefix("data: ")) if lines else None
            return response.status, found, response.headers.get("Mcp-Session-Id")

    async def opened(self) -> str:
        status, _, session = await self.send("initialize", HELLO)
        assert status == 200
        assert session is not None
        await self.send("notifications/initialized", {}, session)
        return session

    async def add(self, session: str) -> tuple[int, Any]:
        call = {"name": "add", "arguments": {"a": 1, "b": 2}}
        status, answer, _ = await self.send("tools/call", call, session)
        return status, answer


async def not_shared(url: str, both: Callers) -> None:
    async with aiohttp.ClientSession() as http:
        ann, bob = Legacy(http, url, both.ann), Legacy(http, url, both.bob)
        session = await ann.opened()
        stolen = await bob.add(session)
        async with http.delete(url, headers={**bob.headers, "Mcp-Session-Id": session}) as response:
            ended = response.status
        async with http.get(url, headers={**bob.headers, "Mcp-Session-Id": session}) as response:
            heard = response.status
        done = await ann.add(session)
    assert (stolen[0], ended, heard) == (404, 404, 404)
    assert done[0] == 200
    assert done[1]["result"]["content"][0]["text"] == "3"


async def address_shared(served_url: str, both: Callers) -> tuple[int, int]:
    """What Bob gets at the address that Ann's stream told her, and what she gets."""
    async with aiohttp.ClientSession() as http:
        ann = {**both.ann, "Accept": "text/event-stream"}
        async with http.get(served_url, headers=ann) as stream:
            assert stream.status == 200
            await stream.content.readuntil(b"\n")
            place = (await stream.content.readuntil(b"\n")).decode().partition(": ")[2].strip()
            address = served_url.removesuffix("/mcp") + place
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            async with http.post(address, json=ping, headers=both.bob) as response:
                stolen = response.status
            async with http.post(address, json=ping, headers=both.ann) as response:
                return stolen, response.status


@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.32"])
async def test_a_session_is_of_no_use_to_another(
    both: Callers, legacy_servers: LegacyServers, gateway: Gateways, kind: str
) -> None:
    """Issue: a legacy session opened by one principal cannot be used by another."""
    served = await gateway(legacy_servers.get(kind).url, auth=both.auth)
    await not_shared(served.url, both)


@pytest.mark.parametrize("mode", ["jwt", "api_key", "header"])
async def test_a_session_with_a_started_server_is_of_no_use_to_another(mode: str, gateway: Gateways) -> None:
    """Issue: the same where messages are carried to another transport."""
    async with callers(mode) as both:
        served = await gateway.start(
            {
                "listen": "127.0.0.1:0",
                "upstreams": {"x": {"command": stdio_command("py-1.30"), "auth": both.auth}},
            }
        )
        await not_shared(served.url, both)
        await gateway.stop()


async def test_an_address_of_http_sse_is_of_no_use_to_another(
    both: Callers, legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Issue: the same for HTTP+SSE, whose session is an address."""
    served = await gateway(legacy_servers.get("py-1.30", transport="sse").url, auth=both.auth)
    assert await address_shared(served.url, both) == (404, 202)


async def test_an_address_of_a_visit_is_of_no_use_to_another(
    both: Callers, legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Ours: the same where the server speaks another transport than the client, and sees no credential at all."""
    served = await gateway(legacy_servers.get("py-1.30").url, auth=both.auth)
    assert await address_shared(served.url, both) == (404, 202)


@pytest.mark.parametrize("mode", ["jwt", "api_key", "header"])
async def test_who_does_not_get_in_gets_nothing_of_a_legacy_server_either(
    mode: str, legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Issue: legacy clients are subject to the same door."""
    async with callers(mode) as both, aiohttp.ClientSession() as http:
        served = await gateway(legacy_servers.get("py-1.30").url, auth=both.auth)
        status, _, session = await Legacy(http, served.url, {}).send("initialize", HELLO)
    assert status == 401
    assert session is None


async def test_any_replica_knows_whose_a_session_is(
    both: Callers, legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Ours: the owner is sealed into the session's id, under keys that replicas share; also after a rotation."""
    url = legacy_servers.get("py-1.30").url
    here = await gateway(url, auth=both.auth, settings={"sealing": {"keys": [KEY]}})
    there = await gateway(url, auth=both.auth, settings={"sealing": {"keys": ["cd" * 32, KEY]}})
    async with aiohttp.ClientSession() as http:
        session = await Legacy(http, here.url, both.ann).opened()
        stolen = await Legacy(http, there.url, both.bob).add(session)
        done = await Legacy(http, there.url, both.ann).add(session)
    assert stolen[0] == 404
    assert done[0] == 200
