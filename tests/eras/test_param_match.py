"""Do headers say what the arguments say (2026-07-28, Streamable HTTP, "Server Behavior for Custom Headers")."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import mcp_param_headers

from gateway.eras.param_headers import ParamHeader
from gateway.eras.param_match import disagreement
from gateway.wire.jsonrpc import Raw

REGION = ParamHeader("Region", ("region",))
NESTED = ParamHeader("Tenant-Id", ("tenant", "id"))


def judged(arguments: Any, *lines: str, header: ParamHeader = REGION) -> str | None:
    written = Raw(arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode())
    return disagreement([header], written, {header.name.lower(): lines} if lines else {})


@pytest.mark.requirement("R19")
@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("us-west1", "us-west1"),
        ("us-west1", " us-west1\t"),
        ("", ""),
        ("", "=?base64??="),
        ("Hello", "=?base64?SGVsbG8=?="),
        ("SGVsbG8=", "SGVsbG8="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
        ("日本", "=?base64?5pel5pys?="),
        (42, "42"),
        (42, "42.0"),
        (42.0, "42"),
        (-7, "-7"),
        (1.5, "1.5"),
        (1e-7, "1e-07"),
        (2**64 + 1, "18446744073709551617"),
        (True, "true"),
        (False, "false"),
        ("true", "true"),
    ],
)
def test_a_header_that_repeats_its_argument_is_right(value: Any, line: str) -> None:
    assert judged({"region": value}, line) is None


@pytest.mark.requirement("R19")
@pytest.mark.parametrize(
    ("value", "line", "words"),
    [
        ("us-west1", "us-west2", "does not match"),
        ("us-west1", "US-WEST1", "does not match"),
        ("Hello", "=?base64?SGVsbG8?=", "cannot be decoded"),
        ("Hello", "=?base64?SGVs!!!bG8=?=", "cannot be decoded"),
        ("Hello", "=?base64?SGVsbG9=?=", "cannot be decoded"),
        ("ÿ", "ÿ", "cannot be decoded"),
        (42, "43", "does not match"),
        (42, "forty-two", "does not match"),
        (42, "", "does not match"),
        (2**64 + 1, "18446744073709551616", "does not match"),
        (42, "4_2", "does not match"),
        (42, "٤٢", "cannot be decoded"),
        (True, "True", "does not match"),
        (True, "1", "does not match"),
        (1, "true", "does not match"),
        ("1", "1.0", "does not match"),
        ([1], "1", "does not match"),
        ({}, "", "does not match"),
        (None, "us-west1", "is given, but its argument is not"),
        (None, "null", "is given, but its argument is not"),
    ],
)
def test_a_header_that_says_anything_else_is_refused(value: Any, line: str, words: str) -> None:
    wrong = judged({"region": value}, line)

    assert wrong is not None
    assert wrong.startswith("Mcp-Param-Region ")
    assert words in wrong
    assert wrong.endswith("(region)")


@pytest.mark.requirement("R19")
@pytest.mark.parametrize("value", ["us-west1", "", 0, -1, 1.5, False, 2**53 - 1])
def test_an_argument_without_its_header_is_refused(value: Any) -> None:
    assert "is missing" in (judged({"region": value}) or "")


@pytest.mark.parametrize("value", [None, [1], {}, 2**53, -(2**53), 1e300])
def test_no_header_is_missed_for_what_clients_leave_out(value: Any) -> None:
    """Ours: TypeScript clients write no header for integers that a double cannot hold, so none may be demanded."""
    assert judged({"region": value}) is None


@pytest.mark.requirement("R19")
@pytest.mark.parametrize(
    "arguments", [{}, {"other": 1}, {"tenant": None}, {"tenant": 3}, {"tenant": {}}, [1], None]
)
def test_where_no_argument_is_there_must_be_no_header(arguments: Any) -> None:
    assert judged(arguments, header=NESTED) is None
    assert "is given" in (judged(arguments, "a", header=NESTED) or "")


@pytest.mark.requirement("R19")
def test_an_argument_is_found_under_others() -> None:
    assert judged({"tenant": {"id": "a"}}, "a", header=NESTED) is None
    assert (judged({"tenant": {"id": "a"}}, "b", header=NESTED) or "").endswith("(tenant.id)")


@pytest.mark.requirement("R19")
def test_a_header_given_twice_is_refused_even_if_both_are_right() -> None:
    """Ours: who reads the first line and who reads the last must not be able to differ."""
    assert "more than once" in (judged({"region": "a"}, "a", "a") or "")


@pytest.mark.requirement("R19")
def test_headers_that_the_tool_does_not_ask_for_are_ignored() -> None:
    assert disagreement([], Raw(b"{}"), {"region": ["a", "b"]}) is None


def test_a_call_without_arguments_has_none_to_repeat() -> None:
    assert disagreement([REGION], None, {}) is None
    assert "is given" in (disagreement([REGION], None, {"region": ["a"]}) or "")


@pytest.mark.parametrize(
    "arguments",
    [
        b'{"region":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"region":"\xff"}',
        b'{"region":1e99999999999999999999}',
        b'{"region":"\\ud800"}',
    ],
)
def test_arguments_that_cannot_be_read_never_match_a_header(arguments: bytes) -> None:
    assert judged(arguments, "1") is not None


@given(
    value=st.one_of(st.text(), st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False))
)
def test_what_the_python_client_writes_is_always_taken(value: object) -> None:
    """Ours: the real client's own writer."""
    written = mcp_param_headers({("region",): "Region"}, {"region": value})

    assert judged({"region": value}, *written.values()) is None


@given(body=st.integers(), header=st.integers())
def test_two_integers_match_only_if_they_are_one(body: int, header: int) -> None:
    assert (judged({"region": body}, str(header)) is None) == (body == header)
