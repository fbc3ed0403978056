"""Questions and answers, told as conversations: what happened, and what the machine wants done about it."""

from typing import Any

import pytest

from gateway.eras.policy import AskPolicy, Unfit
from gateway.eras.states import State
from gateway.eras.vocabulary import (
    HoldExpired,
    RerunJudged,
    SettleElapsed,
    UpstreamBroke,
    UpstreamWithdrew,
)
from gateway.errors import UpstreamLost
from tests.support.asking import (
    CANCEL,
    DECLINE,
    DONE,
    OK,
    REUSABLE,
    ROOTS,
    SAMPLE,
    USED_UP,
    Conversation,
    Told,
    accept,
    failed,
    form,
    held,
    page,
    roots,
    sampling,
)


def test_a_call_without_questions_is_sent_and_answered_in_one_round() -> None:
    talk = Conversation()

    assert talk.call() == ["call"]
    assert talk.on(DONE) == [OK, REUSABLE]
    assert (talk.exchange.round, talk.exchange.state) == (0, State.DONE)


def test_an_error_of_the_call_is_the_clients_to_hear() -> None:
    talk = Conversation()
    talk.call()

    assert talk.on(failed(-32602)) == [("failed", -32602), REUSABLE]


def test_a_question_waits_a_moment_for_others_and_then_holds_the_call() -> None:
    talk = Conversation()
    talk.call()

    assert talk.asked(form(0, "city")) == ["settle"]
    assert (talk.on(SettleElapsed()), talk.exchange.is_working) == ([("hold", "city")], False)
    told = talk.retry({"city": accept(city="Rome")})
    assert (told, talk.exchange.is_working) == ([("answer", 0, accept(city="Rome"))], True)
    assert talk.on(DONE) == [OK, REUSABLE]


@pytest.mark.requirement("R34")
def test_questions_sent_together_become_one_round_whatever_their_kind() -> None:
    talk = Conversation()
    talk.call()

    assert talk.asked(form(0, "name"), sampling(1), roots(2), page("x")) == ["settle"]
    assert talk.on(SettleElapsed()) == [("hold", "name", "sampling-1", "roots-1", "elicitation-1")]
    assert [request["method"] for request in talk.shown.values()] == [
        "elicitation/create",
        "sampling/createMessage",
        "roots/list",
        "elicitation/create",
    ]
    assert talk.retry(
        {
            "elicitation-1": {"action": "accept"},
            "roots-1": ROOTS,
            "name": accept(name="Ada"),
            "sampling-1": SAMPLE,
        }
    ) == [
        ("answer", 0, accept(name="Ada")),
        ("answer", 1, SAMPLE),
        ("answer", 2, ROOTS),
        ("answer", "x", {"action": "accept"}),
    ]


def test_questions_one_after_the_other_take_a_round_each() -> None:
    talk = held(form(0, "resolution"), names=["resolution", "duplicate_of"])
    talk.retry({"resolution": accept(resolution="Duplicate")})

    assert talk.asked(form(1, "id")) == ["settle"]
    assert talk.on(SettleElapsed()) == [("hold", "duplicate_of")]
    assert talk.retry({"duplicate_of": accept(id="4301")}) == [("answer", 1, accept(id="4301"))]
    assert [(entry.key, entry.kind) for entry in talk.exchange.journal] == [
        ("resolution", "elicitation"),
        ("duplicate_of", "elicitation"),
    ]
    assert talk.exchange.round == 2
    assert talk.on(DONE) == [OK, REUSABLE]
    assert not talk.exchange.journal, "what was said is not kept beyond the end"


def test_ids_that_are_not_true_are_ids_all_the_same() -> None:
    talk = held(form(0, "a"), form("", "b"), form("0", "c"))

    assert talk.retry({"a": DECLINE, "b": DECLINE, "c": DECLINE}) == [
        ("answer", 0, DECLINE),
        ("answer", "", DECLINE),
        ("answer", "0", DECLINE),
    ]


def test_a_question_while_held_goes_into_the_next_round() -> None:
    talk = held(form(0, "a"))

    assert talk.asked(form(1, "b")) == []
    assert talk.retry({"a": DECLINE}) == [("answer", 0, DECLINE), "settle"]
    assert talk.on(SettleElapsed()) == [("hold", "b")]
    assert talk.retry({"b": DECLINE}) == [("answer", 1, DECLINE)]


def test_a_question_that_was_not_shown_cannot_have_been_answered() -> None:
    """Ours: the user never saw it, so whatever has its key is an answer to something else."""
    talk = held(form(0, "a"))
    talk.asked(form(1, "b"))

    assert talk.retry({"a": DECLINE, "b": DECLINE}) == [("answer", 0, DECLINE), "settle"]
    assert talk.on(SettleElapsed()) == [("hold", "b")]


def test_a_malformed_answer_to_what_was_not_shown_is_an_unknown_key() -> None:
    talk = held(form(0, "a"))
    talk.asked(form(1, "b"))

    assert talk.retry({"a": DECLINE, "b": {"nonsense": 1}}) == [("answer", 0, DECLINE), "settle"]


def test_a_client_that_lost_the_questions_is_shown_all_of_them_again() -> None:
    talk = held(form(0, "a"))
    talk.asked(form(1, "b"))

    assert set(talk.exchange.questions().requests) == {"a", "b"}
    assert talk.retry({"b": DECLINE}) == [("answer", 1, DECLINE), "settle"]


def test_the_same_question_delivered_twice_is_asked_and_answered_once() -> None:
    talk = Conversation()
    talk.call()

    assert talk.asked(form(0, "a"), form(0, "a")) == ["settle"]
    assert talk.on(SettleElapsed()) == [("hold", "a")]
    assert talk.asked(form(0, "a")) == []
    talk.retry({"a": DECLINE})
    assert talk.asked(form(0, "a")) == []
    assert talk.exchange.open_asks == {}


def test_a_careless_server_may_use_an_id_again_for_another_question() -> None:
    """Ours: JSON-RPC forbids it; refusing would hang a call that works with lenient clients."""
    talk = held(form(1, "a"))
    talk.retry({"a": DECLINE})

    assert talk.asked(form(1, "b")) == ["settle"]


def test_a_page_asked_for_in_mid_call_is_an_ask_like_any_other() -> None:
    talk = held(page(0))

    assert talk.retry({"elicitation-1": DECLINE}) == [("answer", 0, DECLINE)]


@pytest.mark.requirement("R37")
def test_missing_answers_are_asked_for_again_and_given_ones_are_kept() -> None:
    talk = held(form(0, "a"), sampling(1))

    assert talk.retry({"sampling-1": SAMPLE}) == [("answer", 1, SAMPLE), "settle"]
    assert talk.on(SettleElapsed()) == [("hold", "a")]


@pytest.mark.requirement("R37")
def test_a_retry_without_answers_is_asked_again_at_once() -> None:
    talk = held(form(0, "a"))

    assert talk.retry() == [("hold", "a")]
    assert talk.exchange.round == 2


@pytest.mark.requirement("R37")
def test_unknown_keys_are_ignored() -> None:
    talk = held(form(0, "a"))

    assert talk.retry({"a": DECLINE, "not_requested": {"x": 1}}) == [("answer", 0, DECLINE)]


@pytest.mark.requirement("R37")
@pytest.mark.parametrize("unfit", Unfit)
def test_a_malformed_answer_is_rejected_and_the_hold_is_as_it_was(unfit: Unfit) -> None:
    talk = held(form(0, "a"), form(1, "b"), policy=AskPolicy(unfit=unfit))

    assert talk.retry({"a": DECLINE, "b": {"content": {}}}) == [("reject", -32602)]
    assert (talk.exchange.state, talk.exchange.round) == (State.HELD, 1)
    assert talk.exchange.journal == []
    assert talk.retry({"a": DECLINE, "b": DECLINE}) == [("answer", 0, DECLINE), ("answer", 1, DECLINE)]


def test_an_answer_that_does_not_fit_is_asked_again() -> None:
    talk = held(form(0, "a"), form(1, "b"))

    assert talk.retry({"a": accept(a=7), "b": accept(b="x")}) == [("answer", 1, accept(b="x")), "settle"]
    assert talk.on(SettleElapsed()) == [("hold", "a")]
    assert talk.retry({"a": accept()}) == [("hold", "a")]
    assert talk.retry({"a": accept(a="7")}) == [("answer", 0, accept(a="7"))]


def test_an_answer_that_does_not_fit_can_be_forwarded_for_the_server_to_judge() -> None:
    talk = held(form(0, "a"), policy=AskPolicy(unfit=Unfit.FORWARD))

    assert talk.retry({"a": accept(a=7)}) == [("answer", 0, accept(a=7))]


def test_an_answer_that_does_not_fit_can_be_the_callers_error() -> None:
    talk = held(form(0, "a"), policy=AskPolicy(unfit=Unfit.ERROR))

    assert talk.retry({"a": accept(a=7)}) == [("reject", -32602)]
    assert talk.retry({"a": accept(a="7")}) == [("answer", 0, accept(a="7"))]


@pytest.mark.parametrize("answer", [DECLINE, CANCEL])
def test_decline_and_cancel_are_answers_like_any_other(answer: dict[str, Any]) -> None:
    talk = held(form(0, "a"))

    assert talk.retry({"a": answer}) == [("answer", 0, answer)]
    assert talk.on(DONE) == [OK, REUSABLE]


def test_an_error_in_place_of_an_answer_is_passed_on_as_that_error() -> None:
    """Ours: the first drafts let a client answer any question with a JSON-RPC error."""
    talk = held(sampling(0))

    assert talk.retry({"sampling-1": {"error": {"code": -1, "message": "User rejected"}}}) == [
        ("refuse", 0, -1)
    ]


def test_answers_sent_ahead_are_used_when_their_question_comes() -> None:
    talk = Conversation()

    assert talk.call(city=accept(city="Rome"), unused=DECLINE) == ["call"]
    assert talk.asked(form(0, "city")) == [("answer", 0, accept(city="Rome"))]
    assert talk.exchange.state is State.CALLING
    assert talk.asked(form(1, "city")) == ["settle"], "each is used once"
    assert talk.on(SettleElapsed()) == [("hold", "city-2")]


@pytest.mark.parametrize("ahead", [accept(city=7), {"nonsense": True}, accept()])
def test_an_answer_sent_ahead_that_does_not_fit_is_no_answer(ahead: dict[str, Any]) -> None:
    talk = Conversation()
    talk.call(city=ahead)

    assert talk.asked(form(0, "city")) == ["settle"]


def test_an_answer_sent_ahead_is_used_while_held_too() -> None:
    talk = Conversation()
    talk.call(b=DECLINE)
    talk.asked(form(0, "a"))
    talk.on(SettleElapsed())

    assert talk.asked(form(1, "b")) == [("answer", 1, DECLINE)]
    assert talk.exchange.state is State.HELD


def test_a_question_withdrawn_while_settling_is_never_shown() -> None:
    talk = Conversation()
    talk.call()
    talk.asked(form(0, "a"))

    assert talk.on(UpstreamWithdrew(0)) == []
    assert talk.on(SettleElapsed()) == []
    assert talk.exchange.state is State.CALLING
    assert talk.asked(form(1, "b")) == ["settle"]


def test_one_of_two_questions_withdrawn_while_settling_leaves_the_other() -> None:
    talk = Conversation()
    talk.call()
    talk.asked(form(0, "a"), form(1, "b"))
    talk.on(UpstreamWithdrew(0))

    assert talk.on(SettleElapsed()) == [("hold", "b")]


def test_the_answer_to_a_withdrawn_question_is_not_sent() -> None:
    talk = held(form(0, "a"))
    talk.on(UpstreamWithdrew(0))

    assert talk.retry({"a": accept(a="x")}) == []
    assert talk.exchange.state is State.CALLING
    assert talk.on(DONE) == [OK, REUSABLE]


def test_a_withdrawal_of_something_else_changes_nothing() -> None:
    talk = held(form(0, "a"))

    assert talk.on(UpstreamWithdrew("0")) == []
    assert talk.retry({"a": DECLINE}) == [("answer", 0, DECLINE)]


@pytest.mark.parametrize(
    ("end", "word", "release"),
    [
        (DONE, OK, REUSABLE),
        (failed(-32000), ("failed", -32000), REUSABLE),
        (UpstreamBroke(UpstreamLost("gone")), ("abort", "upstream_lost"), USED_UP),
    ],
)
def test_what_ends_the_call_while_held_waits_for_the_retry(end: Any, word: Told, release: Told) -> None:
    talk = held(form(0, "a"))
    talk.on(UpstreamWithdrew(0))

    assert talk.on(end) == []
    assert talk.exchange.state is State.HELD
    assert talk.retry({"a": DECLINE}) == [word, release]


def test_the_questions_of_a_call_that_ended_while_held_are_closed_with_it() -> None:
    """Ours: Python servers stop waiting without a word. Roots are the session's, and may still be answered."""
    talk = held(form(0, "a"), sampling(1), roots(2))

    assert talk.on(DONE) == [("answer", 0, CANCEL), ("refuse", 1, -1)]
    told = talk.retry({"a": DECLINE, "sampling-1": SAMPLE, "roots-1": ROOTS})
    assert told == [("answer", 2, ROOTS), OK, USED_UP]


def test_the_first_end_of_a_call_is_the_one_that_counts() -> None:
    talk = held(form(0, "a"))
    talk.on(DONE)
    talk.on(UpstreamBroke(UpstreamLost("then the session broke")))

    assert talk.retry() == [OK, USED_UP]


def test_a_question_that_the_call_left_behind_is_cancelled_and_the_session_not_used_again() -> None:
    talk = Conversation()
    talk.call()
    talk.asked(form(0, "a"), sampling(1))

    assert talk.on(DONE) == [OK, ("answer", 0, CANCEL), ("refuse", 1, -1), USED_UP]


def test_roots_stay_with_no_session_that_has_other_questions_open() -> None:
    talk = Conversation(early=[roots(0), form(1, "a")])
    talk.call()

    assert talk.on(HoldExpired()) == [("answer", 1, CANCEL), ("refuse", 0, -1), USED_UP]


def test_roots_that_nobody_needed_for_the_call_stay_with_the_session() -> None:
    talk = Conversation()
    talk.call()
    talk.asked(roots(0))

    assert talk.on(DONE) == [OK, ("release", "reusable", 0)]


def test_roots_do_not_stay_with_a_session_that_is_not_used_again() -> None:
    talk = Conversation()
    talk.call()
    talk.asked(roots(0))

    assert talk.on(UpstreamBroke(UpstreamLost("gone"))) == ["seek rerun"]
    assert talk.on(RerunJudged(is_allowed=False)) == [("abort", "upstream_lost"), USED_UP]
