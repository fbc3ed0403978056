"""Sampling requests as legacy servers write them, made so that no strict client turns the round away."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.eras.asks import input_request, is_well_formed
from gateway.eras.modern_samples import most_tokens
from gateway.eras.vocabulary import Ask, Kind
from gateway.wire.jsonrpc import Raw, decode, encode
from tests.support.asking import EVERYTHING, raw
from tests.support.schema_judge import judged

TEXT = {"type": "text", "text": "x"}
USER = {"role": "user", "content": TEXT}
TOOL = {"name": "t", "inputSchema": {"type": "object"}}
USE = {"type": "tool_use", "id": "1", "name": "t", "input": {}}
RESULT = {"type": "tool_result", "toolUseId": "1", "content": [TEXT]}


def shown(**params: Any) -> Any:
    ask = Ask(0, Kind.SAMPLING, "sampling/createMessage", raw({"messages": [USER], "maxTokens": 9} | params))
    assert is_well_formed(ask)
    return decode(encode(input_request(ask, EVERYTHING)))["params"]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"messages": [{"role": "assistant", "content": [USE]}, {"role": "user", "content": [RESULT]}]},
        {"modelPreferences": {"hints": [{"name": "m"}], "costPriority": 0.5}, "temperature": 0.7},
        {"tools": [TOOL], "toolChoice": {"mode": "required"}, "stopSequences": ["."], "x-vendor": None},
    ],
)
def test_what_a_client_can_read_is_shown_as_it_is(params: Any) -> None:
    expected = {"messages": [USER], "maxTokens": 9} | {k: v for k, v in params.items() if v is not None}

    assert shown(**params) == expected


@pytest.mark.requirement("R34")
@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ({**USER, "_meta": None, "content": {**TEXT, "annotations": None, "_meta": None}}, USER),
        ({"role": "system", "content": TEXT}, USER),
        ({"role": "user", "content": "x"}, USER),
        ("x", USER),
        ({"role": "user"}, {"role": "user", "content": {"type": "text", "text": ""}}),
        (
            {"role": "user", "content": {"type": "video", "data": "d"}},
            {"role": "user", "content": {"type": "text", "text": '{"type":"video","data":"d"}'}},
        ),
        (
            {"role": "user", "content": [TEXT, {**TEXT, "annotations": None}]},
            {**USER, "content": [TEXT, TEXT]},
        ),
        (
            {"role": "user", "content": {"type": "image", "data": "data:a/b;base64,aGk", "mimeType": "a/b"}},
            {"role": "user", "content": {"type": "image", "data": "aGk=", "mimeType": "a/b"}},
        ),
        (
            {"role": "user", "content": [{**RESULT, "content": ["x"], "isError": None}]},
            {"role": "user", "content": [RESULT]},
        ),
        (
            {
                "role": "user",
                "content": [{**RESULT, "content": [{"type": "resource", "resource": {"uri": "a:b"}}]}],
            },
            {
                "role": "user",
                "content": [
                    {
                        **RESULT,
                        "content": [{"type": "text", "text": '{"type":"resource","resource":{"uri":"a:b"}}'}],
                    }
                ],
            },
        ),
    ],
)
def test_a_message_is_mended_rather_than_the_round_lost(written: Any, seen: Any) -> None:
    """Ours: both SDKs turn away all questions of a round for one `null` in one of them."""
    assert shown(messages=[USER, written])["messages"] == [USER, seen]
    assert not judged("SamplingMessage", seen)


@pytest.mark.parametrize(
    ("name", "written", "seen"),
    [
        ("modelPreferences", {"hints": [{"name": None}], "costPriority": None}, {"hints": [{}]}),
        ("modelPreferences", {"hints": None, "speedPriority": 2}, {}),
        ("toolChoice", {"mode": None}, {}),
        (
            "tools",
            [{**TOOL, "description": None, "execution": {}}, {"name": "u"}],
            [TOOL, {**TOOL, "name": "u"}],
        ),
        ("maxTokens", 100.0, 100),
        ("maxTokens", 1.5, 1),
        ("maxTokens", 2**63 - 1, 2**53 - 1),
        ("maxTokens", 1e300, 2**53 - 1),
        *((name, odd, None) for name, odd in (("temperature", "0.5"), ("includeContext", "all"))),
        *(
            (name, odd, None)
            for name, odd in (("metadata", "x"), ("stopSequences", [None]), ("systemPrompt", 7))
        ),
    ],
)
def test_a_member_is_shown_without_what_no_client_could_read(name: str, written: Any, seen: Any) -> None:
    params = shown(**{name: written})

    assert params.get(name) == seen
    assert not judged("CreateMessageRequestParams", params)


@pytest.mark.parametrize("odd", [b"1e999", b'"9"', b"true", b"null", b"[]"])
def test_what_is_no_number_sets_no_limit(odd: bytes) -> None:
    assert most_tokens(Raw(odd)) is None


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
block = st.sampled_from([TEXT, USE, RESULT]) | anything
blocks = block | st.lists(block, max_size=3)
message = (
    st.fixed_dictionaries({"role": anything, "content": blocks}, optional={"_meta": anything}) | anything
)


@given(st.lists(message, max_size=3), anything, anything)
def test_whatever_a_server_writes_a_client_can_read(messages: Any, preferences: Any, tools: Any) -> None:
    params = shown(messages=messages, modelPreferences=preferences, tools=tools, toolChoice=preferences)

    assert not judged("CreateMessageRequestParams", params)
