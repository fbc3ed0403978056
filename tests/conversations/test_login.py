"""Logging in with a real client, through the gateway: where it verifies tokens itself, and where the server does."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.support.gateways import Gateways
from tests.support.guarded import Guard, guarding
from tests.support.issuer import Issuer, issuing
from tests.support.oauth_client import Kept, logging_in
from tests.support.peers import LegacyServers, ts_client
from tests.support.person import plan_answers
from tests.support.python_client import text_of
from tests.support.serving import free_port
from tests.support.wire import Wire

WELL_KNOWN = "/.well-known/oauth-protected-resource"


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with issuing() as started:
        yield started


def jwt(issuer: Issuer) -> dict[str, object]:
    return {"issuer": issuer.url, "jwks_url": f"{issuer.url}/jwks"}


async def fetched(url: str) -> dict[str, object]:
    async with aiohttp.ClientSession() as http, http.get(url) as response:
        assert response.status == 200
        found: dict[str, object] = await response.json()
        return found


@pytest.mark.requirement("R47", "R48", "R49", "R50")
async def test_a_real_client_logs_in_where_tokens_are_verified_here(
    legacy_servers: LegacyServers, gateway: Gateways, issuer: Issuer
) -> None:
    """Issue: RFC 9728 metadata and `WWW-Authenticate`, so that real clients can log in."""
    port = free_port()
    served = await gateway(
        legacy_servers.get("py-1.30").url,
        auth={"mode": "jwt", "jwt": jwt(issuer), "scopes": ["crm:use"]},
        settings={"listen": f"127.0.0.1:{port}", "public_url": f"http://127.0.0.1:{port}"},
    )
    kept = Kept()

    async with logging_in(served.url, kept) as client:
        greeted = text_of(await client.call_tool("ask_name", {}))
        who = json.loads(text_of(await client.call_tool("whoami", {})))
        version = client.protocol_version

    assert version == "2026-07-28"
    assert "Ann" in greeted
    assert issuer.resources == [served.url]
    assert issuer.scope == "crm:use"
    assert who["authorization"] is None, "the token was issued for the gateway, and goes nowhere else"


@pytest.mark.requirement("R48", "R49")
async def test_a_real_client_logs_in_where_the_server_verifies_them(
    legacy_servers: LegacyServers, gateway: Gateways, issuer: Issuer
) -> None:
    """Issue: the upstream's own metadata passed on with `resource` rewritten."""

    def admits(request: web.Request) -> bool:
        return request.headers.get("Authorization", "").startswith("Bearer ey")

    async with guarding(legacy_servers.get("py-1.30").url, Guard(admits, issuer=issuer.url)) as guard:
        served = await gateway(guard.url, auth={"mode": "passthrough"})
        kept = Kept()
        async with logging_in(served.url, kept) as client:
            greeted = text_of(await client.call_tool("ask_name", {}))
            who = json.loads(text_of(await client.call_tool("whoami", {})))
            version = client.protocol_version
        metadata = await fetched(served.url.replace("/mcp", f"{WELL_KNOWN}/mcp"))
        at_the_root = await fetched(served.url.replace("/mcp", WELL_KNOWN))

    assert version == "2026-07-28"
    assert "Ann" in greeted
    assert kept.tokens is not None
    assert who["authorization"] == f"Bearer {kept.tokens.access_token}"
    assert (
        metadata
        == at_the_root
        == {
            "resource": served.url,
            "authorization_servers": [issuer.url],
            "scopes_supported": ["crm:use"],
        }
    )


PLAN = {
    "login": True,
    "answers": plan_answers(),
    "calls": [
        {"method": "tools/list"},
        {"method": "tools/call", "name": "ask_name", "arguments": {}},
        {"method": "tools/call", "name": "whoami", "arguments": {}},
    ],
}


def said(report: dict[str, Any]) -> list[str]:
    assert "connectError" not in report, report
    return [str(entry["result"]["content"][0]["text"]) for entry in report["results"][1:]]


@pytest.mark.parametrize("mode", ["pin", "auto"])
@pytest.mark.requirement("R47", "R48", "R49", "R50")
async def test_the_typescript_client_logs_in_where_tokens_are_verified_here(
    legacy_servers: LegacyServers, gateway: Gateways, issuer: Issuer, mode: str
) -> None:
    """Issue: real clients can log in; this one probes first, and must not take the 401 for a legacy server."""
    port = free_port()
    served = await gateway(
        legacy_servers.get("py-1.30").url,
        auth={"mode": "jwt", "jwt": jwt(issuer), "scopes": ["crm:use"]},
        settings={"listen": f"127.0.0.1:{port}", "public_url": f"http://127.0.0.1:{port}"},
    )

    report = await ts_client({**PLAN, "url": served.url, "mode": mode})

    greeted, who = said(report)
    assert (report["era"], report["version"]) == ("modern", "2026-07-28")
    assert [login["when"] for login in report["logins"]] == ["connect"]
    assert (issuer.resources, issuer.scope) == ([served.url], "crm:use")
    assert "Ann" in greeted
    assert json.loads(who)["authorization"] is None


@pytest.mark.parametrize("mode", ["pin", "auto"])
@pytest.mark.requirement("R48", "R49")
async def test_the_typescript_client_logs_in_at_a_server_that_refuses_even_the_handshake(
    legacy_servers: LegacyServers, gateway: Gateways, issuer: Issuer, mode: str
) -> None:
    """Issue: discovery does not depend on the upstream, so the 401 comes with the first list, and has to."""

    def admits(request: web.Request) -> bool:
        return request.headers.get("Authorization", "").startswith("Bearer ey")

    async with guarding(legacy_servers.get("py-1.30").url, Guard(admits, issuer=issuer.url)) as guard:
        served = await gateway(guard.url, auth={"mode": "passthrough"})
        report = await ts_client({**PLAN, "url": served.url, "mode": mode})

    greeted, who = said(report)
    assert (report["era"], report["version"]) == ("modern", "2026-07-28")
    assert [login["when"] for login in report["logins"]] == ["tools/list"]
    assert (issuer.resources, issuer.scope) == ([served.url], "crm:use")
    assert "Ann" in greeted
    assert json.loads(who)["authorization"] == f"Bearer {report['logins'][0]['token']}"


@pytest.mark.requirement("R3")
async def test_the_servers_own_address_in_its_challenge_becomes_ours(
    legacy_servers: LegacyServers, gateway: Gateways, issuer: Issuer
) -> None:
    """Ours: clients hold the metadata's `resource` against what they called; the rest is as the server said."""
    async with guarding(legacy_servers.get("py-1.30").url, Guard(lambda _: False)) as guard:
        served = await gateway(guard.url, auth={"mode": "passthrough"})
        async with Wire(served.url, authorization="Bearer x") as wire:
            refused = await wire.tool("add", {"a": 1, "b": 2})

    own = served.url.replace("/mcp", f"{WELL_KNOWN}/mcp")
    assert refused.status == 401
    assert refused.headers["WWW-Authenticate"] == guard.challenge.replace(guard.metadata_url, own)


@pytest.mark.requirement("R48")
async def test_the_metadata_is_what_the_configuration_says(
    legacy_servers: LegacyServers, gateway: Gateways, issuer: Issuer
) -> None:
    """RFC 9728, 3.1: the well-known path goes before the endpoint's own; two upstreams have one each."""
    one = {
        "url": legacy_servers.get("py-1.30").url,
        "auth": {
            "mode": "jwt",
            "scopes": ["a", "b"],
            "jwt": {**jwt(issuer), "authorization_servers": ["https://login.example.com"]},
        },
    }
    served = await gateway.start(
        {
            "listen": "127.0.0.1:0",
            "public_url": "https://mcp.example.com/gate/",
            "upstreams": {"one": one, "two": {"url": one["url"]}},
        }
    )
    root = served.url.removesuffix("/one/mcp")
    expected = {
        "resource": "https://mcp.example.com/gate/one/mcp",
        "authorization_servers": ["https://login.example.com"],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["a", "b"],
    }

    assert await fetched(f"{root}{WELL_KNOWN}/one/mcp") == expected
    assert await fetched(f"{root}{WELL_KNOWN}/gate/one/mcp") == expected
    async with aiohttp.ClientSession() as http:
        for path in (WELL_KNOWN, f"{WELL_KNOWN}/two/mcp"):
            async with http.get(f"{root}{path}") as response:
                assert response.status == 404
        async with http.post(f"{root}{WELL_KNOWN}/one/mcp") as response:
            assert response.status == 405


async def test_metadata_of_a_server_without_any_is_none(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Ours: nothing is made up for an upstream that says nothing."""
    served = await gateway(legacy_servers.get("py-1.30").url, auth={"mode": "passthrough"})
    async with (
        aiohttp.ClientSession() as http,
        http.get(served.url.replace("/mcp", f"{WELL_KNOWN}/mcp")) as response,
    ):
        assert response.status == 404


async def test_a_page_in_a_browser_may_ask_for_the_metadata_and_read_every_answer(
    legacy_servers: LegacyServers, gateway: Gateways, issuer: Issuer
) -> None:
    """Fetch: MCP's headers make a browser ask first; a refusal that a page cannot read tells it nothing."""
    served = await gateway(legacy_servers.get("py-1.30").url, auth={"mode": "jwt", "jwt": jwt(issuer)})
    url = served.url.replace("/mcp", f"{WELL_KNOWN}/mcp")
    page = {"Origin": "https://app.example"}
    asks = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "mcp-protocol-version"}
    async with aiohttp.ClientSession() as http:
        async with http.options(url, headers={**page, **asks}) as allowed:
            assert allowed.status == 204
            assert "mcp-protocol-version" in allowed.headers["Access-Control-Allow-Headers"].lower()
            assert allowed.headers["Access-Control-Allow-Methods"] == "GET, HEAD"
        async with http.get(url, headers=page) as found, http.post(url, headers=page) as refused:
            assert (found.status, refused.status) == (200, 405)
    for answer in (allowed, found, refused):
        assert answer.headers.getall("Access-Control-Allow-Origin") == ["*"]
        assert "Access-Control-Allow-Credentials" not in answer.headers
