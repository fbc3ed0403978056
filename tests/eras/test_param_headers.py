"""Which parameters may become headers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import find_invalid_x_mcp_header

from gateway.eras import lists
from gateway.eras.param_headers import ParamHeader, of_tools, without_illegal
from gateway.wire.jsonrpc import Raw, decode, encode

LEGAL = {"type": "string", "x-mcp-header": "Region"}


def cleaned(schema: Any) -> Any:
    value = decode(encode(without_illegal(Raw(encode(schema)))))
    assert find_invalid_x_mcp_header(value) is None
    return value


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.requirement("R20")
@pytest.mark.parametrize("kind", ["string", "integer", "boolean"])
def test_a_legal_annotation_stays_and_nothing_is_rewritten(kind: str) -> None:
    schema = Raw(encode(of(a=of(b={"type": kind, "x-mcp-header": "Tenant-Id"}), c={})))

    assert without_illegal(schema) is schema


@pytest.mark.requirement("R20")
@pytest.mark.parametrize(
    "annotated",
    [
        {"type": "number", "x-mcp-header": "A"},
        {"type": "object", "x-mcp-header": "A"},
        {"type": ["string", "null"], "x-mcp-header": "A"},
        {"x-mcp-header": "A"},
        {"type": "string", "x-mcp-header": ""},
        {"type": "string", "x-mcp-header": "A B"},
        {"type": "string", "x-mcp-header": "A\r\nB"},
        {"type": "string", "x-mcp-header": "Ä"},
        {"type": "string", "x-mcp-header": True},
        {"type": "string", "x-mcp-header": None},
    ],
)
def test_a_header_needs_a_token_and_a_plain_type(annotated: dict[str, Any]) -> None:
    bare = {name: value for name, value in annotated.items() if name != "x-mcp-header"}

    assert cleaned(of(a=annotated, b=LEGAL)) == of(a=bare, b=LEGAL)


@pytest.mark.requirement("R20")
def test_of_two_headers_that_differ_in_case_only_the_first_stays() -> None:
    assert cleaned(of(a=LEGAL, b={"type": "string", "x-mcp-header": "REGION"})) == of(
        a=LEGAL, b={"type": "string"}
    )


@pytest.mark.requirement("R20")
@pytest.mark.parametrize(
    ("around", "bare"),
    [
        (lambda inner: of(l={"type": "array", "items": inner}), "items"),
        (lambda inner: of(l={"type": "array", "items": [inner]}), "items as a list"),
        (lambda inner: {"anyOf": [{}, of(a=inner)]}, "anyOf"),
        (lambda inner: {"not": inner}, "not"),
        (lambda inner: {"then": of(a=inner)}, "then"),
        (lambda inner: {"$defs": {"d": inner}}, "$defs"),
        (lambda inner: of(a={"additionalProperties": inner}), "additionalProperties"),
        (lambda inner: inner, "the root"),
    ],
)
def test_a_header_is_reached_through_properties_only(around: Any, bare: str) -> None:
    assert cleaned(around(LEGAL)) == around({"type": "string"}), bare


def test_data_and_names_that_look_like_annotations_are_none() -> None:
    schema = Raw(encode(of(**{"x-mcp-header": {"type": "string"}}) | {"default": {"x-mcp-header": ""}}))

    assert without_illegal(schema) is schema


def test_a_schema_nested_without_end_is_left_alone() -> None:
    schema = Raw(b'{"items":' * 300 + b'{"x-mcp-header":1}' + b"}" * 300)

    assert without_illegal(schema) is schema


KEYS = ["properties", "items", "anyOf", "not", "$defs", "type", "x-mcp-header", "a", "default"]


@given(
    st.recursive(
        st.sampled_from(["string", "number", "A", "a", "", 1, None]),
        lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, max_size=4) | st.lists(inner, max_size=2),
        max_leaves=15,
    )
)
def test_no_client_finds_an_illegal_annotation_afterwards(schema: Any) -> None:
    """Held against the check that the Python client makes."""
    cleaned(schema)


def asked(*tools: dict[str, Any]) -> Any:
    return of_tools(lists.sanitise("tools/list", Raw(encode(tools))))


@pytest.mark.requirement("R21")
def test_a_list_tells_which_arguments_of_which_tools_are_repeated_in_headers() -> None:
    tenant = of(id={"type": "integer", "x-mcp-header": "Tenant-Id"}, name={"type": "string"})

    assert asked(
        {"name": "plain", "inputSchema": of(a={"type": "string"})},
        {"name": "routed", "inputSchema": of(region=LEGAL, tenant=tenant)},
    ) == {"routed": (ParamHeader("Region", ("region",)), ParamHeader("Tenant-Id", ("tenant", "id")))}


def test_a_list_without_annotations_asks_for_nothing() -> None:
    assert asked({"name": "plain", "inputSchema": of(a={"type": "string"})}) == {}


def test_annotations_that_are_taken_out_of_the_list_ask_for_nothing() -> None:
    """Ours: what a client cannot see it is not held to."""
    in_an_array = {"type": "array", "items": LEGAL}

    assert (
        asked({"name": "a", "inputSchema": of(list=in_an_array)}, {"name": "b", "inputSchema": LEGAL}) == {}
    )


def test_a_word_that_only_looks_like_an_annotation_asks_for_nothing() -> None:
    described = {"type": "string", "description": "x-mcp-header", "default": {"x-mcp-header": "Region"}}

    assert asked({"name": "a", "inputSchema": of(text=described)}) == {}
    assert asked({"name": "a", "inputSchema": of(**{"x-mcp-header": {"type": "string"}})}) == {}
