"""Revisions in their order, and the names that the protocol reserves."""

import pytest

from gateway.wire import versions


def test_no_revision_is_both_modern_and_legacy() -> None:
    for version in versions.MODERN_VERSIONS:
        assert versions.is_modern(version)
        assert not versions.is_legacy(version)
    for version in versions.LEGACY_VERSIONS:
        assert versions.is_legacy(version)
        assert not versions.is_modern(version)


@pytest.mark.parametrize("unknown", ["", "2.0", "2026-07-29", "2025-06-1", "draft"])
def test_an_unknown_revision_is_neither(unknown: str) -> None:
    assert not versions.is_modern(unknown)
    assert not versions.is_legacy(unknown)


def test_legacy_revisions_are_listed_newest_first() -> None:
    assert list(versions.LEGACY_VERSIONS) == sorted(versions.LEGACY_VERSIONS, reverse=True)
    assert versions.LATEST_LEGACY == "2025-11-25"


def test_at_least_follows_the_dates() -> None:
    assert versions.at_least("2025-11-25", "2025-11-25")
    assert versions.at_least(versions.MODERN, "2025-11-25")
    assert not versions.at_least("2025-06-18", "2025-11-25")
    assert not versions.at_least("2024-11-05", "2025-03-26")


def test_log_levels_rise_in_severity() -> None:
    """Spec: the syslog levels of RFC 5424."""
    assert versions.LOG_LEVELS[0] == "debug"
    assert versions.LOG_LEVELS[-1] == "emergency"
    assert versions.LOG_LEVELS.index("warning") < versions.LOG_LEVELS.index("error")
    assert len(set(versions.LOG_LEVELS)) == 8
