"""The endpoint as HTTP sees it: one path, one method, no foreign pages."""

import aiohttp
import pytest
from structlog.testing import capture_logs
from yarl import URL

from tests.support.gateways import Gateways
from tests.support.peers import LegacyServers, ts_client
from tests.support.person import NAME, Person
from tests.support.python_client import PythonClient
from tests.support.scripted import Scripted
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


@pytest.mark.parametrize(
    ("headers", "said", "logged"),
    [
        (
            {"Host": "mcp.example"},
            "Forbidden host",
            "Host 'mcp.example' is none of ours: see limits.allowed_hosts",
        ),
        (
            {"Origin": "https://evil.example"},
            "Forbidden origin",
            "Origin 'https://evil.example' is none that may call: see limits.allowed_origins",
        ),
    ],
)
async def test_the_log_names_the_header_that_was_refused_and_the_setting(
    gateway: Gateways, headers: dict[str, str], said: str, logged: str
) -> None:
    """Ours: a proxy that sends its own name as Host was told of an origin that nobody had sent."""
    async with Scripted() as server, aiohttp.ClientSession() as http:
        served = await gateway(server.url)
        with capture_logs() as logs:
            answer = await http.post(served.url, json={}, headers=headers)
            error = (await answer.json())["error"]

    assert (answer.status, error["message"]) == (403, said)
    assert [line["detail"] for line in logs if line["event"] == "round"] == [logged]


@pytest.mark.parametrize("path", ["/mcp", "/crm/mcp"])
async def test_a_slash_too_many_is_sent_on_and_not_served(gateway: Gateways, path: str) -> None:
    """Ours: servers do so, and clients rely on it; a 404 is a lost session to some of them."""
    async with Scripted() as server, aiohttp.ClientSession() as http:
        served = await gateway(server.url, path=path)
        answer = await http.post(f"{served.url}/", data=b"{}", allow_redirects=False)

    assert answer.status == 307
    assert str(answer.url.join(URL(answer.headers["Location"]))) == served.url


async def test_real_clients_follow_to_the_right_spelling(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Ours: with the body, the headers and the rounds of a call."""
    served = await gateway(legacy_servers.get("py-1.30").url)

    async with PythonClient(f"{served.url}/", person=Person()) as client:
        told = await client.carry_out("tools/call", {"name": "ask_name", "arguments": {}})
    report = await ts_client({"url": f"{served.url}/", "calls": [{"method": "tools/list"}]})

    assert told == f"Hello {NAME}"
    assert "result" in report["results"][0]


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
