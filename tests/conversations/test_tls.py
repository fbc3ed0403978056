"""TLS on either side, with real handshakes: authorities, client certificates, and refusals that say why."""

import asyncio
import json
import signal
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from tests.support.certificates import Authority, Pair
from tests.support.gateways import Gateways
from tests.support.peers import LegacyServers, Running
from tests.support.serving import serving
from tests.support.waiting import until
from tests.support.wire import Wire, accept


@asynccontextmanager
async def behind_tls(
    server: Running,
    pair: Pair,
    *,
    clients: Authority | None = None,
    newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
) -> AsyncIterator[str]:
    """The server, behind something that ends TLS and may want a client certificate; its URL."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.cert, pair.key)
    context.maximum_version = newest
    if clients is not None:
        context.load_verify_locations(clients.file)
        context.verify_mode = ssl.CERT_REQUIRED
    http = aiohttp.ClientSession(auto_decompress=False, connector=aiohttp.TCPConnector(limit=0))

    async def pass_on(request: web.Request) -> web.StreamResponse:
        lines = {name: value for name, value in request.headers.items() if name.lower() != "host"}
        url = f"http://127.0.0.1:{server.port}{request.path_qs}"
        async with http.request(request.method, url, headers=lines, data=await request.read()) as response:
            answer = web.StreamResponse(status=response.status)
            for name in ("Content-Type", "Mcp-Session-Id"):
                if name in response.headers:
                    answer.headers[name] = response.headers[name]
            await answer.prepare(request)
            async for chunk in response.content.iter_any():
                await answer.write(chunk)
            await answer.write_eof()
            return answer

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", pass_on)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        yield f"https://127.0.0.1:{runner.addresses[0][1]}/{server.url.rpartition('/')[2]}"
    finally:
        await runner.cleanup()
        await http.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def client_of(authority: Authority, name: str = "holdfast") -> dict[str, str]:
    pair = authority.client(name)
    return {"ca_file": str(authority.file), "cert_file": str(pair.cert), "key_file": str(pair.key)}


LEGACY_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    },
}


async def legacy_status(url: str, verify: ssl.SSLContext | None = None) -> int:
    """How a legacy client's handshake is answered, which is passed through."""
    headers = {"Accept": "application/json, text/event-stream"}
    async with (
        aiohttp.ClientSession() as http,
        http.post(url, json=LEGACY_HELLO, headers=headers, ssl=verify or True) as response,
    ):
        await response.read()
        return response.status


# --- towards the upstream ----------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
async def test_an_upstream_is_met_with_its_authority_and_our_certificate(
    legacy_servers: LegacyServers, gateway: Gateways, authority: Authority, transport: str
) -> None:
    """Issue: CA bundle and mTLS client certificate per upstream, also for what is passed through."""
    server = legacy_servers.get("py-1.30", transport=transport)
    async with behind_tls(server, authority.host(), clients=authority) as url:
        served = await gateway(url, tls=client_of(authority))
        async with Wire(served.url) as wire:
            asked = await wire.tool("ask_name")
            done = await wire.retry(asked, {key: accept(name="Ann") for key in asked.asked})
        status = await legacy_status(served.url)
        await gateway.stop()

    assert "Ann" in done.text
    assert status == 200


@pytest.mark.parametrize("fault", ["nobody vouches", "another vouches", "another host", "expired"])
async def test_a_server_that_nobody_vouches_for_is_not_spoken_to(
    legacy_servers: LegacyServers, gateway: Gateways, authority: Authority, tmp_path: Path, fault: str
) -> None:
    """Issue: verification cannot be off; the log says what is wrong, the client only that it cannot be reached."""
    other = tmp_path / "other"
    other.mkdir()
    pair = authority.host(
        "example.com" if fault == "another host" else "127.0.0.1", expired=fault == "expired"
    )
    tls: dict[str, Any] = {
        "nobody vouches": {},
        "another vouches": {"ca_file": str(Authority(other).file)},
    }.get(fault, {"ca_file": str(authority.file)})
    async with behind_tls(legacy_servers.get("py-1.30"), pair) as url:
        with capture_logs() as lines:
            served = await gateway(url, tls=tls)
            async with Wire(served.url) as wire:
                refused = await wire.tool("add", {"a": 1, "b": 2})
            status = await legacy_status(served.url)

    assert refused.message["error"]["message"] == "The upstream server cannot be reached"
    assert status == 502
    told = " ".join(str(line.get("detail")) for line in lines if line["event"] == "handshake_failed")
    assert "the server's certificate was refused" in told
    assert ("tls.ca_file or SSL_CERT_FILE names its authority" in told) == fault.endswith("vouches")


@pytest.mark.parametrize("fault", ["none", "another's"])
async def test_a_server_that_refuses_our_certificate_is_not_spoken_to(
    legacy_servers: LegacyServers, gateway: Gateways, authority: Authority, tmp_path: Path, fault: str
) -> None:
    """Ours: in the handshake of TLS 1.2; nothing was sent, and trying again is safe."""
    other = tmp_path / "other"
    other.mkdir()
    tls = {"ca_file": str(authority.file)}
    if fault != "none":
        tls = {**client_of(Authority(other)), **tls}
    server, pair = legacy_servers.get("py-1.30"), authority.host()
    async with behind_tls(server, pair, clients=authority, newest=ssl.TLSVersion.TLSv1_2) as url:
        served = await gateway(url, tls=tls)
        async with Wire(served.url) as wire:
            refused = await wire.tool("add", {"a": 1, "b": 2})

    assert refused.message["error"]["message"] == "The upstream server cannot be reached"


# --- towards clients ------------------------------------------------------------------------------


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.file))


async def test_the_listener_speaks_tls(
    legacy_servers: LegacyServers, gateway: Gateways, authority: Authority
) -> None:
    """Issue: optional TLS on the listener; its URL and its Origin check follow."""
    pair = authority.host()
    served = await gateway(
        legacy_servers.get("py-1.30").url,
        settings={"tls": {"cert_file": str(pair.cert), "key_file": str(pair.key)}},
    )
    assert served.url.startswith("https://")
    async with aiohttp.ClientSession() as http:
        headers = {"Accept": "application/json, text/event-stream", "Origin": served.url[: -len("/mcp")]}
        async with http.post(
            served.url, json=LEGACY_HELLO, ssl=trusting(authority), headers=headers
        ) as response:
            assert response.status == 200
        foreign = {**headers, "Origin": "https://evil.example"}
        async with http.post(
            served.url, json=LEGACY_HELLO, ssl=trusting(authority), headers=foreign
        ) as response:
            assert response.status == 403
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await http.post(served.url, json=LEGACY_HELLO)
        with pytest.raises(aiohttp.ClientError):
            await http.post(served.url.replace("https", "http"), json=LEGACY_HELLO)


async def test_the_listener_s_certificate_is_renewed_on_a_signal(
    legacy_servers: LegacyServers, authority: Authority, tmp_path: Path
) -> None:
    """Ours: certificates are short-lived, gateways are not; a live process, and what is broken changes nothing."""
    first = authority.host()
    folder = tmp_path / "process"
    folder.mkdir()
    tls = {"cert_file": str(first.cert), "key_file": str(first.key)}
    upstream = {"url": legacy_servers.get("py-1.30").url}
    async with serving(folder, upstream, tls=tls) as gateway:
        url = gateway.url.replace("http", "https")
        assert await legacy_status(url, trusting(authority)) == 200
        later = tmp_path / "later"
        later.mkdir()
        successor = Authority(later, "later")
        renewed = successor.host()
        first.cert.write_bytes(renewed.cert.read_bytes())
        first.key.write_bytes(renewed.key.read_bytes())
        gateway.tell(signal.SIGHUP)
        await _until_said(gateway.log, "config_reloaded")
        assert await legacy_status(url, trusting(successor)) == 200
        first.cert.write_bytes(b"nonsense")
        gateway.tell(signal.SIGHUP)
        await _until_said(gateway.log, "config_reload_failed")
        assert await legacy_status(url, trusting(successor)) == 200


async def _until_said(log: Path, event: str) -> None:
    async def look() -> bool:
        said = await asyncio.to_thread(log.read_text, "utf-8")
        return any(json.loads(line)["event"] == event for line in said.splitlines())

    await until(look, 15)
