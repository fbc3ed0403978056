"""The admin listener as a kubelet and a scraper see it."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient
from pydantic import SecretStr
from structlog.testing import capture_logs
from yarl import URL

from gateway.edge.admin import AdminRunner, admin_app
from gateway.settings.model import Limits
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import Outcome
from tests.support.gateways import Gateways

AdminClient = TestClient[web.Request, web.Application]
Serve = Callable[[web.Application], Awaitable[AdminClient]]


@pytest.fixture
def checks() -> dict[str, bool | str]:
    return {"config": True, "keys": True, "draining": "no", "upstream crm": "unreachable"}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(version="1.2.3", upstreams=["crm"])


@pytest.fixture
async def client(aiohttp_client: Serve, metrics: Metrics, checks: dict[str, Any]) -> AdminClient:
    return await aiohttp_client(admin_app(metrics=metrics, checks=lambda: checks, version="1.2.3"))


async def test_alive_is_said_whatever_the_checks_say(client: AdminClient, checks: dict[str, Any]) -> None:
    checks["config"] = False
    async with client.get("/livez") as reply:
        assert reply.status == 200
        assert await reply.json() == {"status": "ok"}


async def test_ready_tells_every_check_by_name(client: AdminClient, checks: dict[str, Any]) -> None:
    """Ours: an upstream that is down is told and does not take the gateway out of rotation."""
    async with client.get("/readyz") as reply:
        assert reply.status == 200
        assert reply.headers["Cache-Control"] == "no-store"
        assert await reply.json() == {"status": "ready", "checks": checks}


async def test_one_failed_check_is_a_503_that_names_it(client: AdminClient, checks: dict[str, Any]) -> None:
    checks["keys"] = False
    async with client.get("/readyz") as reply:
        assert reply.status == 503
        body = await reply.json()
    assert body["status"] == "not ready"
    assert body["checks"]["keys"] is False


async def test_metrics_are_in_the_format_that_scrapers_read(client: AdminClient, metrics: Metrics) -> None:
    metrics.round_finished("crm", "tools/call", Outcome.COMPLETE, 0.01)
    async with client.get("/metrics") as reply:
        assert reply.status == 200
        assert reply.headers["Content-Type"].startswith("text/plain; version=")
        text = await reply.text()
    assert 'holdfast_rounds_total{method="tools/call",outcome="complete",upstream="crm"} 1.0' in text


async def test_openmetrics_is_negotiated(client: AdminClient) -> None:
    async with client.get(
        "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
    ) as reply:
        assert reply.content_type == "application/openmetrics-text"


async def test_the_ready_gauge_agrees_with_readyz(client: AdminClient, checks: dict[str, Any]) -> None:
    async with client.get("/metrics") as reply:
        assert "\nholdfast_ready 1.0\n" in await reply.text()
    checks["config"] = False
    async with client.get("/metrics") as reply:
        assert "\nholdfast_ready 0.0\n" in await reply.text()


async def test_version_names_the_build(client: AdminClient) -> None:
    async with client.get("/version") as reply:
        assert await reply.json() == {"name": "holdfast", "version": "1.2.3"}


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/version"])
async def test_probes_write_no_line(client: AdminClient, path: str) -> None:
    with capture_logs() as lines:
        async with client.head(path) as reply:
            assert reply.status == 200
    assert lines == []


async def test_nothing_else_is_served_and_nothing_is_changed_from_here(client: AdminClient) -> None:
    async with client.get("/mcp") as reply:
        assert reply.status == 404
    async with client.post("/livez") as reply:
        assert reply.status == 405


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/version", "/mcp"])
async def test_no_answer_tells_which_software_gave_it(client: AdminClient, path: str) -> None:
    """Ours: a version is an invitation, here as on the public listener."""
    async with client.get(path) as reply:
        assert reply.headers.getall("Server") == ["holdfast"]


# --- behind a token --------------------------------------------------------------------------

TOKEN = "scrape-token-of-this-test"


@pytest.fixture
async def guarded(aiohttp_client: Serve, metrics: Metrics, checks: dict[str, Any]) -> AdminClient:
    token = SecretStr(TOKEN)
    return await aiohttp_client(
        admin_app(metrics=metrics, checks=lambda: checks, version="1.2.3", token=token)
    )


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
async def test_probes_never_need_the_token(guarded: AdminClient, path: str) -> None:
    """Ours: a kubelet has none to show, and learns nothing secret."""
    async with guarded.get(path) as reply:
        assert reply.status == 200


@pytest.mark.parametrize("path", ["/metrics", "/version"])
async def test_everything_else_is_behind_the_token(guarded: AdminClient, path: str) -> None:
    """Issue: admin behind its own address and optional token."""
    for wrong in (None, "", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer \u00e9"):
        headers = {} if wrong is None else {"Authorization": wrong}
        async with guarded.get(path, headers=headers) as reply:
            assert reply.status == 401
            assert reply.headers["WWW-Authenticate"] == "Bearer"
            assert TOKEN not in await reply.text()
    async with guarded.get(path, headers={"Authorization": f"Bearer {TOKEN}"}) as reply:
        assert reply.status == 200


# --- what is no HTTP -------------------------------------------------------------------------

BAD = (
    b"GET /secret\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    b"GET /livez HTTP/9.9\r\nHost: x\r\n\r\n",
    b"BREW /livez HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /livez HTTP/1.1\r\nHost: x\r\nHost: secret\r\n\r\n",
    b"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    LONG := b"GET /livez HTTP/1.1\r\nHost: x\r\nX: " + b"secret" * 6000 + b"\r\n\r\n",
)


@pytest.mark.parametrize("data", BAD, ids=lambda data: repr(data[:24]))
@pytest.mark.parametrize("is_admin", [True, False], ids=["admin", "public"])
async def test_bad_http_learns_nothing_from_either_listener(
    gateway: Gateways, caplog: pytest.LogCaptureFixture, data: bytes, *, is_admin: bool
) -> None:
    """Ours: the library would repeat what was sent, name its version, and write a traceback to the log for each."""
    served = await gateway("http://127.0.0.1:9/mcp", settings={"admin": "127.0.0.1:0"})
    admin, public = served.gateway.admin_address, URL(served.url)
    assert admin is not None
    place = (admin.host, admin.port) if is_admin else (str(public.host), public.port)
    told = await _told(place, data)
    head, _, body = told.partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0].partition(b" ")[2][:4] == (b"431 " if data is LONG else b"400 ")
    assert b"Server: holdfast" in head.split(b"\r\n")
    assert (b"too long" if data is LONG else b"not valid HTTP") in body
    assert not re.search(rb"(?i)aiohttp|python|traceback|secret", told)
    assert [record.name for record in caplog.records if record.name.startswith("aiohttp")] == []


async def test_a_bug_of_ours_shows_no_trace_and_no_version(metrics: Metrics) -> None:
    """Ours: what went wrong is for the log."""

    def broken() -> dict[str, bool | str]:
        raise RuntimeError("secret")

    runner = AdminRunner(admin_app(metrics=metrics, checks=broken, version="1.2.3"), Limits())
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        told = await _told((host, port), b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    finally:
        await runner.cleanup()
    assert told.startswith(b"HTTP/1.1 500 ")
    assert b"Server: holdfast\r\n" in told
    assert not re.search(rb"(?i)aiohttp|python|traceback|secret", told)


async def test_who_never_finishes_asking_does_not_keep_the_process_alive(metrics: Metrics) -> None:
    """Ours: the library would linger for ten seconds, and a pod that stops has promised another time."""
    runner = AdminRunner(admin_app(metrics=metrics, checks=dict, version="1.2.3"), Limits())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
    writer.write(b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
    async with asyncio.timeout(5):
        assert (await reader.readline()).startswith(b"HTTP/1.1 405 ")
        await runner.cleanup()
    writer.close()


async def _told(place: tuple[str, int | None], data: bytes) -> bytes:
    """All that is said to this, until the connection is closed."""
    reader, writer = await asyncio.open_connection(*place)
    try:
        writer.write(data)
        async with asyncio.timeout(5):
            return await reader.read()
    finally:
        writer.close()
