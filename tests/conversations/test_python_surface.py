"""The rest of the modern surface as the Python client sees it: lists, refusals, progress, logs, failures."""

import json
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import PromptReference

from tests.support.gateways import Gateways
from tests.support.peers import FIXTURE_KINDS, SERVERS, LegacyServers, Running
from tests.support.person import Person
from tests.support.python_client import PythonClient, text_of

CATALOG: dict[str, Any] = json.loads((SERVERS / "catalog.json").read_text("utf-8"))
SPEAKS_ON_GET = frozenset({"py-1.12", "py-1.26"})
"""Releases that send progress on the standing stream, where the call's result may overtake it."""


@pytest.fixture(params=FIXTURE_KINDS)
def server(request: pytest.FixtureRequest, legacy_servers: LegacyServers) -> Running:
    return legacy_servers.get(request.param)


@pytest.mark.requirement("R25", "R23")
async def test_discovery_tells_what_the_server_said_of_itself(server: Running, gateway: Gateways) -> None:
    """Spec: server/discover; ours: from the `initialize` result, under the server's own name."""
    served = await gateway(server.url)

    async with PythonClient(served.url) as client:
        version, info = client.client.protocol_version, client.client.server_info
        instructions, declared = client.client.instructions, client.client.server_capabilities

    assert client.results("server/discover") == ["complete"]
    assert version == "2026-07-28"
    assert info is not None
    assert info.name in {"py-legacy", "ts-legacy"}
    assert instructions == "A fixture of the tests."
    assert None not in (declared.tools, declared.prompts, declared.resources)


@pytest.mark.requirement("R24", "R26")
async def test_lists_are_those_of_the_server_in_its_order(server: Running, gateway: Gateways) -> None:
    """Issue: the lists of the bridge."""
    served = await gateway(server.url)

    async with PythonClient(served.url) as client:
        tools = await client.client.list_tools()
        prompts = await client.client.list_prompts()
        resources = await client.client.list_resources()
        templates = await client.client.list_resource_templates()

    assert [tool.name for tool in tools.tools] == [tool["name"] for tool in CATALOG["tools"]]
    assert [prompt.name for prompt in prompts.prompts] == ["simple", "ask_prompt"]
    assert [resource.uri for resource in resources.resources] == ["test://static/hello", "ask://resource"]
    assert [template.uri_template for template in templates.resource_templates] == ["test://item/{id}"]


@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.32"])
@pytest.mark.requirement("R26")
async def test_one_bad_tool_does_not_poison_a_paged_list(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str
) -> None:
    """MODERN-WIRE 1.2: clients refuse a whole list for one tool."""
    server = legacy_servers.get(kind, arguments=["--bad-tools", "--page-size", "10"])
    served = await gateway(server.url)
    names: list[str] = []
    cursor: str | None = None

    async with PythonClient(served.url) as client:
        while True:
            page = await client.client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break

    expected = [tool["name"] for tool in CATALOG["tools"]]
    assert names[: len(expected)] == expected
    assert "no_schema" in names[len(expected) :]


@pytest.mark.requirement("R22")
async def test_structured_content_prompts_reads_and_completions_arrive_whole(
    server: Running, gateway: Gateways
) -> None:
    """Issue: completion/complete, and results with structuredContent, pass."""
    served = await gateway(server.url)

    async with PythonClient(served.url) as client:
        added = await client.tool("add", {"a": 20, "b": 22})
        prompt = await client.carry_out("prompts/get", {"name": "simple", "arguments": {"topic": "rain"}})
        item = await client.carry_out("resources/read", {"uri": "test://item/7"})
        completed = await client.client.complete(
            PromptReference(type="ref/prompt", name="simple"), {"name": "topic", "value": "r"}
        )

    assert added.structured_content == {"result": 42}
    assert prompt == "Write about rain."
    assert item == "Item 7"
    assert completed.completion.values == ["rain", "river", "rust"]


@pytest.mark.parametrize(("action", "said"), [("decline", "declined"), ("cancel", "cancelled")])
async def test_a_no_of_the_user_reaches_the_server(
    server: Running, gateway: Gateways, action: str, said: str
) -> None:
    """Issue: decline and cancel; the call goes on."""
    served = await gateway(server.url)

    async with PythonClient(served.url, person=Person(action=action)) as client:
        assert text_of(await client.tool("ask_name")) == said
        assert text_of(await client.tool("ask_url")) == said
        both = await client.tool("ask_two_parallel")

    assert text_of(both) == f"{said} {said}"


@pytest.mark.requirement("R31")
async def test_progress_arrives_under_the_token_of_the_round(server: Running, gateway: Gateways) -> None:
    """Spec: basic/patterns/progress; `PythonClient` fails if a token is another round's."""
    served = await gateway(server.url)

    async with PythonClient(served.url) as client:
        await client.tool("progress", {"steps": 3})
        first, client.progress = client.progress, []
        await client.tool("ask_then_progress", {"steps": 3})
        second = client.progress
        (_, _, retry) = [entry for entry in client.rounds if entry.method == "tools/call"]

    for steps in (first, second):
        if server.kind in SPEAKS_ON_GET:
            assert steps == sorted(steps)
            assert set(steps) <= {(1, 3), (2, 3), (3, 3)}
        else:
            assert steps == [(1, 3), (2, 3), (3, 3)]
    if server.kind not in SPEAKS_ON_GET:
        assert retry.is_stream
        tokens = {message["params"]["progressToken"] for message in retry.messages[:-1]}
        assert tokens == {retry.sent["params"]["_meta"]["progressToken"]}


@pytest.mark.requirement("R32")
async def test_logs_come_at_the_level_that_was_asked_for(server: Running, gateway: Gateways) -> None:
    """Spec: server/utilities/logging; Python servers refuse to set a level and log regardless."""
    served = await gateway(server.url)
    levels = {"levels": ["debug", "info", "warning", "error"]}

    async with PythonClient(served.url, log_level="warning") as client:
        await client.tool("logs", levels)
    async with PythonClient(served.url) as silent:
        await silent.tool("logs", levels)

    assert [(record.level, record.data) for record in client.logs] == [
        ("warning", "at warning"),
        ("error", "at error"),
    ]
    assert silent.logs == []


@pytest.mark.requirement("R28")
async def test_a_failing_tool_is_a_result_and_a_refusing_server_an_error(
    server: Running, gateway: Gateways
) -> None:
    """Spec: server/tools, "Error Handling"; -32050 lies where 2026-07-28 allows no code."""
    served = await gateway(server.url)

    async with PythonClient(served.url) as client:
        failed = await client.tool("fail")
        unanswerable = await client.tool("unknown_ask")
        with pytest.raises(MCPError) as refused:
            await client.tool("protocol_error")
        with pytest.raises(MCPError) as unknown:
            await client.tool("nonesuch")

    assert failed.is_error
    assert "this tool always fails" in text_of(failed)
    assert unanswerable.is_error
    assert refused.value.code == -32603
    assert "refused by the tool" in refused.value.message
    assert refused.value.data["upstreamCode"] == -32050
    assert unknown.value.code == -32602


@pytest.mark.requirement("R27")
async def test_a_missing_resource_is_invalid_params_with_its_uri(server: Running, gateway: Gateways) -> None:
    """Spec: server/resources; legacy servers say -32002."""
    served = await gateway(server.url)

    async with PythonClient(served.url) as client:
        with pytest.raises(MCPError) as missing:
            await client.client.read_resource("test://nowhere")

    assert missing.value.code == -32602
    assert missing.value.data["uri"] == "test://nowhere"


@pytest.mark.requirement("R18", "R35")
async def test_a_question_that_the_client_cannot_answer_fails_the_call_for_want_of_it(
    server: Running, gateway: Gateways
) -> None:
    """MODERN-WIRE 1.12: a client that gets such a question anyway raises without telling anybody."""
    served = await gateway(server.url)
    wanted = {"elicitation": "ask_name", "sampling": "sample", "roots": "roots"}

    for capability, tool in wanted.items():
        async with PythonClient(served.url, without=frozenset({capability})) as client:
            with pytest.raises(MCPError) as refused:
                await client.tool(tool)
        assert refused.value.code == -32021, (capability, refused.value)
        assert refused.value.data["requiredCapabilities"].keys() == {capability}
        assert client.person.asked == []


@pytest.mark.requirement("R35")
async def test_a_server_that_adapts_is_told_what_this_client_can_do(
    server: Running, gateway: Gateways
) -> None:
    """Design: upstream capabilities are this client's own."""
    served = await gateway(server.url)

    async with PythonClient(served.url, without=frozenset({"elicitation"})) as client:
        told = json.loads(text_of(await client.tool("whoami")))

    assert told["capabilities"].keys() == {"sampling", "roots"}


async def test_a_call_that_does_not_ask_needs_no_capability(server: Running, gateway: Gateways) -> None:
    """Ours: declaring nothing is fine as long as nothing is asked."""
    served = await gateway(server.url)
    nothing = frozenset({"elicitation", "sampling", "roots"})

    async with PythonClient(served.url, without=nothing) as client:
        who = json.loads(text_of(await client.tool("whoami")))

    assert {"elicitation", "sampling", "roots"}.isdisjoint(who["capabilities"] or {})
