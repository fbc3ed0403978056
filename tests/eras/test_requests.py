"""Modern parameters on their way to a legacy server."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import methods

from gateway.eras.requests import check_cursor, initialize_params, to_legacy_params
from gateway.errors import InvalidParams
from gateway.wire.jsonrpc import Params, Raw, decode, encode

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "lab", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    "io.modelcontextprotocol/logLevel": "debug",
}


def raw(**members: Any) -> Params:
    return {name: Raw(encode(value)) for name, value in members.items()}


def down(
    method: str, params: Params, *, version: str = "2025-11-25", ours: str | None = "gw-1"
) -> dict[str, Any]:
    legacy = to_legacy_params(method, params, version=version, progress_token=ours)
    value = decode(encode(legacy))
    assert isinstance(value, dict)
    return value


def test_meta_that_only_served_the_handshake_disappears() -> None:
    assert down("tools/list", raw(_meta=META, cursor="")) == {"cursor": ""}


def test_trace_context_and_vendor_keys_go_along() -> None:
    kept = {"traceparent": "00-a", "tracestate": "x=1", "baggage": "k=v", "com.example/tenant": {"n": 1}}

    assert down("tools/list", raw(_meta=META | kept)) == {"_meta": kept}


@pytest.mark.parametrize("token", [0, "", 7, "t"])
def test_the_progress_token_is_replaced_by_ours(token: int | str) -> None:
    assert down("tools/list", raw(_meta=META | {"progressToken": token})) == {
        "_meta": {"progressToken": "gw-1"}
    }


def test_no_progress_is_asked_for_that_the_client_did_not_ask_for() -> None:
    assert down("tools/list", raw(_meta=META)) == {}
    assert down("tools/list", raw(_meta=META | {"progressToken": 1}), ours=None) == {}


def test_rounds_and_old_task_requests_stay_between_the_client_and_us() -> None:
    params = raw(
        _meta=META,
        name="book",
        arguments={"inputResponses": 1, "requestState": 2, "task": 3, "_meta": 4},
        inputResponses={"day": {"action": "accept"}},
        requestState="sealed",
        task={"ttl": 1},
    )

    assert down("tools/call", params) == {
        "name": "book",
        "arguments": {"inputResponses": 1, "requestState": 2, "task": 3, "_meta": 4},
    }


@pytest.mark.parametrize(
    ("version", "kept"),
    [("2024-11-05", False), ("2025-03-26", False), ("2025-06-18", True), ("2025-11-25", True)],
)
def test_completion_context_goes_only_to_servers_that_know_it(version: str, *, kept: bool) -> None:
    params = raw(
        ref={"type": "ref/prompt", "name": "p"}, argument={"name": "a", "value": ""}, context={}, _meta=META
    )

    assert ("context" in down("completion/complete", params, version=version)) is kept
    assert "context" in down("tools/call", params, version=version), "elsewhere it is the client's own"


def test_what_needs_no_change_stays_the_same_bytes() -> None:
    params = raw(_meta=META | {"x": 1}) | {
        "name": Raw(b'"\\u0065cho"'),
        "arguments": Raw(b'{"n": 1e400, "b":  1}'),
    }

    legacy = to_legacy_params("tools/call", params, version="2025-11-25", progress_token=None)

    assert legacy["name"] is params["name"]
    assert legacy["arguments"] is params["arguments"]
    assert encode(legacy["_meta"]) == b'{"x":1}'
    assert "_meta" in params, "the client's own parameters are not touched"


def test_meta_that_is_no_object_is_refused() -> None:
    with pytest.raises(InvalidParams):
        down("tools/list", raw(_meta=[]))


@given(st.dictionaries(st.text(), st.integers()))
def test_nothing_of_the_gateways_own_reaches_the_server(extra: dict[str, int]) -> None:
    meta = down("tools/list", raw(_meta=extra | META)).get("_meta", {})

    assert META.keys().isdisjoint(meta)
    assert {name: meta.get(name) for name in extra.keys() - META.keys() - {"progressToken"}} == {
        name: value for name, value in extra.items() if name not in META and name != "progressToken"
    }


def introduce(info: Any, capabilities: dict[str, Any], version: str = "2025-11-25") -> dict[str, Any]:
    params = initialize_params(info, capabilities, version)
    methods.validate_client_request("initialize", version, params)
    return params


def test_the_handshake_introduces_the_client_as_itself() -> None:
    info = {"name": "lab", "version": "1", "title": "Lab", "websiteUrl": None}

    assert introduce(info, {"elicitation": {}, "extensions": {"com.example/x": {}}}) == {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "lab", "version": "1", "title": "Lab"},
    }


@pytest.mark.parametrize("info", [None, {}, {"name": None, "version": 3}])
def test_a_client_without_a_name_gets_one(info: Any) -> None:
    assert introduce(info, {})["clientInfo"] == {"name": "unknown", "version": "0"}


@pytest.mark.parametrize(
    ("odd", "shown"),
    [
        ({"title": 5}, {}),
        ({"websiteUrl": 7, "x": 1}, {"x": 1}),
        ({"icons": [{"src": None}, {"src": "a", "sizes": "any"}]}, {"icons": [{"src": "a"}]}),
    ],
)
def test_a_client_is_introduced_without_what_no_server_could_read(odd: Any, shown: Any) -> None:
    """Ours: real servers refuse the handshake, and with it all calls, for one wrong member."""
    named = {"name": "lab", "version": "1"}

    assert introduce({**named, **odd}, {})["clientInfo"] == {**named, **shown}


@pytest.mark.parametrize(("odd", "shown"), [({"x": None}, {}), ({"x": True}, {"x": {}}), ([], {})])
def test_experiments_are_declared_as_every_server_reads_them(odd: Any, shown: Any) -> None:
    assert introduce(None, {"experimental": odd})["capabilities"] == {"experimental": shown}


@pytest.mark.requirement("R26")
@pytest.mark.parametrize("cursor", ["", "2", "é"])
def test_any_string_is_a_cursor(cursor: str) -> None:
    check_cursor({"cursor": Raw(encode(cursor))})
    check_cursor({})


@pytest.mark.requirement("R26")
@pytest.mark.parametrize("cursor", [None, 2, True, ["2"], {}])
def test_what_is_no_string_is_no_cursor(cursor: Any) -> None:
    with pytest.raises(InvalidParams):
        check_cursor({"cursor": Raw(encode(cursor))})


@pytest.mark.requirement("R26")
@pytest.mark.parametrize("skipped", [b'"\xff"', b"1e999", b"[1e999]"])
def test_a_cursor_that_cannot_be_read_is_the_client_s_mistake(skipped: bytes) -> None:
    """Ours: what was skipped while it was read may turn out to be no text at all."""
    with pytest.raises(InvalidParams):
        check_cursor({"cursor": Raw(skipped)})
