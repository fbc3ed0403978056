"""The legacy servers that everything else is proved against do what the proofs take for granted."""

import json
from typing import Any

import aiohttp
import pytest

from tests.support.legacy_client import LegacyClient, accept_all
from tests.support.peers import (
    EVERYTHING_KINDS,
    FIXTURE_KINDS,
    KINDS,
    TYPESCRIPT_KINDS,
    LegacyServers,
    Running,
    start_legacy,
)


@pytest.fixture(params=FIXTURE_KINDS)
def server(request: pytest.FixtureRequest, legacy_servers: LegacyServers) -> Running:
    return legacy_servers.get(request.param)


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_starts_and_lists_its_tools(kind: str, legacy_servers: LegacyServers) -> None:
    async with LegacyClient(legacy_servers.get(kind).url) as client:
        listed = await client.request("tools/list")
        names = {tool["name"] for tool in listed["tools"]}
    expected = {
        "everything-2025.9.25": "add",
        "everything-2026.8.31": "get-sum",
        "conformance-py": "test_simple_text",
        "conformance-ts": "test_simple_text",
    }.get(kind, "ask_name")
    assert expected in names


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("py-1.12", "2025-06-18"),
        ("py-1.26", "2025-11-25"),
        ("py-1.30", "2025-11-25"),
        ("ts-1.12", "2025-03-26"),
        ("ts-1.32", "2025-11-25"),
        ("everything-2025.9.25", "2025-06-18"),
        ("everything-2026.8.31", "2025-11-25"),
    ],
)
async def test_the_peers_cover_three_protocol_versions(
    kind: str, version: str, legacy_servers: LegacyServers
) -> None:
    async with LegacyClient(legacy_servers.get(kind).url) as client:
        assert client.server["protocolVersion"] == version


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("echo", {"text": "a\u2028b"}, "a\u2028b"),
        ("ask_name", {}, "Hello Name"),
        ("ask_name", {"tag": "x7"}, "Hello Name from x7"),
        ("ask_name_get", {}, "Hello Name"),
        ("ask_keyed", {"key": "user_name"}, "Hello Name"),
        ("ask_two_parallel", {}, "First Last"),
        ("ask_two_serial", {"tag": "t"}, "First Last"),
        ("ask_many", {"questions": 3}, "Name Name Name"),
        ("ask_while_held", {"delayMs": 1}, "First Last"),
        ("ask_impatient", {}, "Hello Name"),
        ("ask_again_after_timeout", {"timeoutMs": 3000}, "in time: Hello Name"),
        ("ask_then_progress", {"steps": 1}, "Hello Name"),
        ("ask_profile", {}, '{"age": 42, "colour": "blue", "name": "Name", "subscribe": true}'),
        ("two_kinds", {}, "Name: Paris"),
        ("sample", {}, "Paris"),
        ("sample_get", {"prompt": "p"}, "Paris"),
        ("roots", {}, "file:///one file:///two"),
        ("ask_url", {}, "opened"),
        ("ping_client", {}, "pong"),
        ("slow", {"seconds": 0}, "slept"),
        ("progress", {"steps": 2}, "2 steps"),
        ("logs", {"levels": ["debug", "error"]}, "2 messages"),
        ("logs_get", {"levels": ["info"]}, "1 messages"),
        (
            "get_weather",
            {"location": "New York"},
            "Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy",
        ),
        (
            "update_work_item",
            {"workItemId": 4522, "fields": {"System.State": "Resolved"}},
            "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created.",
        ),
    ],
)
async def test_a_tool_ends_as_its_name_says(
    server: Running, tool: str, arguments: dict[str, Any], expected: str
) -> None:
    async with LegacyClient(server.url) as client:
        said = await client.text(tool, arguments)
    if said.startswith("{"):
        assert json.loads(said) == json.loads(expected)
    else:
        assert said == expected


async def test_add_has_structured_content(server: Running) -> None:
    async with LegacyClient(server.url) as client:
        result = await client.tool("add", {"a": 2, "b": 3})
    assert result["structuredContent"] == {"result": 5}
    assert result["content"][0]["text"] == "5"


async def test_three_kinds_are_asked_at_once(server: Running) -> None:
    async with LegacyClient(server.url) as client:
        said = json.loads(await client.text("mixed_three"))
        asked = {method for _, method in client.asked}
    assert said == {"name": "Name", "sampled": "Paris", "roots": ["file:///one", "file:///two"]}
    assert asked == {"elicitation/create", "sampling/createMessage", "roots/list"}


@pytest.mark.parametrize(
    ("tool", "stream"),
    [
        ("ask_name", "POST"),
        ("ask_name_get", "GET"),
        ("sample", "POST"),
        ("sample_get", "GET"),
        ("roots", "GET"),
    ],
)
async def test_the_stream_of_an_ask_is_the_promised_one(server: Running, tool: str, stream: str) -> None:
    async with LegacyClient(server.url) as client:
        await client.text(tool)
    assert [where for where, _ in client.asked] == [stream]


@pytest.mark.parametrize(("action", "expected"), [("decline", "declined"), ("cancel", "cancelled")])
async def test_a_refused_question_is_said_so(server: Running, action: str, expected: str) -> None:
    async with LegacyClient(server.url, lambda *_: {"action": action}) as client:
        assert await client.text("ask_name") == expected
        assert await client.text("ask_url") == expected


async def test_failures_come_in_their_three_forms(server: Running) -> None:
    async with LegacyClient(server.url) as client:
        assert (await client.tool("fail"))["isError"] is True
        refused = (await client.tool("protocol_error"))["error"]
        assert (refused["code"], refused["message"]) == (-32050, "refused by the tool")
        assert refused.get("data") == (None if server.kind == "ts-1.12" else {"why": "always"})
        assert (await client.tool("nonesuch"))["error"]["code"] == -32602
        assert (await client.tool("unknown_ask"))["isError"] is True


async def test_a_required_address_is_refused_once_per_key(server: Running) -> None:
    async with LegacyClient(server.url) as client:
        error = (await client.tool("url_required", {"key": f"k-{server.port}"}))["error"]
        assert error["code"] == -32042
        if server.kind != "ts-1.12":  # that release drops the `data` of every error
            assert error["data"]["elicitations"][0]["mode"] == "url"
        assert await client.text("url_required", {"key": f"k-{server.port}"}) == f"visited k-{server.port}"


async def test_prompts_and_resources_may_ask_too(server: Running) -> None:
    async with LegacyClient(server.url) as client:
        simple = await client.request("prompts/get", {"name": "simple", "arguments": {"topic": "rain"}})
        asking = await client.request("prompts/get", {"name": "ask_prompt"})
        fixed = await client.request("resources/read", {"uri": "test://static/hello"})
        item = await client.request("resources/read", {"uri": "test://item/7"})
        asked = await client.request("resources/read", {"uri": "ask://resource"})
        missing = await client.request("resources/read", {"uri": "test://nowhere"})
        reference = {"type": "ref/prompt", "name": "simple"}
        completed = await client.request(
            "completion/complete", {"ref": reference, "argument": {"name": "topic", "value": "r"}}
        )
        templates = await client.request("resources/templates/list")
    assert simple["messages"][0]["content"]["text"] == "Write about rain."
    assert asking["messages"][0]["content"]["text"] == "Hello Name"
    assert fixed["contents"][0]["text"] == "Hello from a resource"
    assert item["contents"][0]["text"] == "Item 7"
    assert asked["contents"][0]["text"] == "Hello Name"
    assert missing["error"]["code"] == -32002
    assert completed["completion"]["values"] == ["rain", "river", "rust"]
    assert templates["resourceTemplates"][0]["uriTemplate"] == "test://item/{id}"


async def test_a_server_tells_who_called_and_what_it_saw(server: Running) -> None:
    async with LegacyClient(server.url, authorization="Bearer abc") as client:
        who = json.loads(await client.text("whoami"))
        effect = await client.text("side_effect_then_ask", {"id": "e1"})
        await client.text("remember", {"value": "v"})
        assert await client.text("recall") == "v"
    assert who["authorization"] == "Bearer abc"
    assert who["session"]
    assert "sampling" in who["capabilities"]
    assert effect.startswith("Hello Name, effect ")
    seen = await server.observed()
    assert seen["counters"]["effect:e1"] >= 1
    calls = [
        entry["body"]["params"]["name"]
        for entry in seen["http"]
        if entry.get("body", {}).get("method") == "tools/call"
    ]
    assert "whoami" in calls


async def test_progress_arrives_under_the_callers_token(server: Running) -> None:
    async with LegacyClient(server.url) as client:
        await client.tool("progress", {"steps": 3}, token="tok")
        notices = await client.notices(3)
    stream = "GET" if server.kind in {"py-1.12", "py-1.26"} else "POST"
    assert [(where, n["params"]["progressToken"], n["params"]["progress"]) for where, n in notices] == [
        (stream, "tok", 1),
        (stream, "tok", 2),
        (stream, "tok", 3),
    ]


@pytest.mark.parametrize("kind", TYPESCRIPT_KINDS)
async def test_an_impatient_tool_withdraws_its_question(kind: str, legacy_servers: LegacyServers) -> None:
    async with LegacyClient(legacy_servers.get(kind).url) as client:
        client._receive = lambda stream, message: client.notified.append((stream, message))  # type: ignore[method-assign]
        result = await client.tool("ask_impatient", {"timeoutMs": 50})
    assert result["isError"] is True
    assert [message["method"] for _, message in client.notified] == [
        "elicitation/create",
        "notifications/cancelled",
    ]


@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.32"])
async def test_the_options_change_what_they_say(kind: str) -> None:
    async with start_legacy(kind, arguments=["--bad-tools", "--page-size", "30"]) as paged:
        async with LegacyClient(paged.url) as client:
            first = await client.request("tools/list")
            rest = await client.request("tools/list", {"cursor": first["nextCursor"]})
        assert len(first["tools"]) == 30
        assert any("inputSchema" not in tool for tool in rest["tools"])
        await paged.forget_sessions()
        assert (await paged.observed())["sessions"] == 0


@pytest.mark.parametrize("kind", FIXTURE_KINDS)
@pytest.mark.parametrize("option", ["json_response", "stateless", "event_store"])
async def test_every_way_of_serving_answers_a_plain_call(
    kind: str, option: str, legacy_servers: LegacyServers
) -> None:
    async with LegacyClient(legacy_servers.get(kind, **{option: True}).url) as client:
        assert await client.text("echo", {"text": "hi"}) == "hi"
        if option == "event_store":
            assert await client.text("ask_name") == "Hello Name"


@pytest.mark.parametrize("kind", FIXTURE_KINDS)
async def test_a_crash_ends_the_process(kind: str) -> None:
    async with start_legacy(kind) as running, LegacyClient(running.url) as client:
        with pytest.raises((aiohttp.ClientError, AssertionError)):
            await client.tool("crash_process")
        assert running.process.wait(5) == 3


@pytest.mark.parametrize("kind", EVERYTHING_KINDS)
async def test_everything_asks_on_its_own_stream(kind: str, legacy_servers: LegacyServers) -> None:
    def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "decline"} if method == "elicitation/create" else accept_all(method, params)

    tool = {"everything-2025.9.25": "startElicitation", "everything-2026.8.31": "trigger-elicitation-request"}
    async with LegacyClient(legacy_servers.get(kind).url, answer) as client:
        result = await client.tool(tool[kind])
    assert result["content"]
    where = {"everything-2025.9.25": "GET", "everything-2026.8.31": "POST"}[kind]
    assert (where, "elicitation/create") in client.asked
