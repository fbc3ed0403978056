"""The official suite's verdict on a gateway in front of legacy servers, in the suite's own words.

Tasks are an extension that the gateway does not offer yet: their scenarios run, and nothing is made of them.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.conformance import Check, Report, run_suite, scenarios
from tests.support.gateways import Gateways
from tests.support.peers import CONFORMANCE_KINDS, LegacyServers, fixture_command
from tests.support.told import tell

OPTIONAL = {"server-sse-streams-functional"}
"""Tells that lists come as JSON and not as streams, which is as good."""

FOR_ANY_SERVER = {
    "caching",
    "dns-rebinding-protection",
    "http-header-validation",
    "input-required-result-unsupported-methods",
    "prompts-list",
    "resources-list",
    "sep-2164-resource-not-found",
    "server-sse-multiple-streams",
    "tools-list",
}
"""Scenarios that want nothing of the server but that it has tools, prompts and resources."""

pytestmark = pytest.mark.timeout(240)


def judged(report: Report) -> list[Check]:
    return [check for check in report.checks if not check.is_about_tasks]


def settings_for(kind: str, transport: str, servers: LegacyServers) -> dict[str, Any]:
    switches = ["--transport", transport]
    match transport:
        case "stdio":
            upstream: dict[str, Any] = {
                "command": [*fixture_command(kind), *switches],
                # The suite gives some calls half a second, and a Python process takes as long to load.
                "sessions": {"mode": "pooled", "warm": 4},
            }
        case "sse":
            upstream = {"url": f"http://127.0.0.1:{servers.get(kind, arguments=switches).port}/sse"}
        case _:
            upstream = {"url": servers.get(kind, arguments=switches).url}
    return {"listen": "127.0.0.1:0", "upstreams": {"legacy": upstream}}


def told(report: Report, title: str, record_property: Callable[[str, object], None]) -> None:
    counts = Counter(check.status.lower() for check in judged(report))
    line = f"Without tasks: {', '.join(f'{count} {status}' for status, count in sorted(counts.items()))}"
    tell(record_property, f"conformance suite: {title}", [*report.summary, "", line])


@pytest.mark.parametrize("transport", ["streamable-http", "sse", "stdio"])
@pytest.mark.parametrize("kind", CONFORMANCE_KINDS)
async def test_every_check_of_the_official_suite_passes_without_a_warning(
    kind: str,
    transport: str,
    gateway: Gateways,
    legacy_servers: LegacyServers,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    served = await gateway.start(settings_for(kind, transport, legacy_servers))

    report = await run_suite(served.url, tmp_path)

    told(report, f"{kind} over {transport}", record_property)
    checks = judged(report)
    assert {check.scenario for check in checks} == scenarios()
    assert [check for check in checks if check.status in {"FAILURE", "WARNING"}] == []
    assert [check for check in checks if check.status == "SKIPPED"] == []
    assert {check.id for check in checks if check.status == "INFO"} <= OPTIONAL
    assert report.exit_code == 0


@pytest.mark.parametrize("kind", ["py-1.12", "ts-1.12", "everything-2026.8.31"])
async def test_any_legacy_server_passes_what_the_suite_can_ask_of_it(
    kind: str,
    gateway: Gateways,
    legacy_servers: LegacyServers,
    tmp_path: Path,
) -> None:
    """Ours: these have none of the tools that most scenarios call, but whatever comes must fit the schema."""
    served = await gateway(legacy_servers.get(kind).url)

    report = await run_suite(served.url, tmp_path)

    checks = judged(report)
    bad = [check for check in checks if check.status in {"FAILURE", "WARNING"}]
    assert [check for check in bad if check.scenario in FOR_ANY_SERVER] == []
    assert [check for check in bad if check.id.startswith("wire-schema")] == []
    assert sum(check.id == "wire-schema-valid" for check in checks) >= 35
