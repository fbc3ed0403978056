"""Every error that Holdfast makes has an id, and the line of its round has it too."""

from collections.abc import Mapping, MutableMapping
from typing import Any

import aiohttp
import pytest
import structlog

from gateway.telemetry.names import SessionState
from tests.support.gateways import Gateways
from tests.support.scripted import Scripted, Turn, asking, notice
from tests.support.waiting import until
from tests.support.wire import Wire, accept


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


@pytest.mark.parametrize("says_something_first", [False, True])
async def test_the_line_of_an_error_of_the_server_is_found_by_the_id_on_the_answer(
    gateway: Gateways,
    says_something_first: bool,  # noqa: FBT001
) -> None:
    """Issue: every error carries an id that the log has too. A body of the server's stays as it is: a header has it."""

    async def refuse(turn: Turn) -> None:
        if says_something_first:
            token = turn.message["params"]["_meta"]["progressToken"]
            await turn.stream()
            await turn.event(notice("notifications/progress", progressToken=token, progress=1))
            await turn.event({"jsonrpc": "2.0", "id": turn.id, "error": {"code": -32602, "message": "no"}})
            await turn.finish()
        else:
            await turn.json({"jsonrpc": "2.0", "id": turn.id, "error": {"code": -32602, "message": "no"}})

    async with Scripted() as server:
        server.on["tools/call"] = refuse
        served = await gateway(server.url, sessions={"warm": 0})
        with structlog.testing.capture_logs() as lines:
            async with Wire(served.url) as wire:
                failed = await wire.tool("echo", token="p")
            line = await line_of(lines, event="round", reason="upstream_error")

    assert failed.error["code"] == -32602
    assert line["http_request_id"] == failed.headers["Holdfast-Request-Id"]


async def test_whoever_answers_the_line_is_found_by_the_id_that_a_proxy_gave(gateway: Gateways) -> None:
    """Ours: refused, answered here, passed through to the server of a legacy client, or only accepted."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "n", "version": "1"}}
    bodies: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": hello},
    ]
    async with Scripted() as server, aiohttp.ClientSession() as http:
        served = await gateway(server.url, sessions={"warm": 0})
        with structlog.testing.capture_logs() as lines:
            for number, body in enumerate(bodies):
                own = {
                    "X-Request-Id": f"from-the-proxy-{number}",
                    "Accept": "application/json, text/event-stream",
                }
                async with http.post(served.url, json=body, headers=own) as answer:
                    assert answer.headers.getall("Holdfast-Request-Id") == [own["X-Request-Id"]]
                await line_of(lines, event="round", http_request_id=own["X-Request-Id"], status=answer.status)


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


@pytest.mark.parametrize("rounds", [1, 2])
async def test_a_bug_of_ours_keeps_neither_a_client_waiting_nor_a_session(
    gateway: Gateways, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    """Ours: whatever goes wrong when the last word is made, there is one, and the session is free for the next call."""

    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    async with Scripted() as server:
        if rounds == 2:
            server.on["tools/call"] = asking
        served = await gateway(server.url, sessions={"mode": "pooled"})
        place = served.gateway._relays["legacy"]._place
        async with Wire(served.url) as wire:
            asked = await wire.tool("echo") if rounds == 2 else None
            monkeypatch.setattr("gateway.relay.replies.completed", broken)
            with structlog.testing.capture_logs() as lines:
                if asked is None:
                    failed = await wire.tool("echo")
                else:
                    failed = await wire.retry(asked, {"name": accept(name="Ann")})
                assert (failed.status, failed.error["code"]) == (200, -32603)
                error_id = failed.error["data"]["errorId"]
                assert (await line_of(lines, event="internal_error"))["error_id"] == error_id
            assert not place.drivers
            assert place.pool.states()[SessionState.LEASED] == 0
