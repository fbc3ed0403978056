"""Legacy servers written with fastmcp, over each of its transports: what its users write is served as it is."""

import pytest

from tests.support.gateways import UPSTREAM, Gateways, Served
from tests.support.peers import FASTMCP_KINDS, LegacyServers, stdio_command
from tests.support.python_client import PythonClient, text_of

TRANSPORTS = ("streamable-http", "sse", "stdio")


@pytest.fixture(params=[f"{kind}/{transport}" for kind in FASTMCP_KINDS for transport in TRANSPORTS])
async def served(request: pytest.FixtureRequest, legacy_servers: LegacyServers, gateway: Gateways) -> Served:
    kind, _, transport = request.param.partition("/")
    if transport == "stdio":
        command = {"command": stdio_command(kind), "sessions": {"mode": "pooled"}}
        return await gateway.start({"listen": "127.0.0.1:0", "upstreams": {UPSTREAM: command}})
    return await gateway(legacy_servers.get(kind, transport=transport).url)


async def test_its_questions_are_answered(served: Served) -> None:
    """Issue: fastmcp 2.14 and 3.4; `ctx.elicit`, `ctx.sample` and `ctx.list_roots` as documented there."""
    async with PythonClient(served.url) as client:
        said = {
            name: text_of(await client.tool(name, arguments))
            for name, arguments in (
                ("ask_name", {}),
                ("ask_scalar", {}),
                ("ask_two_serial", {}),
                ("sample", {"prompt": "Capital of France?"}),
                ("roots", {}),
            )
        }

    assert said == {
        "ask_name": "Hello Ann",
        "ask_scalar": "Hello Ann",
        "ask_two_serial": "Ada Lovelace",
        "sample": "Paris",
        "roots": "file:///one file:///two",
    }
    kinds = ["elicitation/create"] * 4 + ["roots/list", "sampling/createMessage"]
    assert client.person.kinds == kinds


async def test_all_else_of_it_works(served: Served) -> None:
    async with PythonClient(served.url, log_level="warning") as client:
        total = await client.tool("add", {"a": 1, "b": 2})
        failed = await client.tool("fail")
        await client.tool("progress", {"steps": 2})
        tools = {tool.name for tool in (await client.client.list_tools()).tools}
        prompt = await client.carry_out("prompts/get", {"name": "simple", "arguments": {"topic": "rain"}})
        fixed = await client.carry_out("resources/read", {"uri": "test://static/hello"})
        one = await client.carry_out("resources/read", {"uri": "test://item/7"})

    assert text_of(total) == "3"
    assert total.structured_content == {"result": 3}
    assert failed.is_error
    assert {"add", "ask_name", "roots"} <= tools
    assert (prompt, fixed, one) == ("Write about rain.", "Hello from a resource", "Item 7")
    assert client.progress == [(1, 2), (2, 2)]
    assert [record.level for record in client.logs] == ["warning"]
