"""Which test files begin first when two processes share them: the long ones, so that none of these is left at the end.

A file stays on one process, and the library would begin with the files of most tests: those are the quick ones.
"""

from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
LONGEST: Final = (
    "tests/conversations/test_drain.py",
    "tests/conversations/test_stdio.py",
    "tests/conversations/test_ladder.py",
    "tests/conversations/test_conformance.py",
    "tests/conversations/test_ladder_doubt.py",
    "tests/test_serving.py",
    "tests/deploy/test_chart.py",
    "tests/conversations/test_legacy_clients.py",
    "tests/conversations/test_upgrades.py",
    "tests/conversations/test_modern_stdio.py",
    "tests/conversations/test_sessions.py",
    "tests/relay/test_ladder_machine.py",
    "tests/chaos/test_small.py",
    "tests/eras/test_fidelity.py",
    "tests/conversations/test_typescript_client.py",
    "tests/conversations/test_python_client.py",
    "tests/bench/test_bench.py",
    "tests/conversations/test_fencing.py",
    "tests/conversations/test_modern_upstream.py",
    "tests/demo/test_walkthrough.py",
    "tests/conversations/test_subscriptions_peers.py",
    "tests/test_probe.py",
    "tests/servers/test_fixtures.py",
    "tests/conversations/test_slices.py",
    "tests/conversations/test_fastmcp.py",
    "tests/conversations/test_http_sse.py",
    "tests/conversations/test_first_discovery.py",
    "tests/stores/test_memory_as_model.py",
    "tests/house/test_compatibility.py",
    "tests/conversations/test_crowd.py",
)
"""Each takes ten seconds or more."""
_PLACES: Final = {ROOT / file: place for place, file in enumerate(LONGEST)}


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """The hook: all else, and the tests within a file, stay in the order in which they were found."""
    items.sort(key=lambda item: _PLACES.get(item.path, len(_PLACES)))
