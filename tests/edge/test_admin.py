"""The admin listener as a kubelet and a scraper see it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient
from pydantic import SecretStr
from structlog.testing import capture_logs

from gateway.edge.admin import admin_app
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import Outcome

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
