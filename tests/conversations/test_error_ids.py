"""Every error that Holdfast makes has an id, and the line of its round has it too."""

from collections.abc import Mapping, MutableMapping
from typing import Any

import aiohttp
import pytest
import structlog

from tests.support.gateways import Gateways
from tests.support.scripted import Scripted, Turn
from tests.support.waiting import until
from tests.support.wire import Wire


async def line_of(lines: list[MutableMapping[str, Any]], **members: object) -> Mapping[str, Any]:
    async def look() -> list[MutableMapping[str, Any]]:
        return [line for line in lines if members.items() <= line.items()]

    (found,) = await until(look)
    return found


async def test_the_line_of_a_refused_request_has_the_id_that_the_client_was_told(gateway: Gateways) -> None:
    async with Scripted() as server:
        served = await gateway(server.url, sessions={"warm": 0})
        with structlog.testing.capture_logs() as lines:
            async with Wire(served.url) as wire, aiohttp.ClientSession() as http:
                removed = await wire.request("ping")
                wrong = await wire.request("tools/list", {"cursor": 7})
                browser = await http.post(served.url, data=b"{}", headers={"Origin": "https://evil.example"})
                foreign = (await browser.json())["error"]["data"]["errorId"]

            for reason, told in (
                ("method_not_found", removed.error["data"]["errorId"]),
                ("invalid_params", wrong.error["data"]["errorId"]),
                ("origin_refused", foreign),
            ):
                line = await line_of(lines, event="round", reason=reason)
                assert line["error_id"] == told


async def test_the_line_of_a_failed_call_has_it_too(gateway: Gateways) -> None:
    async with Scripted() as server:
        nobody = server.url
    served = await gateway(nobody, sessions={"warm": 0})
    with structlog.testing.capture_logs() as lines:
        async with Wire(served.url) as wire:
            failed = await wire.tool("echo")
        line = await line_of(lines, event="round", reason="upstream_unreachable")

    assert line["error_id"] == failed.error["data"]["errorId"]


async def test_an_error_of_the_server_has_no_id_of_ours(gateway: Gateways) -> None:
    async def refuse(turn: Turn) -> None:
        await turn.json({"jsonrpc": "2.0", "id": turn.id, "error": {"code": -32602, "message": "no"}})

    async with Scripted() as server:
        server.on["prompts/get"] = refuse
        served = await gateway(server.url, sessions={"warm": 0})
        with structlog.testing.capture_logs() as lines:
            async with Wire(served.url) as wire:
                failed = await wire.request("prompts/get", {"name": "nowhere"})
            line = await line_of(lines, event="round", reason="upstream_error")

    assert "errorId" not in (failed.error.get("data") or {})
    assert "error_id" not in line


async def test_a_bug_of_ours_is_told_by_its_id_and_nothing_else(
    gateway: Gateways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both SDKs read it: -32603 with 200."""

    async def stumble(*_: object) -> None:
        raise ZeroDivisionError("the secret cause")

    monkeypatch.setattr("gateway.relay.relay.Relay.fetch", stumble)
    async with Scripted() as server:
        served = await gateway(server.url, sessions={"warm": 0})
        with structlog.testing.capture_logs() as lines:
            async with Wire(served.url) as wire:
                failed = await wire.request("tools/list")
            line = await line_of(lines, event="round", outcome="internal")
            report = await line_of(lines, event="internal_error")

    assert (failed.status, failed.error["code"], failed.told) == (200, -32603, {})
    assert "secret" not in failed.body.decode()
    assert line["error_id"] == report["error_id"] == failed.error["data"]["errorId"]


async def test_a_refused_state_is_found_by_the_id_of_its_request(gateway: Gateways) -> None:
    """Design: its answer is frozen, so the id of the error is in the log only."""
    async with Scripted() as server:
        served = await gateway(server.url, sessions={"warm": 0})
        with structlog.testing.capture_logs() as lines:
            async with Wire(served.url) as wire:
                refused = await wire.request("tools/call", {"name": "echo"}, {"requestState": "forged"})
            report = await line_of(lines, event="state_rejected")
            line = await line_of(lines, event="round", reason="invalid_request_state")

    assert refused.error["data"] == {"reason": "invalid_request_state"}
    assert report["request_id"] == refused.message["id"]
    assert line["error_id"]
