"""The very first `server/discover`, right after the start: what the server can do, and not an empty promise."""

import shlex
import socket
from typing import Any

import pytest

from gateway.relay import introductions
from gateway.relay.era import PATIENCE_SECONDS
from gateway.upstreams import era_probe
from tests.support.gateways import Gateways, Served
from tests.support.peers import (
    EVERYTHING_KINDS,
    FIXTURE_KINDS,
    MODERN_KIND,
    PUBLISHED_KINDS,
    LegacyServers,
    stdio_command,
)
from tests.support.wire import Wire

pytestmark = pytest.mark.requirement("R25")


async def first_and_later(served: Served) -> tuple[Any, Any]:
    """What discovery says at once, and what it says once the server was used."""
    async with Wire(served.url) as wire:
        first = (await wire.request("server/discover")).result
        assert (await wire.request("tools/list")).result["tools"]
        later = (await wire.request("server/discover")).result
    return first, later


@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
@pytest.mark.parametrize("kind", FIXTURE_KINDS)
async def test_a_server_over_http_is_known_at_once(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str, transport: str
) -> None:
    """Issue: `server/discover` declares what is served."""
    first, later = await first_and_later(
        await gateway(legacy_servers.get(kind, transport=transport).url, sessions={"warm": 0})
    )
    assert {"tools", "prompts", "resources"} <= first["capabilities"].keys()
    assert first == later


@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.32", *EVERYTHING_KINDS, *PUBLISHED_KINDS])
async def test_a_command_is_waited_for(gateway: Gateways, kind: str) -> None:
    """Ours: starting takes a while, and clients keep for good what the first discovery says."""
    upstream = {"command": stdio_command(kind), "sessions": {"warm": 0}}
    first, later = await first_and_later(
        await gateway.start({"listen": "127.0.0.1:0", "upstreams": {"x": upstream}})
    )
    assert "tools" in first["capabilities"]
    assert first == later


async def test_a_server_that_cannot_be_met_is_not_said_to_have_no_tools(gateway: Gateways) -> None:
    """Ours: the TypeScript client lists nothing, and says nothing, where `tools` is not declared."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    served = await gateway(f"http://127.0.0.1:{port}/mcp")
    async with Wire(served.url) as wire:
        first = (await wire.request("server/discover")).result
        listed = await wire.request("tools/list")
    assert (first["capabilities"], first["ttlMs"]) == ({"tools": {}}, 0)
    assert listed.error["message"] == "The upstream server cannot be reached"


async def test_a_modern_command_that_starts_slowly_speaks_for_itself(
    gateway: Gateways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: its era was not known yet when discovery began to wait, and came out while it did."""
    for patience in (
        f"{introductions.__name__}._FIRST_PATIENCE_SECONDS",
        f"{era_probe.__name__}._PROCESS_SECONDS",
    ):
        monkeypatch.setattr(patience, 30.0)  # a busy machine takes as long as it takes
    slow = f"sleep {PATIENCE_SECONDS + 0.5}; exec {shlex.join(stdio_command(MODERN_KIND))}"
    served = await gateway.start(
        {"listen": "127.0.0.1:0", "upstreams": {"x": {"command": ["sh", "-c", slow]}}}
    )

    async with Wire(served.url) as wire:
        first = (await wire.request("server/discover")).result

    assert first["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "modern-fixture"
    assert "tools" in first["capabilities"]
