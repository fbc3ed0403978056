"""`server/discover` from what the legacy handshake told."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import methods

from gateway.eras.discovery import Introduction, discover_result, introduction, modern_capabilities
from gateway.errors import UpstreamSpokeNonsense
from gateway.wire.jsonrpc import Raw, decode, encode

GATEWAY = {"name": "holdfast", "version": "9"}
EVERYTHING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "logging": {},
        "completions": {},
        "experimental": {"com.example/x": {"y": 1}},
        "tasks": {"list": {}, "requests": {"tools": {"call": {}}}},
    },
    "serverInfo": {"name": "everything", "title": "Everything", "version": "2.0.0"},
    "instructions": "Use it well.",
}


def known(result: Any) -> Introduction:
    return introduction(Raw(encode(result)))


def discover(source: Introduction | None, **options: Any) -> dict[str, Any]:
    built = discover_result(source, gateway_info=GATEWAY, ttl_ms=100, cache_scope="private", **options)
    value = decode(encode(built))
    assert isinstance(value, dict)
    methods.validate_server_result("server/discover", "2026-07-28", value)
    return value


@pytest.mark.requirement("R25")
@pytest.mark.requirement("R24")
@pytest.mark.requirement("R23")
def test_a_known_server_is_described_as_it_described_itself() -> None:
    assert discover(known(EVERYTHING)) == {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {
            "tools": {},
            "prompts": {},
            "resources": {},
            "completions": {},
            "logging": {},
            "experimental": {"com.example/x": {"y": 1}},
        },
        "instructions": "Use it well.",
        "_meta": {
            "io.modelcontextprotocol/serverInfo": {
                "name": "everything",
                "title": "Everything",
                "version": "2.0.0",
            }
        },
        "ttlMs": 100,
        "cacheScope": "private",
    }


def test_changes_are_promised_only_when_somebody_delivers_them() -> None:
    capabilities = discover(known(EVERYTHING), subscriptions=True)["capabilities"]

    assert capabilities["tools"] == {"listChanged": True}
    assert capabilities["resources"] == {"subscribe": True, "listChanged": True}
    assert modern_capabilities({"tools": {"listChanged": False}}, subscriptions=True) == {"tools": {}}


@pytest.mark.requirement("R25")
def test_an_unknown_server_gets_a_minimal_answer_that_nobody_keeps() -> None:
    """A client that hears an error here falls back to the legacy handshake for good."""
    assert discover(None) == {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "_meta": {"io.modelcontextprotocol/serverInfo": GATEWAY},
        "ttlMs": 0,
        "cacheScope": "private",
    }


UI = "io.modelcontextprotocol/ui"


@pytest.mark.requirement("R58")
@pytest.mark.requirement("R25")
@pytest.mark.parametrize(
    ("legacy", "modern"),
    [
        ({}, {}),
        ({"tools": None, "prompts": False}, {}),
        ({"tools": True, "logging": True}, {"tools": {}, "logging": {}}),
        ({"experimental": {"a": {}, "b": None, "c": 3}}, {"experimental": {"a": {}}}),
        ({"tasks": {}, "extensions": {"x/y": {}}, "vendor": {}}, {}),
        (
            {"extensions": {UI: {"a": [1]}, "io.modelcontextprotocol/tasks": {}}},
            {"extensions": {UI: {"a": [1]}}},
        ),
        ({"extensions": {UI: True}}, {"extensions": {UI: {}}}),
        ({"extensions": {UI: None}}, {}),
        ({"extensions": [UI]}, {}),
    ],
)
def test_only_capabilities_that_hold_through_us_are_declared(legacy: Any, modern: Any) -> None:
    assert discover(known(EVERYTHING | {"capabilities": legacy}))["capabilities"] == modern


@pytest.mark.parametrize("info", [None, {}, {"name": "x"}, {"name": None, "version": "1"}, "crm"])
def test_a_server_without_a_usable_name_goes_under_ours(info: Any) -> None:
    result = discover(known(EVERYTHING | {"serverInfo": info}))

    assert result["_meta"] == {"io.modelcontextprotocol/serverInfo": GATEWAY}


def test_a_server_with_odd_trimmings_keeps_its_name() -> None:
    info = {"name": "crm", "version": "1", "title": None, "icons": [{"src": None}], "vendor": 1}

    assert known(EVERYTHING | {"serverInfo": info}).server_info == {
        "name": "crm",
        "version": "1",
        "icons": [],
        "vendor": 1,
    }


@pytest.mark.parametrize("instructions", [None, 5, ""])
def test_no_instructions_are_no_instructions(instructions: Any) -> None:
    assert "instructions" not in discover(known(EVERYTHING | {"instructions": instructions}))


@pytest.mark.parametrize("result", [None, [], {}, {"protocolVersion": 3}, {"protocolVersion": None}])
def test_an_introduction_needs_a_version(result: Any) -> None:
    with pytest.raises(UpstreamSpokeNonsense):
        known(result)


@given(
    st.dictionaries(
        st.sampled_from(["capabilities", "serverInfo", "instructions", "tools"]),
        st.recursive(
            st.none() | st.booleans() | st.text(max_size=3),
            lambda inner: st.dictionaries(
                st.sampled_from(
                    ["tools", "resources", "experimental", "logging", "name", "version", "icons"]
                ),
                inner,
            ),
            max_leaves=8,
        ),
    )
)
def test_whatever_a_server_says_of_itself_discovery_answers(said: dict[str, Any]) -> None:
    discover(known(said | {"protocolVersion": "2025-03-26"}), subscriptions=True)
