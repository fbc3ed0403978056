"""The reference server "everything", two releases of it, as published: both modern clients through the gateway."""

import re
from typing import Any

import pytest

from tests.support.everything import RELEASES, Release, Visitor
from tests.support.gateways import Gateways
from tests.support.peers import LegacyServers, ts_client
from tests.support.python_client import PythonClient, text_of
from tests.support.wire import Wire, accept, sampled

Json = dict[str, Any]


@pytest.fixture(params=RELEASES, ids=lambda release: release.kind)
def release(request: pytest.FixtureRequest) -> Release:
    chosen: Release = request.param
    return chosen


def whole(result: Json) -> str:
    return "\n".join(block.get("text", "") for block in result["content"])


@pytest.mark.requirement("R34")
async def test_the_python_client_answers_its_questions(
    release: Release, legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Issue: elicitation, sampling and roots on all that have them."""
    served = await gateway(legacy_servers.get(release.kind).url)

    async with PythonClient(served.url, person=Visitor(release.form)) as client:
        elicited = await client.tool(release.elicit)
        drawn = await client.tool(release.sample, {"prompt": "Capital?", "maxTokens": 20})
        rooted = await client.tool(release.roots)
        total = await client.tool(release.sum, {"a": 1, "b": 2})

    assert release.told in "\n".join(getattr(block, "text", "") for block in elicited.content)
    assert "Paris" in text_of(drawn)
    assert "file:///one" in text_of(rooted)
    assert "3" in text_of(total)
    assert {"elicitation/create", "sampling/createMessage", "roots/list"} == set(client.person.kinds)


@pytest.mark.requirement("R34")
async def test_the_typescript_client_answers_its_questions(
    release: Release, legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Issue: the same with the other client."""
    served = await gateway(legacy_servers.get(release.kind).url)

    report = await ts_client(
        {
            "url": served.url,
            "answers": {
                "elicitation": [{"content": release.form}],
                "sampling": "Paris",
                "roots": [{"uri": "file:///one", "name": "One"}],
            },
            "calls": [
                {"method": "tools/call", "name": release.elicit, "arguments": {}},
                {"method": "tools/call", "name": release.sample, "arguments": {"prompt": "Capital?"}},
                {"method": "tools/call", "name": release.roots, "arguments": {}},
            ],
        }
    )

    elicited, drawn, rooted = (whole(entry["result"]) for entry in report["results"])
    assert release.told in elicited
    assert "Paris" in drawn
    assert "file:///one" in rooted


@pytest.mark.requirement("R17")
async def test_its_tools_depend_on_what_the_client_declares(
    release: Release, legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """LEGACY-WIRE 6: capabilities are fixed at initialize, so one session cannot serve both clients."""
    served = await gateway(legacy_servers.get(release.kind).url)

    async with Wire(served.url) as wire:
        able = {tool["name"] for tool in (await wire.request("tools/list")).result["tools"]}
        bare = await wire.request("tools/list", capabilities={})
        again = {tool["name"] for tool in (await wire.request("tools/list")).result["tools"]}

    unable = {tool["name"] for tool in bare.result["tools"]}
    assert again == able
    assert able - unable == release.conditional


async def test_roots_asked_for_after_the_handshake_join_the_next_call_and_no_list(
    release: Release, legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Design: an ask outside a call never makes a list `input_required`; the first exchange answers it."""
    served = await gateway(legacy_servers.get(release.kind).url)

    async with Wire(served.url) as wire:
        listed = await wire.request("tools/list")
        asked = await wire.tool(release.roots)
        told = await wire.retry(asked, {"roots-1": {"roots": [{"uri": "file:///mine", "name": "Mine"}]}})

    assert listed.result["resultType"] == "complete"
    assert asked.asked == {"roots-1": {"method": "roots/list", "params": {}}}
    assert re.search(r"file:///mine", told.text)


async def test_an_address_is_opened_on_either_path(legacy_servers: LegacyServers, gateway: Gateways) -> None:
    """Issue: URL mode, and -32042 followed by a question on the same session."""
    served = await gateway(legacy_servers.get("everything-2026.8.31").url, asks={"roots": "decline"})
    arguments = {"url": "https://example.com/pay", "elicitationId": "pay-1"}

    async with Wire(served.url) as wire:
        asked = await wire.tool("trigger-url-elicitation", arguments)
        opened = await wire.retry(asked, {"elicitation-1": {"action": "accept"}})
        first = await wire.tool("trigger-url-elicitation", {**arguments, "errorPath": True})
        second = await wire.retry(first, {"elicitation-1": {"action": "accept"}})
        (key,) = second.asked
        paid = await wire.retry(second, {key: {"action": "accept"}})

    assert asked.asked["elicitation-1"]["params"] == {
        "mode": "url",
        "url": "https://example.com/pay",
        "message": "Please open the link to complete this action.",
    }
    assert "completed the URL elicitation" in opened.text
    assert first.asked["elicitation-1"]["params"]["url"] == "https://modelcontextprotocol.io"
    assert second.asked[key]["params"]["url"] == "https://example.com/pay"
    assert "completed the URL elicitation" in paid.text


async def test_progress_of_a_long_operation_streams(
    release: Release, legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Spec: basic/patterns/progress; a server that we did not write."""
    name = {"everything-2025.9.25": "longRunningOperation"}.get(
        release.kind, "trigger-long-running-operation"
    )
    served = await gateway(legacy_servers.get(release.kind).url, asks={"roots": "decline"})

    async with Wire(served.url) as wire:
        done = await wire.tool(name, {"duration": 0.2, "steps": 2}, token="tok")

    assert [note["params"]["progress"] for note in done.notifications] == [1, 2]
    assert {note["params"]["progressToken"] for note in done.notifications} == {"tok"}


async def test_questions_have_speaking_or_numbered_keys(
    release: Release, legacy_servers: LegacyServers, gateway: Gateways
) -> None:
    """Design: a form with several properties and a sampling request are numbered by kind."""
    served = await gateway(legacy_servers.get(release.kind).url, asks={"roots": "decline"})

    async with Wire(served.url) as wire:
        form = await wire.tool(release.elicit)
        sampling = await wire.tool(release.sample, {"prompt": "p"})
        filled = await wire.retry(form, {"elicitation-1": accept(**release.form)})
        drawn = await wire.retry(sampling, {"sampling-1": sampled("Rome")})

    assert list(form.asked) == ["elicitation-1"]
    assert list(sampling.asked) == ["sampling-1"]
    assert release.told in whole(filled.result)
    assert "Rome" in drawn.text
