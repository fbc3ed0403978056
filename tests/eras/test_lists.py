"""One bad entry must not cost the client the whole list."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import methods

from gateway.eras.lists import member_of, sanitise
from gateway.wire.jsonrpc import Raw, decode, encode

GOOD_TOOL = {"name": "good", "description": "d", "inputSchema": {"type": "object", "properties": {}}}
METHODS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]


def clean(method: str, items: Any) -> list[Any]:
    """What the client sees, proved acceptable by the types of the Python SDK."""
    raw = Raw(items if isinstance(items, bytes) else encode(items))
    entries = decode(encode(sanitise(method, raw)))
    assert isinstance(entries, list)
    member = member_of(method)
    assert member is not None
    result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", member: entries}
    methods.validate_server_result(method, "2026-07-28", result)
    return entries


def tool(**members: Any) -> dict[str, Any]:
    [entry] = clean("tools/list", [GOOD_TOOL | members])
    assert isinstance(entry, dict)
    return entry


@pytest.mark.parametrize(
    ("method", "items"),
    [
        (
            "tools/list",
            [
                GOOD_TOOL,
                {
                    "name": "full",
                    "title": "T",
                    "description": "",
                    "inputSchema": {"type": "object", "required": ["a"], "$defs": {}, "default": None},
                    "outputSchema": {"type": "object", "$schema": "https://json-schema.org/draft-07/schema#"},
                    "annotations": {"readOnlyHint": True, "title": "x"},
                    "icons": [{"src": "data:,", "sizes": ["any"], "theme": "dark"}],
                    "_meta": {"a": None},
                    "vendor": None,
                },
            ],
        ),
        ("prompts/list", [{"name": "p", "arguments": [{"name": "a", "required": True}]}]),
        (
            "resources/list",
            [
                {
                    "uri": "a://b",
                    "name": "b",
                    "size": 3,
                    "annotations": {
                        "priority": 1,
                        "audience": ["user"],
                        "lastModified": "2025-01-12T15:00:58Z",
                    },
                }
            ],
        ),
        ("resources/templates/list", [{"uriTemplate": "a://{b}", "name": "b"}]),
        ("tools/list", []),
    ],
)
def test_a_clean_list_is_not_touched_at_all(method: str, items: Any) -> None:
    raw = Raw(encode(items))

    assert sanitise(method, raw) is raw
    clean(method, items)


def test_a_good_tool_beside_a_bad_one_keeps_its_bytes() -> None:
    good = b'{ "inputSchema":{"type":"object","maxProperties":123456789012345678901234567890}, "name" : "a"}'

    kept = sanitise("tools/list", Raw(b"[" + good + b',{"name":"b","inputSchema":null}]'))

    assert isinstance(kept, list)
    assert bytes(kept[0]) == good
    assert decode(encode(kept[1])) == {"name": "b", "inputSchema": {"type": "object"}}


@pytest.mark.parametrize("entry", [None, 3, "tool", [], {}, {"name": None}, {"name": 5, "inputSchema": {}}])
def test_a_tool_without_a_name_is_dropped_alone(entry: Any) -> None:
    assert clean("tools/list", [entry, GOOD_TOOL]) == [GOOD_TOOL]


def test_of_two_tools_with_one_name_the_first_stays() -> None:
    assert clean("tools/list", [GOOD_TOOL, GOOD_TOOL | {"description": "other"}]) == [GOOD_TOOL]


def test_nulls_are_left_out() -> None:
    nulls = dict.fromkeys(["title", "description", "annotations", "outputSchema", "icons", "_meta"])
    nested = {"annotations": {"title": None, "readOnlyHint": True}, "icons": [{"src": "x", "mimeType": None}]}

    assert tool(**nulls) == {"name": "good", "inputSchema": GOOD_TOOL["inputSchema"]}
    assert tool(**nested) == GOOD_TOOL | {"annotations": {"readOnlyHint": True}, "icons": [{"src": "x"}]}


@pytest.mark.parametrize(
    ("schema", "mended"),
    [
        (None, {"type": "object"}),
        (True, {"type": "object"}),
        ({}, {"type": "object"}),
        ({"type": "string", "title": "x"}, {"type": "object", "title": "x"}),
        (
            {"properties": {"a": {"type": "string"}}},
            {"properties": {"a": {"type": "string"}}, "type": "object"},
        ),
        ({"type": ["object", "null"], "properties": None, "required": None}, {"type": "object"}),
        ({"type": "object", "$schema": None, "default": None}, {"type": "object", "default": None}),
        ({"type": "object", "required": "a"}, {"type": "object"}),
    ],
)
def test_an_input_schema_always_describes_an_object(schema: Any, mended: Any) -> None:
    assert tool(inputSchema=schema)["inputSchema"] == mended


def test_a_tool_without_an_input_schema_takes_any_arguments() -> None:
    assert clean("tools/list", [{"name": "a"}]) == [{"name": "a", "inputSchema": {"type": "object"}}]


@pytest.mark.parametrize("schema", [None, True, [], "object"])
def test_a_bad_output_schema_is_no_output_schema(schema: Any) -> None:
    assert "outputSchema" not in tool(outputSchema=schema)


def test_bad_annotations_and_icons_go_one_by_one() -> None:
    entry = tool(
        annotations={"readOnlyHint": "yes", "idempotentHint": True, "vendor": None},
        icons=[{"src": "a", "sizes": "48x48"}, {"mimeType": "image/png"}, {"src": "b", "theme": "blue"}],
    )

    assert entry["annotations"] == {"idempotentHint": True, "vendor": None}
    assert entry["icons"] == [{"src": "a"}, {"src": "b"}]
    assert "annotations" not in tool(annotations=[])


def test_execution_is_not_of_this_revision() -> None:
    assert tool(execution={"taskSupport": "optional"}) == GOOD_TOOL


def test_key_order_and_schema_keywords_survive_mending() -> None:
    written = (
        b'{"title":null,"name":"a","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema",'
        b'"type":"object","$defs":{"z":{"$anchor":"z"}},"allOf":[{"if":{},"then":{"maximum":1e999}}],"a":1.0}}'
    )

    [entry] = sanitise("tools/list", Raw(b"[" + written + b"]"))

    assert encode(entry) == written.replace(b'"title":null,', b"")


@pytest.mark.requirement("R20")
def test_an_illegal_header_annotation_is_taken_out_and_the_tool_kept() -> None:
    def schema(annotation: Any) -> dict[str, Any]:
        return {"type": "object", "properties": {"n": {"type": "number"} | annotation}}

    assert tool(inputSchema=schema({"x-mcp-header": "N"}))["inputSchema"] == schema({})


@pytest.mark.requirement("R20")
def test_an_illegal_header_annotation_goes_from_a_schema_that_was_mended_too() -> None:
    assert tool(inputSchema={"x-mcp-header": "A"})["inputSchema"] == {"type": "object"}


def test_prompts_lose_only_their_bad_arguments() -> None:
    prompt = {
        "name": "p",
        "arguments": [{"name": "a", "required": None}, {"description": "b"}],
        "title": None,
    }

    assert clean("prompts/list", [prompt, {"description": "x"}]) == [
        {"name": "p", "arguments": [{"name": "a"}]}
    ]


def test_a_resource_without_a_name_is_named_by_its_title_or_its_address() -> None:
    items = [{"uri": "a://1"}, {"uri": "a://2", "title": "Two", "name": None}, {"name": "no uri"}]

    assert clean("resources/list", items) == [
        {"uri": "a://1", "name": "a://1"},
        {"uri": "a://2", "title": "Two", "name": "Two"},
    ]
    assert clean("resources/templates/list", [{"uriTemplate": "a://{x}"}]) == [
        {"uriTemplate": "a://{x}", "name": "a://{x}"}
    ]


@pytest.mark.parametrize(
    "stamp",
    [
        "2025-01-12",
        "2025-01-12T15:00:58",
        "2025-01-12T15:00Z",
        "2025-13-01T00:00:00Z",
        "2025-02-29T00:00:00Z",
        "2025-04-31T00:00:00Z",
        "2025-01-12T15:00:58Z\n",
        "yesterday",
        None,
        5,
    ],
)
def test_a_time_that_a_client_cannot_read_is_left_out(stamp: Any) -> None:
    """The TypeScript client refuses the whole list for it."""
    entry = {"uri": "a://b", "name": "b", "annotations": {"lastModified": stamp, "priority": 0.5}}

    assert clean("resources/list", [entry])[0]["annotations"] == {"priority": 0.5}


@pytest.mark.parametrize(
    "stamp",
    [
        "2025-01-31T23:59:59Z",
        "2024-02-29T00:00:00.125+14:00",
        "2000-02-29T00:00:00Z",
        "2025-11-30T15:00:58-09:30",
    ],
)
def test_a_time_that_every_client_can_read_stays(stamp: str) -> None:
    listed = Raw(encode([{"uri": "a://b", "name": "b", "annotations": {"lastModified": stamp}}]))

    assert sanitise("resources/list", listed) is listed


@pytest.mark.parametrize("items", [None, {}, "tools", 0])
@pytest.mark.parametrize("method", METHODS)
def test_no_list_is_an_empty_list(method: str, items: Any) -> None:
    """Servers in Go write `null` for it."""
    assert clean(method, items) == []


def test_only_the_four_lists_are_lists() -> None:
    assert [member_of(method) for method in METHODS] == ["tools", "prompts", "resources", "resourceTemplates"]
    assert member_of("tools/call") is None


KEYS = [
    "name",
    "title",
    "uri",
    "uriTemplate",
    "inputSchema",
    "outputSchema",
    "type",
    "properties",
    "annotations",
    "icons",
    "src",
    "arguments",
    "_meta",
    "x-mcp-header",
    "items",
    "execution",
]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("x-mcp-header"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("method", METHODS)
@given(items=st.lists(ANYTHING, max_size=4))
def test_whatever_a_server_lists_the_client_can_take(method: str, items: list[Any]) -> None:
    once = clean(method, items)

    assert clean(method, once) == once
