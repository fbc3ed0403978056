"""`subscriptions/listen` with the real clients, in front of the real servers, over every transport."""

import asyncio
from typing import Any

import pytest
from mcp import MCPError
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourceUpdated,
    ServerEvent,
    Subscription,
    ToolsListChanged,
)

from gateway.relay import standing
from tests.support.gateways import UPSTREAM, Gateways, Served
from tests.support.peers import (
    CONFORMANCE_KINDS,
    LegacyServers,
    fixture_command,
    launch,
    start_legacy,
    stop,
    ts_client,
)
from tests.support.python_client import PythonClient

TRANSPORTS = ("streamable-http", "sse", "stdio")
DYNAMIC = "demo://resource/dynamic/text/1"
SECONDS = 5.0


async def serving(kind: str, transport: str, servers: LegacyServers, gateway: Gateways) -> Served:
    switches = ["--transport", transport]
    upstream: dict[str, Any]
    match transport:
        case "stdio":
            upstream = {"command": [*fixture_command(kind), *switches], "sessions": {"mode": "pooled"}}
        case "sse":
            upstream = {"url": f"http://127.0.0.1:{servers.get(kind, arguments=switches).port}/sse"}
        case _:
            upstream = {"url": servers.get(kind, arguments=switches).url}
    return await gateway.start({"listen": "127.0.0.1:0", "upstreams": {UPSTREAM: upstream}})


async def heard(changes: Subscription) -> ServerEvent:
    async with asyncio.timeout(SECONDS):
        return await anext(changes)


@pytest.mark.requirement("R39", "R40", "R41", "R42")
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("kind", CONFORMANCE_KINDS)
async def test_the_python_client_hears_of_changed_lists_and_a_proper_end(
    kind: str, transport: str, legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    served = await serving(kind, transport, legacy_servers, gateway)
    async with (
        PythonClient(served.url) as client,
        client.client.listen(tools_list_changed=True, resources_list_changed=True) as tools,
        client.client.listen(tools_list_changed=True, prompts_list_changed=True) as both,
    ):
        assert tools.honored.model_dump(exclude_none=True) == {"tools_list_changed": True}
        await client.tool("test_trigger_prompt_change")
        assert await heard(both) == PromptsListChanged()
        await client.tool("test_trigger_tool_change")
        assert await heard(both) == ToolsListChanged()
        assert await heard(tools) == ToolsListChanged()
        await served.gateway.drain()
        for changes in (tools, both):
            with pytest.raises(StopAsyncIteration):
                await heard(changes)


@pytest.mark.requirement("R39", "R40", "R42")
@pytest.mark.parametrize("kind", CONFORMANCE_KINDS)
async def test_the_typescript_client_hears_what_it_asked_for(
    kind: str, legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    served = await serving(kind, "streamable-http", legacy_servers, gateway)
    changing = [
        {"method": "tools/call", "name": f"test_trigger_{what}_change"} for what in ("tool", "prompt")
    ]
    listen = {
        "method": "subscriptions/listen",
        "params": {"promptsListChanged": True, "resourcesListChanged": True},
        "during": changing,
        "hear": 1,
    }

    report = await ts_client({"url": served.url, "calls": [listen]})

    (result,) = [entry["result"] for entry in report["results"]]
    assert (result["honoured"], result["closed"]) == ({"promptsListChanged": True}, "local")
    assert [entry["method"] for entry in result["heard"]] == ["notifications/prompts/list_changed"]


@pytest.mark.requirement("R41")
async def test_the_typescript_client_sees_a_graceful_end(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    served = await gateway(legacy_servers.get("conformance-ts").url, subscriptions={"lifetime": "300ms"})
    listen = {"method": "subscriptions/listen", "params": {"toolsListChanged": True}, "stay": True}

    report = await ts_client({"url": served.url, "calls": [listen]})

    assert report["results"][0]["result"]["closed"] == "graceful"


async def test_the_typescript_client_listens_by_itself(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """In `auto` mode, because discovery promises `listChanged`; it then reads the list again."""
    served = await gateway(legacy_servers.get("conformance-ts").url)
    calls = [{"method": "tools/call", "name": "test_trigger_tool_change"}]

    report = await ts_client({"url": served.url, "mode": "auto", "listChanged": True, "calls": calls})

    (changed,) = report["changed"]
    assert changed["kind"] == "tools"
    assert "error" not in changed
    assert "subscriptions/listen" in [entry["method"] for entry in report["http"]]


@pytest.mark.requirement("R40")
async def test_updates_of_a_resource_come_from_the_session_that_wanted_them(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """This server sends them only to the session in which its tool was called: that takes `affinity`."""
    server = legacy_servers.get("everything-2026.8.31")
    served = await gateway(server.url, sessions={"mode": "affinity"})
    async with PythonClient(served.url) as client:
        async with client.client.listen(resource_subscriptions=[DYNAMIC, "demo://other"]) as changes:
            assert changes.honored.resource_subscriptions == [DYNAMIC, "demo://other"]
            await client.tool("toggle-subscriber-updates")
            assert {await heard(changes), await heard(changes)} == {
                ResourceUpdated(uri=DYNAMIC),
                ResourceUpdated(uri="demo://other"),
            }
        await client.tool("toggle-subscriber-updates")


async def test_a_server_that_asks_its_client_before_it_subscribes_does_not_hold_anyone_up(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """everything-2025.9.25 wants the client's model to say something first; nobody is there to."""
    served = await gateway(legacy_servers.get("everything-2025.9.25").url)
    async with (
        asyncio.timeout(SECONDS),
        PythonClient(served.url) as client,
        client.client.listen(resource_subscriptions=["test://static/resource/1"]) as changes,
    ):
        assert changes.honored.resource_subscriptions is None


@pytest.mark.parametrize("kind", CONFORMANCE_KINDS)
async def test_a_server_that_is_restarted_is_followed_by_everything(
    kind: str, gateway: Gateways, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "_PAUSES", (0.1, 0.2))
    async with start_legacy(kind) as first:
        served = await gateway(first.url)
        async with (
            PythonClient(served.url) as client,
            client.client.listen(tools_list_changed=True) as changes,
        ):
            first.kill()
            second = await asyncio.to_thread(launch, kind, port=first.port)
            try:
                async with asyncio.timeout(15):  # a Python process takes its time on a busy machine
                    assert await anext(changes) == ToolsListChanged()
                await client.tool("test_trigger_tool_change")
                assert await heard(changes) == ToolsListChanged()
            finally:
                await asyncio.to_thread(stop, second)


async def test_a_client_is_told_that_there_are_too_many(
    legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    served = await gateway(legacy_servers.get("conformance-ts").url, subscriptions={"max": 1})
    async with PythonClient(served.url) as client, client.client.listen(tools_list_changed=True):
        with pytest.raises(MCPError, match="at its limit"):
            async with client.client.listen(tools_list_changed=True):
                pass
