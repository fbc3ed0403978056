"""The chaos run at a small size: every kind of fault at least once, every zero a zero."""

import pytest

from tests.chaos.plan import Plan
from tests.chaos.records import FaultKind
from tests.chaos.report import as_markdown, zeros
from tests.chaos.run import run
from tests.chaos.story import stories


@pytest.mark.timeout(900)
async def test_nothing_is_lost_whatever_breaks() -> None:
    """Ours (issue: nothing lost): three gateways, real servers with and without a memory, one Redis, all broken."""
    plan = Plan(exchanges=36, seed=2, at_once=12, thinking=0.8, pause=1.0, heartbeat=0.5, mcp_share=0.2)

    outcome = await run(plan, lambda _: None)

    assert {fault.kind for fault in outcome.records.faults} == set(FaultKind)
    assert len(outcome.judgement.verdicts) == plan.exchanges
    found = zeros(outcome)
    assert found == dict.fromkeys(found, 0), stories(outcome)
    assert f"{plan.exchanges} exchanges" in as_markdown(outcome)
    assert stories(outcome) == ""
