"""All features of a legacy server, one after the other through one gateway: for transports that are costly to start."""

from tests.support.features import FEATURES
from tests.support.python_client import PythonClient

SETTLE = "150ms"
"""Long enough to keep "at once" apart from "one after the other" on two busy cores; every round waits for it."""


async def shortcomings(url: str, kind: str) -> dict[str, str]:
    """What did not go as it should with this server behind this gateway, by feature."""
    found: dict[str, str] = {}
    async with PythonClient(url) as client:
        for feature in FEATURES:
            if kind in feature.not_on:
                continue
            client.person.asked.clear()
            before = len(client.results(feature.method))
            params, said = feature.fresh()
            heard = await client.carry_out(feature.method, params)
            rounds = client.results(feature.method)[before:]
            if heard != said:
                found[feature.id] = f"said {heard!r}"
            elif rounds != ["input_required"] * feature.rounds + ["complete"]:
                found[feature.id] = f"took {rounds}"
            elif client.person.kinds != list(feature.asks):
                found[feature.id] = f"asked {client.person.kinds}"
    return found
