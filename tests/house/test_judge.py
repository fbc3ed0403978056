"""Whoever judges all other tests' messages is judged here: it finds what is wrong, and it does look."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import judged
from tests.support.gateways import Gateways
from tests.support.schema_judge import ERRORS, NOTIFICATIONS, RESULTS, complaints, definitions
from tests.support.scripted import Scripted
from tests.support.serving import JUDGED, serving
from tests.support.wire import Wire

Json = dict[str, Any]

INFO = {"io.modelcontextprotocol/serverInfo": {"name": "x", "version": "1"}}
ASKED = {"method": "elicitation/create", "params": {"message": "?", "mode": "form", "requestedSchema": {}}}
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
ASKED["params"]["requestedSchema"] = FORM  # type: ignore[index]

GOOD: dict[str, tuple[str, Json]] = {
    "call": (
        "tools/call",
        {"resultType": "complete", "content": [{"type": "text", "text": "x"}], "_meta": INFO},
    ),
    "asking": (
        "tools/call",
        {"resultType": "input_required", "inputRequests": {"name": ASKED}, "_meta": INFO},
    ),
    "list": ("tools/list", {"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"}),
}


def response(result: Json) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def test_every_name_is_one_of_the_schema() -> None:
    """Ours: a validator for a type that does not exist would judge nothing."""
    known = definitions("2026-07-28")
    assert {*RESULTS.values(), *ERRORS.values(), *NOTIFICATIONS.values()} <= known.keys()


@pytest.mark.parametrize("kind", GOOD)
def test_what_is_right_passes(kind: str) -> None:
    """Ours: otherwise it would find everything."""
    method, result = GOOD[kind]
    assert complaints(method, response(result)) == []


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("call", ["resultType"], None),
        ("call", ["content"], "x"),
        ("call", ["content", 0, "type"], "hologram"),
        ("asking", ["inputRequests", "name", "method"], "tools/call"),
        ("asking", ["inputRequests", "name", "params", "requestedSchema", "properties", "name", "type"], "x"),
        ("asking", ["requestState"], 7),
        ("list", ["ttlMs"], -1),
        ("list", ["ttlMs"], None),
        ("list", ["cacheScope"], "all"),
        ("list", ["tools"], [{"name": "x"}]),
    ],
)
def test_one_wrong_member_is_found(kind: str, path: list[Any], value: Any) -> None:
    """Ours: None takes the member away."""
    method, result = GOOD[kind]
    result = copy.deepcopy(result)
    place: Any = result
    for step in path[:-1]:
        place = place[step]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    assert complaints(method, response(result))


@pytest.mark.parametrize(
    "message",
    [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "error": {"code": -32021, "message": "x", "data": {"requiredCapabilities": []}},
        },
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "message": "x", "data": {"supported": "all"}}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": "x"}},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "loud", "data": 1}},
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
    ],
)
def test_wrong_errors_and_notifications_are_found(message: Json) -> None:
    """Ours."""
    assert complaints("tools/call", message)


def test_what_was_sent_and_is_wrong_fails_the_test_that_it_was_sent_in() -> None:
    """Ours: once, and by name."""
    token = judged.ANSWERED.set("tools/call")
    try:
        judged.judge(json.dumps(response({"content": []})).encode())
    finally:
        judged.ANSWERED.reset(token)
    with pytest.raises(AssertionError, match="in answer to tools/call"):
        judged.complain()
    judged.complain()


async def test_a_gateway_of_this_process_is_read(gateway: Gateways) -> None:
    """Ours: as many messages as were sent."""
    async with Scripted() as server:
        served = await gateway(server.url)
        async with Wire(served.url) as wire:
            before = judged.judged
            await wire.request("server/discover")
            await wire.request("tools/list")
            assert judged.judged == before + 2


async def test_a_gateway_of_its_own_process_is_read(tmp_path: Path) -> None:
    """Ours: the same for `holdfast serve`."""
    async with Scripted() as server, serving(tmp_path, {"url": server.url}) as running:
        async with Wire(running.url) as wire:
            await wire.request("server/discover")
            await wire.request("tools/list")
        assert running.judged() == [repr(JUDGED)] * 2
