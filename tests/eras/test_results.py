"""Legacy results on their way to a modern client, each proved acceptable by the types of the Python SDK."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import methods

from gateway.eras.results import CACHEABLE_METHODS, to_modern_result
from gateway.errors import UpstreamSpokeNonsense
from gateway.wire.jsonrpc import Raw, decode, encode

SERVER = {"name": "crm", "version": "3", "title": "CRM"}
RESULTS: dict[str, dict[str, Any]] = {
    "tools/list": {"tools": [{"name": "a", "inputSchema": {"type": "object"}}], "nextCursor": ""},
    "tools/call": {
        "content": [{"type": "text", "text": "hi"}],
        "isError": True,
        "structuredContent": {"a": None},
    },
    "prompts/list": {"prompts": [{"name": "a"}]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]},
    "resources/list": {"resources": [{"uri": "a://b", "name": "b"}]},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": [{"uri": "a://b", "blob": "AA=="}]},
    "completion/complete": {"completion": {"values": ["a"], "total": 1, "hasMore": False}},
}


def up(method: str, result: Any, *, version: str = "2025-11-25", server: Any = SERVER) -> dict[str, Any]:
    raw = Raw(result if isinstance(result, bytes) else json.dumps(result).encode())
    modern = to_modern_result(
        method, raw, server_info=server, ttl_ms=250, cache_scope="private", version=version
    )
    value = decode(encode(modern))
    assert isinstance(value, dict)
    methods.validate_server_result(method, "2026-07-28", value)
    return value


@pytest.mark.requirement("R22")
@pytest.mark.requirement("R23")
@pytest.mark.requirement("R24")
@pytest.mark.parametrize("method", RESULTS)
def test_a_good_result_gets_its_stamps_and_is_otherwise_the_same(method: str) -> None:
    stamps: dict[str, Any] = {
        "resultType": "complete",
        "_meta": {"io.modelcontextprotocol/serverInfo": SERVER},
    }
    if method in CACHEABLE_METHODS:
        stamps |= {"ttlMs": 250, "cacheScope": "private"}

    assert up(method, RESULTS[method]) == RESULTS[method] | stamps


@pytest.mark.requirement("R24")
def test_six_results_carry_caching_hints() -> None:
    assert CACHEABLE_METHODS - RESULTS.keys() == {"server/discover"}
    assert RESULTS.keys() - CACHEABLE_METHODS == {"tools/call", "prompts/get", "completion/complete"}


def test_members_that_need_no_change_stay_the_same_bytes() -> None:
    content = b'[ {"text":"\\u0061", "type":"text", "n":123456789012345678901234567890} ]'
    structured = b'{"price": 1.10, "id": 98765432109876543210}'

    result = to_modern_result(
        "tools/call",
        Raw(b'{"structuredContent":' + structured + b',"content":' + content + b"}"),
        server_info=None,
        ttl_ms=0,
        cache_scope="private",
        version="2025-11-25",
    )

    assert bytes(result["content"]) == content
    assert bytes(result["structuredContent"]) == structured
    assert list(result) == ["resultType", "structuredContent", "content"]


def test_the_servers_own_meta_is_kept_beside_our_stamp() -> None:
    meta = {"com.example/cost": 3, "io.modelcontextprotocol/related-task": {"taskId": "t"}, "x": None}

    assert up("tools/call", RESULTS["tools/call"] | {"_meta": meta})["_meta"] == {
        "com.example/cost": 3,
        "x": None,
        "io.modelcontextprotocol/serverInfo": SERVER,
    }


def test_without_a_server_name_there_is_no_empty_meta() -> None:
    assert "_meta" not in up("tools/call", {"content": [], "_meta": None}, server=None)


@pytest.mark.requirement("R22")
def test_a_legacy_server_cannot_speak_in_modern_members() -> None:
    """They would be read as ours, though they can mean nothing of the kind."""
    smuggled = {
        "resultType": "input_required",
        "inputRequests": {"a": {"method": "roots/list"}},
        "requestState": "x",
        "ttlMs": -1,
        "cacheScope": "public",
    }

    for method, result in RESULTS.items():
        assert up(method, smuggled | result) == up(method, result)


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (None, []),
        ({"type": "text", "text": "x"}, [{"type": "text", "text": "x"}]),
        ("plain", [{"type": "text", "text": "plain"}]),
        (
            [{"type": "text", "text": "x", "annotations": None, "_meta": None}],
            [{"type": "text", "text": "x"}],
        ),
        (
            [{"type": "text", "text": "x", "annotations": {"audience": ["robot"], "priority": 1}}],
            [{"type": "text", "text": "x", "annotations": {"priority": 1}}],
        ),
        (
            [{"type": "resource", "resource": {"uri": "a://b", "text": "t", "mimeType": None}}],
            [{"type": "resource", "resource": {"uri": "a://b", "text": "t"}}],
        ),
        (
            [{"type": "resource_link", "uri": "a://b", "name": "b", "size": None}],
            [{"type": "resource_link", "uri": "a://b", "name": "b"}],
        ),
        ([{"type": "video", "n": 1}], [{"type": "text", "text": '{"type": "video", "n": 1}'}]),
        (
            [{"type": "image", "data": "AA=="}],
            [{"type": "text", "text": '{"type": "image", "data": "AA=="}'}],
        ),
        (
            [{"type": "image", "data": "data:image/png;base64,aGk", "mimeType": "image/png", "x": 1}],
            [{"type": "image", "data": "aGk=", "mimeType": "image/png", "x": 1}],
        ),
        (
            [{"type": "audio", "data": "!", "mimeType": "audio/wav"}],
            [{"type": "text", "text": '{"type": "audio", "data": "!", "mimeType": "audio/wav"}'}],
        ),
        (
            [{"type": "resource", "resource": {"uri": "a://b", "blob": "-_-_"}}],
            [{"type": "resource", "resource": {"uri": "a://b", "blob": "+/+/"}}],
        ),
        (
            [{"type": "resource", "resource": {"uri": "a://b", "blob": "!"}}],
            [{"type": "text", "text": '{"type": "resource", "resource": {"uri": "a://b", "blob": "!"}}'}],
        ),
        (["bare"], [{"type": "text", "text": "bare"}]),
        (
            [{"type": "resource", "resource": {"uri": "a://b"}}],
            [{"type": "text", "text": '{"type": "resource", "resource": {"uri": "a://b"}}'}],
        ),
        (
            [{"type": "resource", "annotations": None, "resource": {"uri": "a://b", "text": None}}],
            [
                {
                    "type": "text",
                    "text": '{"type": "resource", "annotations": null, '
                    '"resource": {"uri": "a://b", "text": null}}',
                }
            ],
        ),
    ],
)
def test_tool_content_that_a_client_would_refuse_is_mended(content: Any, shown: list[Any]) -> None:
    assert up("tools/call", {"content": content})["content"] == shown


def test_a_tool_result_without_content_has_empty_content() -> None:
    assert up("tools/call", {})["content"] == []
    assert up("tools/call", {"content": [], "isError": None, "structuredContent": None}).keys() == {
        "resultType",
        "content",
        "_meta",
    }
    assert "isError" not in up("tools/call", {"content": [], "isError": "yes"})


def test_the_oldest_tool_results_are_shown_as_text() -> None:
    assert up("tools/call", {"toolResult": {"a": 1}}, version="2024-11-05")["content"] == [
        {"type": "text", "text": '{"a": 1}'}
    ]
    assert up("tools/call", {"toolResult": "hi"}, version="2024-11-05")["content"] == [
        {"type": "text", "text": "hi"}
    ]
    assert up("tools/call", {"toolResult": "hi"}, version="2025-03-26")["toolResult"] == "hi"


def test_prompt_messages_are_mended_one_by_one() -> None:
    messages = [
        {"role": "assistant", "content": {"type": "text", "text": "x", "annotations": None}},
        {"role": "system", "content": "plain"},
        {"role": "user"},
        "bare",
        {"role": "user", "content": {"type": "resource", "resource": {"uri": "a://b"}}},
    ]

    assert up("prompts/get", {"messages": messages, "description": None})["messages"] == [
        {"role": "assistant", "content": {"type": "text", "text": "x"}},
        {"role": "user", "content": {"type": "text", "text": "plain"}},
        {"role": "user", "content": {"type": "text", "text": ""}},
        {"role": "user", "content": {"type": "text", "text": "bare"}},
        {
            "role": "user",
            "content": {"type": "text", "text": '{"type": "resource", "resource": {"uri": "a://b"}}'},
        },
    ]
    assert up("prompts/get", {"messages": None})["messages"] == []


def test_resource_contents_always_hold_something() -> None:
    contents = [
        {"uri": "a://b", "text": "t", "mimeType": None},
        {"uri": "a://c"},
        {"uri": "a://d", "text": None},
        {"uri": "a://e", "blob": "aGk"},
        {"uri": "a://f", "blob": "not base64"},
        {"uri": "a://g", "text": "t", "blob": "!"},
    ]

    assert up("resources/read", {"contents": contents})["contents"] == [
        {"uri": "a://b", "text": "t"},
        {"uri": "a://c", "text": ""},
        {"uri": "a://d", "text": ""},
        {"uri": "a://e", "blob": "aGk="},
        {"uri": "a://f", "text": "not base64"},
        {"uri": "a://g", "text": "t"},
    ]


@pytest.mark.parametrize(
    "result", [{}, {"contents": None}, {"contents": [{"text": "whose?"}]}, {"contents": [3]}]
)
def test_a_read_that_brings_nothing_is_no_success(result: Any) -> None:
    """An empty `contents` made up by us would say that the resource exists."""
    with pytest.raises(UpstreamSpokeNonsense):
        up("resources/read", result)


@pytest.mark.parametrize(
    ("completion", "shown"),
    [
        (None, {"values": []}),
        ({"values": None, "total": None, "hasMore": None}, {"values": []}),
        ({"values": ["a"], "total": 2**63 - 1}, {"values": ["a"]}),
        ({"values": ["a", 1, None]}, {"values": ["a"]}),
        ({"values": [str(n) for n in range(150)]}, {"values": [str(n) for n in range(100)], "hasMore": True}),
    ],
)
def test_completions_fit_what_clients_accept(completion: Any, shown: Any) -> None:
    """The TypeScript client refuses more than a hundred."""
    assert up("completion/complete", {"completion": completion})["completion"] == shown


@pytest.mark.requirement("R26")
def test_an_empty_cursor_is_a_cursor_and_null_is_none() -> None:
    assert up("tools/list", {"tools": [], "nextCursor": ""})["nextCursor"] == ""
    assert "nextCursor" not in up("tools/list", {"tools": [], "nextCursor": None})
    assert "nextCursor" not in up("tools/list", {"tools": [], "nextCursor": 5})


@pytest.mark.requirement("R26")
def test_tools_stay_in_the_servers_order() -> None:
    names = ["z", "a", "m"]
    tools = [{"name": name, "inputSchema": {}} for name in names]

    assert [tool["name"] for tool in up("tools/list", {"tools": tools})["tools"]] == names


@pytest.mark.parametrize("result", [None, [], "ok", 1])
@pytest.mark.parametrize("method", RESULTS)
def test_what_is_no_object_is_no_result(method: str, result: Any) -> None:
    with pytest.raises(UpstreamSpokeNonsense):
        up(method, result)


KEYS = [
    "content",
    "messages",
    "contents",
    "completion",
    "values",
    "tools",
    "prompts",
    "resources",
    "type",
    "text",
    "uri",
    "role",
    "name",
    "data",
    "mimeType",
    "resource",
    "annotations",
    "_meta",
    "isError",
    "structuredContent",
    "description",
    "nextCursor",
    "audience",
    "blob",
]


@pytest.mark.parametrize("method", RESULTS)
@given(
    result=st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.sampled_from(["text", "image", "resource", "user", ""]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
        max_leaves=12,
    )
)
def test_whatever_a_server_answers_the_client_can_take_or_hears_why_not(method: str, result: Any) -> None:
    try:
        up(method, result)
    except UpstreamSpokeNonsense:
        assert method == "resources/read" or not isinstance(result, dict)
