"""Callers who call too often are told when to come again, and lose nothing by it."""

import aiohttp
import pytest

from tests.support.gateways import Gateways
from tests.support.scripted import Scripted, asking
from tests.support.waiting import until
from tests.support.wire import Answer, Wire, accept


@pytest.mark.requirement("R59")
async def test_one_request_too_many_is_refused_with_its_time_and_costs_the_server_nothing(
    gateway: Gateways,
) -> None:
    """RFC 6585, 4: 429 with Retry-After. The code is outside the reserved ranges, as -31001 is."""
    async with Scripted() as server:
        served = await gateway(server.url, rate={"per_principal": "1/h", "burst": 2}, sessions={"warm": 0})
        async with Wire(served.url) as client:
            assert (await client.request("tools/list")).status == 200
            assert (await client.tool("echo")).text == "done"
            refused = await client.tool("echo")
    assert (refused.status, refused.error["code"]) == (429, -31002)
    assert int(refused.headers["Retry-After"]) > 3000
    assert refused.told == {"retryAfter": int(refused.headers["Retry-After"])}
    assert len(server.seen("tools/call")) == 1


@pytest.mark.requirement("R59")
async def test_a_completion_counts_as_any_call(gateway: Gateways) -> None:
    """Spec: completion, Security: implementations MUST rate limit it."""
    reference = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "v"}}
    async with Scripted() as server:
        served = await gateway(server.url, rate={"per_principal": "1/h", "burst": 1}, sessions={"warm": 0})
        async with Wire(served.url) as client:
            assert (await client.tool("echo")).text == "done"
            refused = await client.request("completion/complete", reference)
    assert (refused.status, refused.error["code"]) == (429, -31002)
    assert server.seen("completion/complete") == []


async def test_discovery_of_a_known_client_is_never_refused(gateway: Gateways) -> None:
    """Ours: it is answered from memory, and clients begin with it."""
    async with Scripted() as server:
        served = await gateway(server.url, rate={"per_principal": "1/h", "burst": 1})
        async with Wire(served.url) as client:
            await client.tool("echo")
            assert (await client.tool("echo")).status == 429
            assert {(await client.request("server/discover")).status for _ in range(5)} == {200}


async def test_a_ticket_that_was_refused_for_its_haste_is_still_good(gateway: Gateways) -> None:
    """Ours: a refused request consumes nothing."""
    async with Scripted() as server:
        server.on["tools/call"] = asking
        served = await gateway(server.url, rate={"per_principal": "3/s", "burst": 1}, sessions={"warm": 0})
        async with Wire(served.url) as client:
            asked = await client.tool("greet")
            answers: list[Answer] = []

            async def is_taken() -> bool:
                answers.append(await client.retry(asked, {"name": accept(name="Ada")}))
                return answers[-1].status != 429

            assert not await is_taken(), "too soon"
            await until(is_taken)
            assert "Ada" in answers[-1].text
    assert len(server.seen("answer")) == 1


@pytest.mark.parametrize("auth", ["none", "passthrough"])
async def test_callers_with_a_credential_are_counted_each_for_themselves(
    gateway: Gateways, auth: str
) -> None:
    """Ours: one caller's haste is not another's; without credentials an address is one caller."""
    async with Scripted() as server:
        served = await gateway(server.url, auth={"mode": auth}, rate={"per_principal": "1/h", "burst": 1})
        statuses = []
        for name in ("ada", "bob", "ada"):
            async with Wire(served.url, authorization=f"Bearer {name}") as client:
                statuses.append((await client.request("tools/list")).status)
    assert statuses == ([200, 200, 429] if auth == "passthrough" else [200, 429, 429])


async def test_all_together_are_bounded_by_the_total(gateway: Gateways) -> None:
    """Ours: whoever invents credentials gets a new bucket each time, but there is one for all."""
    async with Scripted() as server:
        served = await gateway(
            server.url, auth={"mode": "passthrough"}, rate={"total": "1/h", "total_burst": 2}
        )
        statuses = []
        for number in range(4):
            async with Wire(served.url, authorization=f"Bearer {number}") as client:
                statuses.append((await client.request("tools/list")).status)
    assert statuses == [200, 200, 429, 429]


async def test_each_upstream_counts_for_itself(gateway: Gateways) -> None:
    """Issue: rate limits per principal and per upstream."""
    async with Scripted() as server:
        limited = {"url": server.url, "rate": {"per_principal": "1/h", "burst": 1}}
        upstreams = {"one": limited, "two": limited, "free": {"url": server.url}}
        served = await gateway.start({"listen": "127.0.0.1:0", "upstreams": upstreams})
        statuses = []
        for name in ("one", "one", "two", "two", "free", "free"):
            async with Wire(served.gateway.url(name)) as client:
                statuses.append((await client.request("tools/list")).status)
    assert statuses == [200, 429, 200, 429, 200, 200]


async def test_legacy_clients_count_too(gateway: Gateways) -> None:
    """Ours: there is one front door."""
    async with Scripted() as server:
        served = await gateway(server.url, rate={"per_principal": "1/h", "burst": 1})
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "l", "version": "1"},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        headers = {"Accept": "application/json, text/event-stream"}
        async with aiohttp.ClientSession() as http:
            first = await http.post(served.url, json=body, headers=headers)
            second = await http.post(served.url, json=body, headers=headers)
            told = await second.json()
    assert (first.status, second.status, told["error"]["code"]) == (200, 429, -31002)
    assert "Retry-After" in second.headers
