"""Each of the three nets: telling names, payload types, credential-shaped text."""

import json
from pathlib import PurePosixPath
from time import process_time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from gateway.errors import UpstreamRefused
from gateway.telemetry.redact import (
    MAX_TEXT,
    REDACTED,
    Blackout,
    describe,
    is_sensitive,
    redact,
    redact_value,
    scrub,
)


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "proxy-authorization",
        "Cookie",
        "Set-Cookie",
        "set_cookie",
        "requestState",
        "request_state",
        "inputResponses",
        "input_response",
        "answers",
        "arguments",
        "content",
        "structuredContent",
        "params",
        "result",
        "password",
        "client_secret",
        "access_token",
        "X-Api-Key",
        "sealing.keys",
        "Mcp-Session-Id",
        "Mcp-Param-Region",
        "HOLDFAST_SEAL_KEY",
    ],
)
def test_telling_names_are_known_in_every_spelling(name: str) -> None:
    assert is_sensitive(name)


@pytest.mark.parametrize(
    "name",
    [
        "event", "exchange", "round", "upstream", "method", "target", "era", "status", "outcome", "rung",
        "duration_ms", "error_id", "reason", "detail", "logger", "message", "key_id",
        "input_key", "keepalive", "content_type", "url", "version", "path", "session", "auth_mode",
    ],
)  # fmt: skip
def test_what_operators_need_is_left_alone(name: str) -> None:
    assert not is_sensitive(name)


@pytest.mark.parametrize(
    "text",
    [
        "sent Authorization: Bearer HUSH",
        "b'authorization: Basic HUSHHUSH=='",
        '{"Cookie": "sid=HUSH"}',
        "with bearer HUSH-HUSH",
        "http://user:HUSH@example.com/mcp",
        "GET https://example.com/cb?code=HUSH&state=HUSH failed",
        "file:///a?HUSH",
        "client_secret=HUSH",
        "Mcp-Session-Id: HUSH",
        'got {"requestState":"HUSH"}',
        "inputResponses={'a': 'HUSH'}",
        '"structuredContent": {"a": "HUSH"}',
        "eyJhbGciOiJI.eyJIVVNI.HUSH",
        "x-eyJhbGciOiJI.eyJIVVNI.HUSH",
        "ticket " + "HUSH" * 30,
    ],
)
def test_text_loses_what_looks_like_a_credential_or_a_payload(text: str) -> None:
    assert "HUSH" not in scrub(text)
    assert "HUSH" not in str(redact(None, "info", {"detail": text}))


@pytest.mark.parametrize(
    "text",
    [
        "Cannot connect to host 127.0.0.1:9000 ssl:default [Connect call failed]",
        "stream ended after 3 events",
        "Content-Type: text/html is not application/json",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "http://127.0.0.1:9000/mcp",
        "ui://widget/a.html",
        "2025-11-25",
    ],
)
def test_ordinary_text_is_not_touched(text: str) -> None:
    assert scrub(text) == text


def test_long_text_is_cut() -> None:
    cut = scrub("a b " * MAX_TEXT)
    assert len(cut) <= MAX_TEXT
    assert cut.endswith(f"({4 * MAX_TEXT} characters)")
    assert scrub(cut) == cut


def test_values_that_may_carry_a_payload_are_named_by_their_kind() -> None:
    assert redact_value(SecretStr("HUSH")) == "<SecretStr>"
    assert redact_value(msgspec.Raw(b'"HUSH"')) == "<Raw>"
    assert redact_value(bytearray(b"HUSH")) == "[4 bytes]"
    assert redact_value(object()) == "<object>"


def test_plain_values_stay_what_they_are() -> None:
    line: dict[str, Any] = {"a": 1, "b": 1.5, "c": True, "d": None, "e": "x", "f": 10**30}
    assert redact(None, "info", dict(line)) == line
    assert redact_value(PurePosixPath("/etc/holdfast.yaml")) == "/etc/holdfast.yaml"
    assert redact_value({3}) == [3]


def test_depth_and_length_are_bounded() -> None:
    deep: Any = "HUSH"
    for _ in range(50):
        deep = [deep]
    assert "HUSH" not in str(redact_value(deep))
    many = redact_value(list(range(1000)))
    assert isinstance(many, list)
    assert len(many) == 50


def test_a_number_under_a_telling_name_is_hidden_too() -> None:
    assert redact(None, "info", {"password": 1234}) == {"password": REDACTED}


def test_the_causes_of_an_exception_are_told_without_texts_that_may_quote() -> None:
    refused = UpstreamRefused(502)
    refused.__cause__ = json.JSONDecodeError("Expecting value", "HUSH", 0)
    assert describe(refused) == {
        "type": "UpstreamRefused",
        "text": "HTTP 502",
        "causes": [{"type": "JSONDecodeError"}],
    }


def test_an_exception_that_is_its_own_cause_ends() -> None:
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first
    assert describe(first)["causes"] == [{"type": "RuntimeError", "text": "b"}]


def test_a_group_is_told_member_by_member() -> None:
    group = ExceptionGroup("HUSH", [ValueError("HUSH"), OSError(111, "refused")])
    assert describe(group) == {
        "type": "ExceptionGroup",
        "group": [{"type": "ValueError"}, {"type": "ConnectionRefusedError", "text": "[Errno 111] refused"}],
    }


_names = st.sampled_from(["requestState", "Authorization", "content", "arguments", "api_key", "sessionId"])
_secret = st.just("HUSH")
_hidden = st.dictionaries(
    _names, st.recursive(_secret, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
_values: st.SearchStrategy[Any] = st.recursive(
    _hidden | st.none() | st.booleans() | st.integers() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(_values)
def test_a_secret_under_a_telling_name_is_found_wherever_it_lies(value: Any) -> None:
    cleaned = redact(None, "info", {"value": value})
    assert "HUSH" not in str(cleaned)
    msgspec.json.encode(cleaned)


@pytest.mark.parametrize(
    "piece", ["://", "://a@", "a?", "token ", "-eyJaaaaaa", "bearer ", "mcp-param-", "content", "a-", '"']
)
def test_scrubbing_takes_no_longer_for_text_made_to_be_slow(piece: str) -> None:
    """Ours: tool names and URIs are a peer's choice, and all calls wait while one line is written."""
    text = piece * MAX_TEXT
    started = process_time()
    scrub(text)
    assert process_time() - started < 0.1


@given(st.text())
def test_any_text_can_be_scrubbed_and_scrubbing_again_changes_nothing(text: str) -> None:
    once = scrub(text)
    assert scrub(once) == once


def test_a_known_secret_is_taken_out_wherever_it_stands_and_whatever_it_looks_like() -> None:
    """Ours: values of several lines come back line by line; short ones are words that logs are made of."""
    blackout = Blackout(
        ["a.b*c(d[e", "first line of it\n  second line of it", "production", "true", "", "productions"]
    )

    assert blackout("is a.b*c(d[e here") == f"is {REDACTED} here"
    assert blackout("second line of it") == blackout("first line of it") == REDACTED
    assert blackout("productions, true") == f"{REDACTED}, true"
    assert Blackout([])("as it is") == Blackout(["1", "true"])("as it is") == "as it is"
