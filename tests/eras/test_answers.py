"""A client's `inputResponses`: well formed or not, fitting or not, in today's form and in the first drafts'."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.eras.answers import (
    Fit,
    Inexpressible,
    check,
    is_accepted,
    is_usable,
    parse_responses,
    refusal_in,
    sift,
    to_legacy_answer,
)
from gateway.eras.policy import Unfit
from gateway.eras.vocabulary import Ask
from gateway.errors import InvalidParams
from gateway.wire.jsonrpc import NotJson, Raw, decode, encode
from tests.support.asking import (
    CANCEL,
    DECLINE,
    ROOTS,
    SAMPLE,
    accept,
    ask,
    form,
    page,
    raw,
    roots,
    sampling,
)

NO: dict[str, Any] = {"error": {"code": -1, "message": "User rejected"}}
_LEVELS = 50_000  # more than any version of Python takes: 3.11 ends at 1,000, 3.12 and 3.13 at 10,000
DEEP = Raw(b'{"a":' * _LEVELS + b"1" + b"}" * _LEVELS)
ODD = Raw(b"1e999")


def parsed(value: Any) -> Any:
    """What is made of this `inputResponses`, as plain values."""
    return decode(encode(parse_responses(value if isinstance(value, Raw) else Raw(encode(value)))))


# --- the map ------------------------------------------------------------------------------------------


def test_no_responses_are_no_answers() -> None:
    assert parse_responses(None) == {}
    assert parsed({}) == {}


def test_answers_are_taken_as_they_are() -> None:
    answers = {"form": accept(name="Ada"), "model": SAMPLE, "roots": ROOTS, "": DECLINE}

    assert parsed(answers) == answers


@pytest.mark.requirement("R37")
@pytest.mark.parametrize("value", [None, 7, "text", [], [accept()], True, ODD, DEEP])
def test_responses_that_are_no_object_of_objects_are_malformed(value: Any) -> None:
    with pytest.raises(InvalidParams):
        parsed(value)
    with pytest.raises(InvalidParams):
        parsed({"fine": DECLINE, "key": value})


def test_the_error_names_the_key_but_not_all_of_a_long_one() -> None:
    with pytest.raises(InvalidParams) as caught:
        parsed({"k" * 5000: 7})

    assert caught.value.message.startswith("inputResponses['kkk")
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    "wrapped",
    [
        {"result": accept(name="octocat")},
        {"jsonrpc": "2.0", "id": 1, "result": accept(name="octocat")},
        {"result": accept(name="octocat"), "error": None},
    ],
)
def test_the_first_drafts_form_is_accepted(wrapped: dict[str, Any]) -> None:
    """The seeds' own example: `{"github_login": {"result": {"action": "accept", ...}}}`."""
    assert parsed({"github_login": wrapped}) == {"github_login": accept(name="octocat")}


@pytest.mark.parametrize("wrapped", [NO, {"jsonrpc": "2.0", "id": 1, **NO}, {"result": None, **NO}])
def test_the_first_drafts_way_to_say_no_is_accepted(wrapped: dict[str, Any]) -> None:
    assert parsed({"model": wrapped}) == {"model": NO}


@pytest.mark.parametrize(
    "answer", [{**DECLINE, "result": {"action": "accept"}}, {"result": 7}, {"result": {}}, {"id": 1}, {}]
)
def test_what_only_looks_like_the_first_drafts_form_is_left_alone(answer: dict[str, Any]) -> None:
    assert parsed({"key": answer}) == {"key": answer}


# --- one answer to one question ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (form(0, "a"), accept(a="x")),
        (form(0, "a"), accept(a="x", more=1)),
        (form(0, "a"), DECLINE),
        (form(0, "a"), CANCEL),
        (form(0, "a"), {**DECLINE, "content": None}),
        (form(0), {"action": "accept"}),
        (form(0), {"action": "accept", "content": None}),
        (ask(0, "elicitation/create"), accept(anything="goes")),
        (form(0, "a", requestedSchema=Raw(b'{"type":"object","maxProperties":1e999}')), accept(a=7)),
        (page(0), {"action": "accept"}),
        (page(0), accept(stray=1)),
        (page(None), CANCEL),
        (sampling(0), SAMPLE),
        (sampling(0), SAMPLE | {"stopReason": "endTurn", "content": [SAMPLE["content"]]}),
        (roots(0), ROOTS),
        (roots(0), {"roots": []}),
        (form(0, "a"), NO),
        (sampling(0), NO),
        (roots(0), NO),
    ],
)
def test_answers_that_fit(question: Ask, answer: dict[str, Any]) -> None:
    assert check(question, raw(answer)) is Fit.FITS
    assert is_usable(question, raw(answer))


@pytest.mark.parametrize(
    "answer",
    [accept(), accept(a=7), accept(b="x"), {"action": "accept"}, {"action": "accept", "content": None}],
)
def test_content_that_is_not_what_was_asked_for_does_not_fit(answer: dict[str, Any]) -> None:
    assert check(form(0, "a"), raw(answer)) is Fit.UNFIT
    assert not is_usable(form(0, "a"), raw(answer))


@pytest.mark.requirement("R37")
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (form(0, "a"), {}),
        (form(0, "a"), {"action": "perhaps"}),
        (form(0, "a"), {"action": ["accept"]}),
        (form(0, "a"), {"action": None}),
        (form(0, "a"), {"content": {"a": "x"}}),
        (form(0, "a"), {"action": "accept", "content": "text"}),
        (form(0, "a"), {"action": "accept", "content": ODD}),
        (form(0, "a"), {"action": "accept", "content": DEEP}),
        (form(0, "a"), SAMPLE),
        (page(0), {"action": "opened"}),
        (sampling(0), accept()),
        (sampling(0), {**SAMPLE, "role": None}),
        (sampling(0), {**SAMPLE, "model": 7}),
        (sampling(0), {**SAMPLE, "content": "text"}),
        (sampling(0), {**SAMPLE, "content": ODD}),
        (roots(0), {}),
        (roots(0), {"roots": {}}),
        (roots(0), {"roots": ["file:///"]}),
        (roots(0), {"roots": [{"name": "no uri"}]}),
        (roots(0), {"error": {"code": "no", "message": "number"}}),
        (roots(0), {"error": "text"}),
    ],
)
def test_what_is_no_answer_to_this_kind_of_question_is_malformed(
    question: Ask, answer: dict[str, Any]
) -> None:
    with pytest.raises(InvalidParams):
        check(question, raw(answer))
    assert not is_usable(question, raw(answer))


@pytest.mark.parametrize(
    ("answer", "accepted"), [(accept(), True), (DECLINE, False), (CANCEL, False), (ROOTS, False), (NO, False)]
)
def test_only_accept_is_a_yes(answer: dict[str, Any], accepted: bool) -> None:  # noqa: FBT001
    assert is_accepted(raw(answer)) is accepted


def test_an_error_is_read_with_its_code_and_message() -> None:
    assert refusal_in(raw(NO)) == (-1, "User rejected")
    assert refusal_in(raw({**NO, "action": "accept"})) is None
    assert refusal_in(raw({"error": {"code": True, "message": "?"}})) is None
    assert refusal_in(raw(DECLINE)) is None


json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["action", "content", "role", "uri", "code"]), inner, max_size=3),
    ),
    max_leaves=6,
)
MEMBERS = ["action", "content", "role", "model", "roots", "result", "error"]


@given(
    st.sampled_from([form(0, "a"), page(0), sampling(0), roots(0)]),
    st.dictionaries(st.sampled_from(MEMBERS), st.one_of(json, st.just(ODD), st.just(DEEP)), max_size=4),
)
def test_whatever_a_client_sends_is_an_answer_or_its_mistake(question: Ask, answer: dict[str, Any]) -> None:
    try:
        given_ = parse_responses(Raw(encode({"key": answer})))
        check(question, given_["key"])
    except InvalidParams:
        return


# --- several at once -------------------------------------------------------------------------------------


ASKED = {"a": form(0, "a"), "b": form(1, "b")}


@pytest.mark.parametrize(
    ("unfit", "delivered"), [(Unfit.REASK, {"b"}), (Unfit.FORWARD, {"a", "b"}), (Unfit.ERROR, None)]
)
def test_what_does_not_fit_is_left_out_or_forwarded_or_refused(
    unfit: Unfit, delivered: set[str] | None
) -> None:
    answers = {"a": raw(accept(a=7)), "b": raw(accept(b="x")), "unknown": raw({"x": 1})}

    if delivered is None:
        with pytest.raises(InvalidParams, match="'a'"):
            sift(ASKED, answers, unfit)
    else:
        assert sift(ASKED, answers, unfit).keys() == delivered


@pytest.mark.requirement("R37")
@pytest.mark.parametrize("unfit", Unfit)
def test_one_malformed_answer_spoils_all(unfit: Unfit) -> None:
    with pytest.raises(InvalidParams):
        sift(ASKED, {"a": raw(DECLINE), "b": raw({})}, unfit)


def test_an_answer_is_passed_on_as_the_very_bytes_it_came_in() -> None:
    answer = {"action": Raw(b'"accept"'), "content": Raw(b'{ "a" : "\\u00e9" }')}

    assert sift(ASKED, {"a": answer}, Unfit.REASK)["a"] is answer


# --- for older servers -------------------------------------------------------------------------------------


TEXT = {"type": "text", "text": "Paris"}
IMAGE = {"type": "image", "data": "", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ([TEXT], TEXT),
        ([IMAGE], IMAGE),
        ([TEXT, {"type": "text", "text": "France"}], {"type": "text", "text": "Paris\n\nFrance"}),
        ([], {"type": "text", "text": ""}),
        (TEXT, TEXT),
    ],
)
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_a_sample_is_one_block_for_servers_before_2025_11_25(version: str, content: Any, told: Any) -> None:
    answer = raw(SAMPLE | {"content": content})

    legacy = to_legacy_answer(sampling(0), answer, version)
    assert decode(encode(legacy)) == SAMPLE | {"content": told}


def test_what_the_server_can_read_is_not_touched() -> None:
    several = raw(SAMPLE | {"content": [TEXT, IMAGE]})
    one = raw(accept(content=[1]))

    assert to_legacy_answer(sampling(0), several, "2025-11-25") is several
    assert to_legacy_answer(form(0, "a"), one, "2025-06-18") is one
    assert to_legacy_answer(roots(0), ROOTS, "2024-11-05") is ROOTS


def test_the_odd_values_of_these_tests_are_what_they_are_said_to_be() -> None:
    for value in (ODD, DEEP):
        with pytest.raises(NotJson):
            decode(value)


@pytest.mark.parametrize("skipped", [b'{"type":"text","text":"\xff"}', b"1e999"])
def test_a_sample_that_cannot_be_read_is_refused_at_the_server(skipped: bytes) -> None:
    """Ours: what was skipped while it was read may turn out to be no value at all."""
    answer = {"role": Raw(b'"assistant"'), "content": Raw(skipped)}

    with pytest.raises(Inexpressible, match="cannot be read"):
        to_legacy_answer(sampling(1), answer, "2025-06-18")
