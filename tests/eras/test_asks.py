"""Back-channel requests as embedded requests: how they are named, and what a modern client gets to see."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import InputRequiredResult

from gateway.eras.asks import (
    KeyNaming,
    ask_of,
    asks_of_url_failure,
    fingerprint,
    input_request,
    is_url,
    is_well_formed,
)
from gateway.eras.vocabulary import KIND_OF_METHOD, Ask
from gateway.wire.jsonrpc import Failure, Raw, Request, decode, encode
from tests.support.asking import EVERYTHING, HINT, ask, form, page, raw, roots, sampling

NAMING = KeyNaming(HINT)
ODD = Raw(b"1e999")
"""JSON, but no Python value can hold it."""


def name(one: Ask, *, position: int = 0, taken: Any = (), names: Any = ()) -> str:
    return KeyNaming(HINT, names).name(one, position=position, taken=taken)


def seen(one: Ask, capabilities: Any = EVERYTHING) -> Any:
    """What goes out on the wire."""
    return decode(encode(input_request(one, capabilities)))


def failure(data: Any, code: int = -32042) -> Failure:
    return Failure(1, code, "?", data if data is None or isinstance(data, Raw) else Raw(encode(data)))


# --- which requests are asks ------------------------------------------------------------------------


def test_only_the_three_back_channel_methods_are_asks() -> None:
    for method, kind in KIND_OF_METHOD.items():
        assert ask_of(Request(0, method, {})) == Ask(0, kind, method, {})
    assert ask_of(Request(0, "ping", {})) is None
    assert ask_of(Request(0, "Elicitation/create", {})) is None


# --- keys --------------------------------------------------------------------------------------------


def test_a_form_for_one_thing_is_named_after_it() -> None:
    assert name(form(0, "github_login")) == "github_login"


@pytest.mark.parametrize(
    ("one", "key"),
    [
        (form(0, "a", "b"), "elicitation-1"),
        (form(0), "elicitation-1"),
        (page(0), "elicitation-1"),
        (sampling(0), "sampling-1"),
        (roots(0), "roots-1"),
        (form(0, "a", requestedSchema=7), "elicitation-1"),
        (form(0, "a", requestedSchema={"properties": ["a"]}), "elicitation-1"),
        (form(0, "a", requestedSchema=ODD), "elicitation-1"),
        (form(0, ""), "elicitation-1"),
        (form(0, "x" * 1000), "elicitation-1"),
    ],
)
def test_what_has_no_name_of_its_own_is_numbered_by_kind(one: Ask, key: str) -> None:
    assert name(one) == key


def test_the_servers_own_name_comes_first_and_the_configured_one_second() -> None:
    hinted = form(0, "property", _meta={HINT: "hinted"})

    assert name(hinted, names=["configured"]) == "hinted"
    assert name(form(0, "property"), names=["configured"]) == "configured"
    assert name(form(0, "property"), names=["configured"], position=1) == "property"


@pytest.mark.parametrize("hint", [None, 7, "", ["a"], "x" * 1000])
def test_a_hint_that_is_no_name_is_none(hint: Any) -> None:
    assert name(form(0, "property", _meta={HINT: hint})) == "property"


@pytest.mark.parametrize("meta", [None, "text", [], ODD])
def test_a_meta_that_is_no_object_gives_no_hint(meta: Any) -> None:
    assert name(form(0, "property", _meta=meta)) == "property"


def test_roots_never_take_a_tools_configured_name() -> None:
    """Ours: whether the server asks for roots depends on what it was told in earlier sessions."""
    assert name(roots(0), names=["configured"]) == "roots-1"


def test_a_taken_name_is_numbered() -> None:
    assert name(form(0, "a"), taken={"a"}) == "a-2"
    assert name(form(0, "a"), taken={"a", "a-2", "a-3"}) == "a-4"
    assert name(sampling(0), taken={"sampling-1"}) == "sampling-2"
    assert name(form(0, "sampling-1"), taken={"sampling-1"}) == "sampling-1-2"


asks = st.one_of(
    st.builds(form, st.just(0), st.sampled_from(["a", "a-2", "elicitation-1", "roots-1"])),
    st.builds(lambda hint: form(0, "a", "b", _meta={HINT: hint}), st.sampled_from(["a", "sampling-1", ""])),
    st.sampled_from([sampling(0), roots(0), page(0), form(0, "x", "y")]),
)


@pytest.mark.requirement("R34")
@given(st.lists(asks, max_size=20), st.lists(st.sampled_from(["a", "roots-1"]), max_size=3))
def test_no_two_asks_of_an_exchange_have_the_same_key(several: list[Ask], names: list[str]) -> None:
    taken: set[str] = set()
    for position, one in enumerate(several):
        key = name(one, position=position, taken=taken, names=names)
        assert key
        assert key not in taken
        taken.add(key)


# --- what the client sees ----------------------------------------------------------------------------


@pytest.mark.requirement("R34")
def test_an_embedded_request_is_method_and_params_and_nothing_of_the_legacy_envelope() -> None:
    one = form(7, "a", _meta={"x": 1}, task={"ttl": 1}, elicitationId="e", mode=None, progress="kept")

    assert seen(one) == {
        "method": "elicitation/create",
        "params": {
            "message": "?",
            "progress": "kept",
            "requestedSchema": {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": ["a"],
            },
        },
    }


def test_a_schema_goes_out_as_the_very_bytes_it_came_in() -> None:
    schema = Raw(b'{"type":"object", "properties":{"n":{"type":"number","maximum":1.50}}}')

    assert input_request(form(0, requestedSchema=schema), {})["params"]["requestedSchema"] is schema


def test_a_schema_that_nobody_can_read_is_none() -> None:
    schema = Raw(b'{"type":"object", "properties":{"n":{"type":"number","maximum":1e400}}}')

    assert seen(form(0, requestedSchema=schema))["params"]["requestedSchema"] == {
        "type": "object",
        "properties": {},
    }


@pytest.mark.parametrize(
    ("schema", "mended"),
    [
        (None, {"type": "object", "properties": {}}),
        ({}, {"type": "object", "properties": {}}),
        ({"title": "T"}, {"title": "T", "type": "object", "properties": {}}),
        ({"type": "array", "properties": []}, {"type": "object", "properties": {}}),
        ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
    ],
)
def test_a_form_has_what_the_modern_schema_requires_of_it(schema: Any, mended: Any) -> None:
    assert seen(form(0, requestedSchema=schema))["params"]["requestedSchema"] == mended


def test_a_message_that_is_missing_is_empty() -> None:
    assert seen(form(0, "a", message=None))["params"]["message"] == ""
    assert seen(ask(0, "elicitation/create", url="https://x"))["params"] == {
        "mode": "url",
        "url": "https://x",
        "message": "",
    }


def test_roots_are_asked_for_without_parameters() -> None:
    assert seen(ask(0, "roots/list", _meta={}, stray=1)) == {"method": "roots/list", "params": {}}


@pytest.mark.requirement("R35")
@pytest.mark.parametrize(
    ("capabilities", "is_kept"),
    [
        ({"sampling": {"context": {}}}, True),
        ({"sampling": {}}, False),
        ({"sampling": {"context": None}}, False),
        ({"sampling": {"context": False}}, False),
        ({}, False),
    ],
)
def test_context_is_asked_for_only_where_it_was_declared(capabilities: Any, is_kept: bool) -> None:  # noqa: FBT001
    shown = seen(sampling(0, includeContext="thisServer"), capabilities)

    assert ("includeContext" in shown["params"]) is is_kept


def test_a_real_modern_client_accepts_what_we_make_of_each_kind() -> None:
    one = sampling(0, messages=[{"role": "user", "content": {"type": "text", "text": "hi"}}], tools=None)
    requests = {
        "form": seen(form(1, "a")),
        "bare": seen(ask(1, "elicitation/create")),
        "page": seen(page(2)),
        "sampling": seen(one),
        "roots": seen(roots(3)),
    }

    read = InputRequiredResult.model_validate(
        {"resultType": "input_required", "inputRequests": requests, "requestState": "s"}
    )
    assert read.input_requests is not None
    assert set(read.input_requests) == set(requests)


# --- forms and pages ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "is_page"),
    [
        ({"mode": "url", "url": "https://x"}, True),
        ({"url": "https://x"}, True),
        ({"mode": "url"}, True),
        ({"url": None}, False),
        ({"mode": "form", "url": "https://x"}, False),
        ({"mode": None, "url": "https://x"}, True),
        ({"mode": ODD}, False),
        ({}, False),
    ],
)
def test_a_page_is_told_from_a_form_also_by_servers_that_name_no_mode(params: Any, is_page: bool) -> None:  # noqa: FBT001
    assert is_url(ask(0, "elicitation/create", **params)) is is_page


def test_only_elicitations_open_pages() -> None:
    assert not is_url(sampling(0, url="https://x"))


@pytest.mark.parametrize(
    "one",
    [
        form(0, "a"),
        form(0, message=None, requestedSchema=None),
        ask(0, "elicitation/create"),
        page(0),
        sampling(0),
        sampling(0, maxTokens=-1),
        sampling(0, maxTokens=1.5),
        roots(0),
        ask(0, "roots/list", anything=1),
    ],
)
def test_what_every_client_can_show_is_well_formed(one: Ask) -> None:
    assert is_well_formed(one)


@pytest.mark.parametrize(
    "one",
    [
        form(0, "a", message=7),
        form(0, "a", mode=[]),
        form(0, "a", requestedSchema="text"),
        ask(0, "elicitation/create", mode="url"),
        ask(0, "elicitation/create", mode="url", url=7),
        ask(0, "sampling/createMessage"),
        sampling(0, messages={}),
        sampling(0, maxTokens="9"),
        sampling(0, maxTokens=None),
    ],
)
def test_what_would_spoil_a_clients_whole_round_is_malformed(one: Ask) -> None:
    assert not is_well_formed(one)


json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
members = st.dictionaries(
    st.sampled_from(["message", "mode", "url", "requestedSchema", "_meta", "messages", "maxTokens", "tools"]),
    st.one_of(json, st.just(ODD)),
)


@given(st.sampled_from(list(KIND_OF_METHOD)), members)
def test_no_ask_however_odd_brings_us_down(method: str, params: dict[str, Any]) -> None:
    one = Ask(0, KIND_OF_METHOD[method], method, raw(params))

    is_well_formed(one)
    assert name(one)
    assert fingerprint(one)
    shown = input_request(one, {})
    assert shown.keys() == {"method", "params"}
    encode(shown)


# --- -32042 -------------------------------------------------------------------------------------------


def test_each_page_of_a_url_failure_is_an_ask_without_an_id() -> None:
    listed = [
        {"mode": "url", "elicitationId": "1", "url": "https://a", "message": "Log in", "extra": [1]},
        {"url": "https://b"},
    ]
    first, second = asks_of_url_failure(failure({"elicitations": listed}))

    assert (first.id, second.id) == (None, None)
    assert seen(first)["params"] == {"mode": "url", "url": "https://a", "message": "Log in", "extra": [1]}
    assert seen(second)["params"] == {"mode": "url", "url": "https://b", "message": ""}


@pytest.mark.parametrize(
    "data",
    [
        None,
        7,
        [],
        {},
        {"elicitations": {}},
        {"elicitations": [7, None, {}, {"url": 7}, {"message": "?"}, {"url": "https://x", "message": 7}]},
        {"elicitations": [{"mode": "form", "url": "https://x", "message": "?"}]},
        ODD,
        Raw(b'{"elicitations":[{"url":"https://x","message":"?","n":1e999}]}'),
    ],
)
def test_what_no_client_could_open_is_no_page(data: Any) -> None:
    assert asks_of_url_failure(failure(data)) == ()


def test_any_other_error_lists_no_pages() -> None:
    data = {"elicitations": [{"url": "https://a", "message": "?"}]}

    assert asks_of_url_failure(failure(data, code=-32603)) == ()


# --- fingerprints ---------------------------------------------------------------------------------------


def test_a_question_is_the_same_whoever_asks_it_again_under_whatever_id() -> None:
    first = form(0, "a", elicitationId="1", _meta={"progressToken": 1}, task={"ttl": 1})
    again = form("other", "a", elicitationId="2")

    assert fingerprint(first) == fingerprint(again)


def test_another_question_is_another_one() -> None:
    marks = {
        fingerprint(one)
        for one in (
            form(0, "a"),
            form(0, "b"),
            form(0, "a", message="!"),
            sampling(0),
            sampling(0, maxTokens=10),
            roots(0),
        )
    }

    assert len(marks) == 6
