"""What a probe says of what it found."""

import json
from typing import Any

import pytest
import yaml

from gateway.relay.probe import Findings
from gateway.relay.probe_report import as_json, as_text, configuration, may_replay, session_style, warnings
from gateway.settings.model import Settings


def http(**facts: Any) -> Findings:
    sound: dict[str, Any] = {
        "transport": "streamable-http",
        "versions": ["2025-11-25"],
        "server": {"name": "Work Items", "version": "3"},
        "capabilities": {"tools": {}},
        "has_session_id": True,
        "has_standing_stream": True,
        "is_resumable": True,
        "answers_json": False,
        "tools": [{"name": "read", "annotations": {"readOnlyHint": True}}, {"name": "write"}],
    }
    return Findings(**{**sound, **facts})


@pytest.mark.parametrize(
    ("annotations", "may"),
    [
        ({"readOnlyHint": True}, True),
        ({"idempotentHint": True}, True),
        ({"readOnlyHint": False, "destructiveHint": True}, False),
        ({"readOnlyHint": "yes"}, False),
        ({}, False),
        (None, False),
        ([], False),
    ],
)
def test_a_tool_may_be_replayed_if_it_says_so(annotations: Any, may: bool) -> None:  # noqa: FBT001
    assert may_replay({"name": "x", "annotations": annotations}) is may


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({"has_session_id": False}, "keeps no sessions"),
        ({"answers_json": True}, "answered in JSON"),
        ({"has_standing_stream": False}, "no GET stream"),
        ({"answers_json": True, "has_standing_stream": False}, "cannot ask anything"),
        ({"is_resumable": False}, "cannot be resumed"),
        ({"transport": "sse"}, "lost session"),
        ({"transport": "sse", "serves_many": False}, "one client only"),
        ({"transport": "sse", "serves_many": True, "tells_all": True}, "sends every client"),
        ({"serves_many": False}, "single session for all"),
        ({"transport": "stdio"}, "a process of its own"),
        ({"asks_at_start": ["roots/list"]}, "roots/list"),
        ({"tools": [{"name": "write"}]}, "No tool declares"),
        ({"era": "modern", "versions": ["2026-07-28", "2025-11-25"]}, "`era: legacy`"),
    ],
)
def test_what_is_odd_is_warned_of(facts: dict[str, Any], word: str) -> None:
    assert any(word in warning for warning in warnings(http(**facts)))


def test_nothing_is_warned_of_where_nothing_is_odd() -> None:
    assert list(warnings(http())) == []
    assert list(warnings(Findings(era="modern", versions=["2026-07-28"], has_session_id=False))) == []


@pytest.mark.parametrize(
    ("facts", "style"),
    [
        ({}, "session ids"),
        ({"has_session_id": False}, "none (stateless)"),
        ({"transport": "stdio"}, "a process each"),
        ({"transport": "sse"}, "an event stream each"),
        ({"era": "modern"}, "none (every request is complete in itself)"),
    ],
)
def test_sessions_are_told_in_words(facts: dict[str, Any], style: str) -> None:
    assert session_style(http(**facts)) == style


@pytest.mark.parametrize(
    ("target", "facts"),
    [
        ("http://h/mcp?a=b:%20c", {}),
        (["npx", "-y", 'it"s'], {"transport": "stdio"}),
        ("http://h/sse", {"transport": "sse", "serves_many": False}),
        ("http://h/sse", {"transport": "sse", "tells_all": True}),
        ("http://h/mcp", {"server": {"name": "…"}}),
        ("http://h/mcp", {"server": None}),
        ("http://h/mcp", {"serves_many": False}),
    ],
)
def test_the_configuration_can_be_pasted(target: Any, facts: dict[str, Any]) -> None:
    settings = Settings.model_validate(yaml.safe_load(configuration(http(**facts), target)))

    (upstream,) = settings.upstreams.values()
    assert upstream.url == target if isinstance(target, str) else list(upstream.command) == target


def test_the_report_is_readable_and_the_same_as_json() -> None:
    text, document = as_text(http(), "http://h/mcp"), json.loads(as_json(http(), "http://h/mcp"))

    assert "Work Items 3" in text
    assert "read   replay, readOnly" in text
    assert document["tools"][0] == {"name": "read", "annotations": {"readOnlyHint": True}, "replay": True}
    assert document["configuration"].startswith("upstreams:\n  work-items:\n    url: ")
