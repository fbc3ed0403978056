"""The modern Python client through the gateway, against every release of legacy server that we know."""

import json

import pytest

from tests.support.features import FEATURES, Feature
from tests.support.gateways import Gateways
from tests.support.peers import FIXTURE_KINDS, LegacyServers
from tests.support.python_client import PythonClient

MODES = ("auto", "2026-07-28")
PAIRS = [
    pytest.param(kind, feature, id=f"{kind}-{feature.id}")
    for kind in FIXTURE_KINDS
    for feature in FEATURES
    if kind not in feature.not_on
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kind", "feature"), PAIRS)
@pytest.mark.requirement("R22", "R23", "R24", "R34", "R38")
async def test_a_conversation_goes_as_with_a_modern_server(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str, feature: Feature, mode: str
) -> None:
    """Issue: every ask of every kind, on either stream, in as few rounds as the server allows."""
    served = await gateway(legacy_servers.get(kind).url, settle=feature.settle)
    params, said = feature.fresh()

    async with PythonClient(served.url, mode=mode) as client:
        heard = await client.carry_out(feature.method, params)

    assert heard == said
    assert client.results(feature.method) == ["input_required"] * feature.rounds + ["complete"]
    assert client.person.kinds == list(feature.asks)
    probes = [entry for entry in client.rounds if entry.method == "server/discover"]
    assert len(probes) == (1 if mode == "auto" else 0)


@pytest.mark.parametrize("kind", FIXTURE_KINDS)
async def test_three_kinds_of_question_come_in_one_round(
    legacy_servers: LegacyServers, gateway: Gateways, kind: str
) -> None:
    """Issue: "mixed three"; in Python roots are asked on the GET stream, the others on that of the POST."""
    served = await gateway(legacy_servers.get(kind).url, settle="200ms")

    async with PythonClient(served.url) as client:
        heard = await client.carry_out("tools/call", {"name": "mixed_three", "arguments": {}})

    assert json.loads(heard) == {"name": "Ann", "sampled": "Paris", "roots": ["file:///one", "file:///two"]}
    assert client.results("tools/call") == ["input_required", "complete"]
    assert client.person.kinds == ["elicitation/create", "roots/list", "sampling/createMessage"]
