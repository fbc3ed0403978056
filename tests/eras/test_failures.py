"""Legacy errors in the words of 2026-07-28."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.eras.failures import ModernFailure, http_status, to_modern_failure
from gateway.wire.jsonrpc import Failure, Raw, decode, encode

READ = {"uri": Raw(b'"a://b"')}


def fail(
    code: int, message: str = "no", data: Any = None, *, method: str = "tools/call", params: Any = None
) -> ModernFailure:
    raw = None if data is None else Raw(encode(data))
    failure = to_modern_failure(Failure(1, code, message, raw), method=method, params=params or {})
    shown = None if failure.data is None else decode(encode(failure.data))
    return ModernFailure(failure.code, failure.message, shown, failure.http_status)


def read(code: int, message: str = "no", data: Any = None) -> ModernFailure:
    return fail(code, message, data, method="resources/read", params=READ)


@pytest.mark.requirement("R27")
@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (None, {"uri": "a://b"}),
        ({"uri": "a://other"}, {"uri": "a://other"}),
        ({"hint": 1}, {"uri": "a://b", "hint": 1}),
        ("text", "text"),
    ],
)
def test_a_missing_resource_is_invalid_params_and_says_which(data: Any, shown: Any) -> None:
    assert read(-32002, "Resource not found", data) == ModernFailure(-32602, "Resource not found", shown, 400)


@pytest.mark.requirement("R27")
def test_the_python_sdks_way_of_missing_a_resource_is_understood() -> None:
    assert read(0, "Unknown resource: a://b") == ModernFailure(
        -32602, "Unknown resource: a://b", {"upstreamCode": 0, "uri": "a://b"}, 400
    )


@pytest.mark.requirement("R27")
def test_the_typescript_sdks_way_of_missing_a_resource_gets_the_uri() -> None:
    failure = read(-32602, "MCP error -32602: Resource a://b not found")

    assert (failure.code, failure.data) == (-32602, {"uri": "a://b"})


@pytest.mark.parametrize("code", [2**53, -(2**53), 10**20])
def test_codes_that_javascript_would_round_are_not_passed_on(code: int) -> None:
    """The TypeScript client passes over an error with such a code, and waits for its time-out."""
    assert fail(code, "odd") == ModernFailure(-32603, "odd", {"upstreamCode": code}, 200)


@pytest.mark.requirement("R27")
@pytest.mark.parametrize("code", [-32042, -32020, -32021, -32022, -32099, -32050])
def test_codes_that_this_revision_keeps_for_itself_are_not_passed_on(code: int) -> None:
    """A client would act on -32020 to -32022, but a legacy server cannot have meant them."""
    assert fail(code, "odd") == ModernFailure(-32603, "odd", {"upstreamCode": code}, 200)


@pytest.mark.requirement("R27")
@given(st.integers(-40000, 100), st.text(), st.sampled_from(["tools/call", "resources/read", "tools/list"]))
def test_no_forbidden_code_ever_leaves(code: int, message: str, method: str) -> None:
    failure = fail(code, message, method=method)

    assert failure.code not in {-32002, 0}
    assert not -32099 <= failure.code <= -32020
    assert failure.message


@pytest.mark.requirement("R28")
@pytest.mark.parametrize(
    ("method", "code", "message"),
    [
        ("tools/call", -32602, "Unknown tool: x"),
        ("tools/call", -32601, "MCP error -32601: Unknown tool: x"),
        ("tools/call", -32601, "Tool x not found"),
        ("prompts/get", 0, "Unknown prompt: x"),
        ("prompts/get", 0, "Missing required arguments: {'a'}"),
        ("prompts/get", -32601, "Prompt x not found"),
    ],
)
def test_an_unknown_tool_or_prompt_is_invalid_params(method: str, code: int, message: str) -> None:
    failure = fail(code, message, method=method)

    assert (failure.code, failure.http_status, failure.message) == (-32602, 400, message)


@pytest.mark.requirement("R15")
@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("tools/call", "Method not found"),
        ("tools/call", "MCP error -32601: Method not found"),
        ("tools/call", "Method 'tools/call' not found"),
        ("prompts/list", "Prompts not supported"),
        ("resources/templates/list", "no such thing"),
        ("completion/complete", "Method not found"),
    ],
)
def test_a_method_that_the_server_does_not_have_is_not_found(method: str, message: str) -> None:
    assert fail(-32601, message, method=method) == ModernFailure(-32601, message, None, 404)


def test_an_exception_in_a_python_server_is_an_internal_error() -> None:
    assert fail(0, "division by zero") == ModernFailure(-32603, "division by zero", {"upstreamCode": 0}, 200)


@pytest.mark.parametrize("code", [-32603, -32000, -32001, 1, 42, -1, 123456789])
def test_other_codes_are_the_servers_own_and_a_failed_call_is_not_a_failed_gateway(code: int) -> None:
    assert fail(code, "mine", {"k": [1]}) == ModernFailure(code, "mine", {"k": [1]}, 200)


def test_null_data_and_an_empty_message_are_not_passed_on() -> None:
    failure = to_modern_failure(Failure(1, -32603, "", Raw(b"null")), method="tools/call", params={})

    assert failure.data is None
    assert failure.message


def test_data_that_needs_no_change_stays_the_same_bytes() -> None:
    data = Raw(b'{"n": 123456789012345678901234567890}')

    assert to_modern_failure(Failure(1, 5, "x", data), method="tools/call", params={}).data is data


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (-32700, 400),
        (-32600, 400),
        (-32602, 400),
        (-32020, 400),
        (-32021, 400),
        (-32022, 400),
        (-32601, 404),
        (-32603, 200),
        (-31001, 200),
        (7, 200),
    ],
)
def test_the_status_follows_from_the_code(code: int, status: int) -> None:
    assert http_status(code) == status


@pytest.mark.requirement("R26")
@pytest.mark.parametrize(
    ("code", "message"),
    [
        (0, "invalid literal for int() with base 10: 'x'"),
        (-32603, "Bad Cursor"),
        (-32603, "MCP error -32603: Invalid cursor: x"),
        (-32602, "Invalid cursor"),
    ],
)
def test_a_cursor_that_the_server_stumbles_over_is_invalid_params(code: int, message: str) -> None:
    """What servers say to a cursor that is not theirs: Python 1.x code 0, TypeScript 1.x -32603."""
    cursor = {"cursor": Raw(b'"x"')}

    for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
        assert fail(code, message, method=method, params=cursor).code == -32602
    assert fail(-32603, "The database is down", method="tools/list", params=cursor).code == -32603
    assert fail(0, "The database is down", method="tools/list").code == -32603
    assert fail(0, "no", method="tools/call", params=cursor).code == -32603


def test_data_that_is_nested_too_deep_to_be_looked_into_is_passed_on_as_it_is() -> None:
    deep = Raw(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)

    failure = to_modern_failure(Failure(1, -32050, "no", deep), method="tools/call", params={})
    assert (failure.code, failure.data) == (-32603, deep)
