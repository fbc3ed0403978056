"""The ladder, rung by rung. What is spec-mandated cites its requirement; the rest is ours."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.classify import Accepted, Modern, Refusal
from gateway.wire.headers import encode_value
from gateway.wire.jsonrpc import Raw, decode
from tests.support.posted import (
    CAPABILITIES,
    CLIENT_INFO,
    GONE,
    LOG_LEVEL,
    META,
    VERSION,
    call,
    refused,
    request,
    send,
)


def test_a_correct_request_comes_out_complete_in_itself() -> None:
    meta = META | {
        CAPABILITIES: {"elicitation": {"url": {}}, "sampling": {}},
        CLIENT_INFO: {"name": "lab", "version": "1"},
        LOG_LEVEL: "warning",
        "progressToken": 0,
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
    }
    verdict = send(
        request("tools/call", meta, name="echo", arguments={"big": 123456789012345678901234567890}),
        {"Mcp-Method": "tools/call", "Mcp-Name": "echo"},
    )

    assert isinstance(verdict, Modern)
    assert (verdict.id, verdict.method, verdict.name) == (7, "tools/call", "echo")
    assert verdict.capabilities == {"elicitation": {"url": {}}, "sampling": {}}
    assert verdict.client_info == {"name": "lab", "version": "1"}
    assert verdict.log_level == "warning"
    assert verdict.progress_token == 0
    assert bytes(verdict.params["arguments"]) == b'{"big": 123456789012345678901234567890}'
    assert decode(verdict.meta["traceparent"]).startswith("00-")


def test_null_is_how_some_clients_write_that_there_is_none() -> None:
    """Ours, as the reference server (`mcp` 2.3.0) takes it: a first call with a null state is a first call."""
    params = {"name": "echo", "arguments": None, "requestState": None, "inputResponses": None}
    verdict = send(request("tools/call", **params), {"Mcp-Method": "tools/call", "Mcp-Name": "echo"})
    listed = send(request("tools/list", cursor=None), {"Mcp-Method": "tools/list"})

    assert isinstance(verdict, Modern)
    assert verdict.params.keys() == {"name", "_meta"}
    assert isinstance(listed, Modern)
    assert listed.params.keys() == {"_meta"}


@pytest.mark.requirement("R8")
@pytest.mark.parametrize("id_", [0, -1, "", "server-discover-probe-1", 2**53 + 1])
def test_any_string_or_integer_is_an_id(id_: int | str) -> None:
    verdict = send(request() | {"id": id_})

    assert isinstance(verdict, Modern)
    assert verdict.id == id_
    assert type(verdict.id) is type(id_)


@pytest.mark.requirement("R6")
@pytest.mark.parametrize("accept", [GONE, "application/json", "text/event-stream", "text/html"])
def test_a_client_must_accept_both_kinds_of_reply(accept: Any) -> None:
    refused(send(request(), {"Accept": accept}), 406, -32600)


@pytest.mark.requirement("R6")
@pytest.mark.parametrize("accept", ["*/*", "text/event-stream, application/json;q=0.9"])
def test_both_kinds_may_be_accepted_in_any_way(accept: str) -> None:
    assert isinstance(send(request(), {"Accept": accept}), Modern)


def test_accept_may_come_in_two_lines() -> None:
    verdict = send(request(), {"Accept": "application/json"}, ("accept", "text/event-stream"))

    assert isinstance(verdict, Modern)


@pytest.mark.parametrize("type_", [GONE, "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_that_is_not_declared_as_json_is_not_read(type_: Any) -> None:
    """Ours: these are the types that a page may post to a foreign origin without a preflight."""
    refused(send(request(), {"Content-Type": type_}), 415, -32600, None)


def test_a_compressed_body_is_not_read() -> None:
    refusal = refused(send(request(), {"Content-Encoding": "gzip"}), 415, -32600, None)
    assert refusal.message == "The request body must not be compressed", "its Content-Type is as it should be"


def test_a_charset_does_not_matter() -> None:
    assert isinstance(send(request(), {"Content-Type": "application/json; charset=utf-8"}), Modern)


@pytest.mark.requirement("R7")
@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b'{"jsonrpc":"2.0",}', b"[" * 100_000])
def test_what_is_not_json_is_a_parse_error(body: bytes) -> None:
    refused(send(body), 400, -32700, None)


@pytest.mark.requirement("R7")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param([request()], id="a batch"),
        pytest.param([], id="an empty batch"),
        pytest.param("hello", id="a string"),
        pytest.param({"jsonrpc": "2.0", "id": 3, "result": {"action": "accept"}}, id="a posted response"),
        pytest.param({"jsonrpc": "2.0", "id": 3, "error": {"code": 1, "message": ""}}, id="a posted error"),
    ],
)
def test_what_is_not_one_request_or_notification_is_invalid(body: Any) -> None:
    refused(send(body), 400, -32600, None)


@pytest.mark.requirement("R8")
@pytest.mark.parametrize("id_", [None, 1.5, True, {}, []])
def test_an_id_of_another_type_is_invalid(id_: Any) -> None:
    refused(send(request() | {"id": id_}), 400, -32600, None)


def test_a_broken_envelope_is_refused_under_its_id() -> None:
    refused(send({"jsonrpc": "1.0", "id": 7, "method": "tools/list"}), 400, -32600)
    refused(send({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": []}), 400, -32600)


@pytest.mark.requirement("R8")
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Mcp-Method": GONE},
        {"Accept": GONE, "Mcp-Method": GONE, "MCP-Protocol-Version": GONE},
        {"MCP-Protocol-Version": "2025-11-25"},
    ],
)
def test_a_notification_is_accepted_whatever_its_headers(headers: dict[str, Any]) -> None:
    """The TypeScript client posts `notifications/cancelled` without Mcp-Method."""
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}

    assert send(body, headers) == Accepted("notifications/cancelled")


@pytest.mark.requirement("R9")
@pytest.mark.parametrize("header", ["MCP-Protocol-Version", "mcp-method", "Mcp-Name"])
def test_a_routing_header_that_comes_twice_is_refused(header: str) -> None:
    """Two readers on the way might each believe another line."""
    values = {"MCP-Protocol-Version": "2026-07-28", "mcp-method": "tools/call", "Mcp-Name": "echo"}
    body = request("tools/call", name="echo")
    base = {"Mcp-Method": "tools/call", "Mcp-Name": "echo"}

    refused(send(body, base, (header, values[header])), 400, -32020)


@pytest.mark.requirement("R10")
@pytest.mark.parametrize(
    "meta",
    [
        pytest.param(GONE, id="no _meta"),
        pytest.param(None, id="null"),
        pytest.param([], id="a list"),
        pytest.param({}, id="empty"),
        pytest.param({VERSION: "2026-07-28"}, id="no capabilities"),
        pytest.param({CAPABILITIES: {}}, id="no version"),
        pytest.param({VERSION: 20260728, CAPABILITIES: {}}, id="version is a number"),
        pytest.param({VERSION: "2026-07-28", CAPABILITIES: None}, id="capabilities are null"),
        pytest.param({VERSION: "2026-07-28", CAPABILITIES: ["sampling"]}, id="capabilities are a list"),
        pytest.param(META | {CLIENT_INFO: "lab"}, id="client info is a string"),
    ],
)
def test_meta_without_what_every_request_carries_is_invalid(meta: Any) -> None:
    refused(send(request(meta=meta)), 400, -32602)


@pytest.mark.requirement("R10")
def test_a_request_without_params_lacks_meta() -> None:
    refused(send({"jsonrpc": "2.0", "id": 7, "method": "tools/list"}), 400, -32602)


@pytest.mark.requirement("R10")
def test_missing_meta_is_named_before_missing_headers() -> None:
    """The suite sends correct headers here, but a client that sends neither is told the same."""
    refused(send(request(meta=GONE), {"MCP-Protocol-Version": GONE, "Mcp-Method": GONE}), 400, -32602)


@pytest.mark.requirement("R10")
def test_a_client_need_not_say_who_it_is() -> None:
    verdict = send(request())

    assert isinstance(verdict, Modern)
    assert verdict.client_info is None


@pytest.mark.requirement("R11")
@pytest.mark.parametrize("header", [GONE, "", "2025-11-25", "v999.0.0", "2026-07-28, 2026-07-28"])
def test_the_version_header_must_say_what_meta_says(header: Any) -> None:
    refused(send(request(), {"MCP-Protocol-Version": header}), 400, -32020)


@pytest.mark.requirement("R11")
def test_a_client_that_contradicts_itself_hears_that_before_any_word_on_versions() -> None:
    refused(send(request(meta=META | {VERSION: "v999.0.0"})), 400, -32020)


@pytest.mark.requirement("R12")
@pytest.mark.parametrize("header", [GONE, "", "tools/call", "TOOLS/LIST", "Tools/List"])
def test_the_method_header_must_be_the_method_to_the_letter(header: Any) -> None:
    refused(send(request(), {"Mcp-Method": header}), 400, -32020)


@pytest.mark.requirement("R12")
def test_header_names_are_read_in_any_case() -> None:
    headers = {"Mcp-Method": GONE, "MCP-METHOD": "tools/list"}

    assert isinstance(send(request(), headers), Modern)


@pytest.mark.requirement("R13")
@pytest.mark.parametrize(
    ("method", "key"), [("tools/call", "name"), ("prompts/get", "name"), ("resources/read", "uri")]
)
def test_the_name_header_must_be_what_the_request_is_about(method: str, key: str) -> None:
    verdict = call("a://b", "a://b", method, key)
    assert isinstance(verdict, Modern)
    assert verdict.name == "a://b"

    for header in (GONE, "", "a://c", "A://B"):
        refused(call("a://b", header, method, key), 400, -32020)


@pytest.mark.requirement("R13")
def test_a_task_request_needs_the_name_header_too() -> None:
    body = request("tasks/get", taskId="t1")

    refused(send(body, {"Mcp-Method": "tasks/get"}), 400, -32020)
    refused(send(body, {"Mcp-Method": "tasks/get", "Mcp-Name": "t1"}), 404, -32601)


@pytest.mark.requirement("R13")
@pytest.mark.parametrize("header", ["  echo\t", "=?base64?ZWNobw==?="])
def test_white_space_is_trimmed_and_base64_decoded_before_comparing(header: str) -> None:
    assert isinstance(call("echo", header), Modern)


@pytest.mark.requirement("R13")
@pytest.mark.parametrize(
    "header",
    [
        pytest.param("=?base64?ZWNobw?=", id="no padding"),
        pytest.param("=?base64?ZWN*bw==?=", id="bad alphabet"),
        pytest.param("=?BASE64?ZWNobw==?=", id="the marker is case-sensitive"),
        pytest.param("=?base64?/w==?=", id="not UTF-8"),
        pytest.param("ech\xf6", id="not ASCII"),
    ],
)
def test_a_name_that_does_not_decode_strictly_is_refused(header: str) -> None:
    refused(call("echo", header), 400, -32020)


@pytest.mark.requirement("R13")
@given(st.text())
def test_every_name_survives_its_header(name: str) -> None:
    verdict = call(name, encode_value(name))

    assert isinstance(verdict, Modern)
    assert verdict.name == name


@pytest.mark.parametrize("name", [GONE, None, 5, {"a": 1}])
def test_a_call_that_names_nothing_is_invalid_and_with_a_header_contradicts_itself(name: Any) -> None:
    refused(call(name, GONE), 400, -32602)
    refused(call(name, "echo"), 400, -32020)


@pytest.mark.requirement("R14")
@pytest.mark.parametrize("version", ["v999.0.0", "2025-11-25", "2030-01-01", ""])
def test_an_unknown_revision_is_answered_with_those_we_serve(version: str) -> None:
    body = request("unknown/method", META | {VERSION: version})
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": "unknown/method"}

    error = refused(send(body, headers), 400, -32022)
    assert error.data == {"supported": ["2026-07-28"], "requested": version}


@pytest.mark.requirement("R15")
@pytest.mark.parametrize(
    "method",
    [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/result",
        "tasks/list",
        "unknown/method",
    ],
)
def test_removed_and_unknown_methods_are_not_found(method: str) -> None:
    refused(send(request(method), {"Mcp-Method": method}), 404, -32601)


@pytest.mark.requirement("R16")
@pytest.mark.parametrize("level", ["verbose", "INFO", "", None, 3])
def test_an_unknown_log_level_is_invalid(level: Any) -> None:
    refused(send(request(meta=META | {LOG_LEVEL: level})), 400, -32602)


@pytest.mark.parametrize("token", [None, True, 1.5, [], {}])
def test_a_progress_token_is_a_string_or_an_integer(token: Any) -> None:
    refused(send(request(meta=META | {"progressToken": token})), 400, -32602)


def test_a_progress_token_is_an_integer_however_it_is_written() -> None:
    """JSON Schema: 1.0 is one; it comes back as 1."""
    verdict = send(request(meta=META | {"progressToken": 1.0}))

    assert isinstance(verdict, Modern)
    assert (verdict.progress_token, type(verdict.progress_token)) == (1, int)


def test_session_and_event_ids_mean_nothing_to_a_modern_request() -> None:
    plain = send(request())
    with_ids = send(request(), {"Mcp-Session-Id": "s", "Last-Event-ID": "9"})

    assert plain == with_ids


def test_what_one_request_declared_is_forgotten_at_the_next() -> None:
    send(request(meta=META | {CAPABILITIES: {"sampling": {}}, CLIENT_INFO: {"name": "a", "version": "1"}}))
    verdict = send(request())

    assert isinstance(verdict, Modern)
    assert verdict.capabilities == {}
    assert verdict.client_info is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ),
    st.sampled_from(["body", "params", "_meta", "version", "capabilities", "name"]),
)
def test_no_json_in_any_place_makes_it_stumble(value: Any, place: str) -> None:
    body: Any = request("tools/call", name="echo")
    match place:
        case "body":
            body = value
        case "params":
            body["params"] = value
        case "_meta" | "name":
            body["params"][place] = value
        case "version":
            body["params"]["_meta"] = META | {VERSION: value}
        case _:
            body["params"]["_meta"] = META | {CAPABILITIES: value}

    verdict = send(body, {"Mcp-Method": "tools/call", "Mcp-Name": "echo"})

    assert isinstance(verdict, Modern | Refusal | Accepted)


@given(st.binary(max_size=200))
def test_no_bytes_make_it_stumble(body: bytes) -> None:
    assert isinstance(send(body), Modern | Refusal | Accepted)


def test_params_stay_the_bytes_that_came() -> None:
    body = (
        b'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor": "a\\u0062" ,'
        b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{}}}}'
    )

    verdict = send(body)

    assert isinstance(verdict, Modern)
    assert verdict.params["cursor"] == Raw(b'"a\\u0062"')
