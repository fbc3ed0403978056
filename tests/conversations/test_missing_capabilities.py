"""What happens to a call that needs what its client cannot do, whoever finds out: the gateway, or the server's SDK."""

from typing import Any

import pytest

from tests.support.gateways import Gateways
from tests.support.peers import FIXTURE_KINDS, LegacyServers
from tests.support.wire import Wire

Json = dict[str, Any]

CALLS: list[tuple[str, Json, Json]] = [
    ("tools/call", {"name": "ask_name", "arguments": {}}, {"elicitation": {"form": {}}}),
    ("tools/call", {"name": "ask_name_get", "arguments": {}}, {"elicitation": {"form": {}}}),
    ("tools/call", {"name": "ask_url", "arguments": {}}, {"elicitation": {"url": {}}}),
    ("tools/call", {"name": "sample", "arguments": {}}, {"sampling": {}}),
    ("tools/call", {"name": "roots", "arguments": {}}, {"roots": {}}),
    ("prompts/get", {"name": "ask_prompt"}, {"elicitation": {"form": {}}}),
    ("resources/read", {"uri": "ask://resource"}, {"elicitation": {"form": {}}}),
]


@pytest.mark.requirement("R18")
@pytest.mark.parametrize("kind", FIXTURE_KINDS)
async def test_a_call_that_needs_an_undeclared_capability_is_refused_with_what_it_needs(
    kind: str, gateway: Gateways, legacy_servers: LegacyServers
) -> None:
    served = await gateway(legacy_servers.get(kind).url)

    async with Wire(served.url, capabilities={}) as client:
        for method, params, needs in CALLS:
            refused = await client.request(method, params)
            assert (refused.status, refused.error["code"]) == (400, -32021), params
            assert refused.error["data"]["requiredCapabilities"] == needs, params


@pytest.mark.requirement("R18")
@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.32"])
async def test_a_tool_that_can_do_without_is_not_refused(
    kind: str, gateway: Gateways, legacy_servers: LegacyServers
) -> None:
    served = await gateway(legacy_servers.get(kind).url)

    async with Wire(served.url, capabilities={}) as client:
        failed = await client.tool("fail")

    assert failed.result["isError"] is True
