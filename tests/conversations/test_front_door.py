"""The endpoint as HTTP sees it: one path, one method, no foreign pages."""

import aiohttp
import pytest

from tests.support.gateways import Gateways
from tests.support.peers import LegacyServers
from tests.support.wire import Wire


@pytest.mark.requirement("R1", "R4")
async def test_there_is_one_path_and_it_takes_post_only(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Spec: GET and DELETE belong to earlier revisions; nothing else is served beside the endpoint."""
    served = await gateway(legacy_servers.get("py-1.30").url)

    async with Wire(served.url) as wire, aiohttp.ClientSession() as http:
        listed = await wire.request("tools/list")
        refused = [await http.request(verb, served.url) for verb in ("GET", "DELETE", "PUT")]
        elsewhere = await http.post(served.url + "/elsewhere", json={})

    assert listed.status == 200
    assert {(answer.status, answer.headers["Allow"]) for answer in refused} == {(405, "POST")}
    assert elsewhere.status == 404


@pytest.mark.parametrize("header", ["Origin", "Host"])
@pytest.mark.requirement("R2")
async def test_a_foreign_page_is_shown_the_door_before_the_server_hears_of_it(
    legacy_servers: LegacyServers, gateway: Gateways, header: str
) -> None:
    """Spec: a page that rebinds its name to loopback must reach nothing."""
    served = await gateway(legacy_servers.get("py-1.30").url)
    foreign = {"Origin": "https://evil.example", "Host": "evil.example"}[header]

    async with aiohttp.ClientSession() as http:
        answer = await http.post(served.url, json={}, headers={header: foreign})

    assert answer.status == 403


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/version"])
async def test_what_is_for_operators_is_on_their_listener_only(
    legacy_servers: LegacyServers, gateway: Gateways, path: str
) -> None:
    """Issue: no admin on the public listener; and no MCP on the admin one."""
    served = await gateway(legacy_servers.get("py-1.30").url, settings={"admin": "127.0.0.1:0"})
    public = served.url.removesuffix("/mcp")
    admin = f"http://{served.gateway.admin_address}"

    async with aiohttp.ClientSession() as http:
        async with http.get(f"{public}{path}") as response:
            assert response.status == 404
        async with http.get(f"{admin}{path}") as response:
            assert response.status == 200
        async with http.post(f"{admin}/mcp", json={}) as response:
            assert response.status == 404
