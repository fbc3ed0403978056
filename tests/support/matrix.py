"""All features of a legacy server, one after the other through one gateway: for transports that are costly to start."""

from tests.support.features import FEATURES, Feature
from tests.support.python_client import PythonClient

SETTLE = "150ms"
"""Long enough to keep "at once" apart from "one after the other" on two busy cores; every round waits for it."""


async def shortcomings(url: str, kind: str) -> dict[str, str]:
    """What did not go as it should with this server behind this gateway, by feature."""
    found: dict[str, str] = {}
    async with PythonClient(url) as client:
        for feature in FEATURES:
            problem = None if kind in feature.not_on else await shortcoming(client, feature)
            if problem is not None:
                found[feature.id] = problem
    return found


async def shortcoming(client: PythonClient, feature: Feature) -> str | None:
    """What did not go as it should with this feature; None if all did."""
    client.person.asked.clear()
    before = len(client.results(feature.method))
    params, said = feature.fresh()
    heard = await client.carry_out(feature.method, params)
    rounds = client.results(feature.method)[before:]
    if heard != said:
        return f"said {heard!r}"
    if rounds != ["input_required"] * feature.rounds + ["complete"]:
        return f"took {rounds}"
    if client.person.kinds != list(feature.asks):
        return f"asked {client.person.kinds}"
    return None
