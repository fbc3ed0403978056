"""Calls that are run again, rounds that pause, exchanges that another process began: told as conversations."""

from typing import Any

import pytest

from gateway.eras.asks import KeyNaming, fingerprint
from gateway.eras.exchange import Exchange
from gateway.eras.policy import AskPolicy
from gateway.eras.questions import Entry
from gateway.eras.reruns import MOST_RUNS, Past
from gateway.eras.states import State
from gateway.eras.vocabulary import (
    AnswerNotTaken,
    Ask,
    RoundPaused,
    SettleElapsed,
    UpstreamBroke,
    UpstreamWithdrew,
    WorkTimedOut,
)
from gateway.errors import Overloaded, UpstreamLost
from gateway.wire.jsonrpc import Raw
from tests.support.asking import (
    CANCEL,
    DECLINE,
    DONE,
    EVERYTHING,
    HINT,
    OK,
    REUSABLE,
    ROOTS,
    SAMPLE,
    USED_UP,
    Conversation,
    accept,
    answered,
    failed,
    form,
    held,
    lost,
    pages_required,
    raw,
    roots,
    sampling,
)

LOST = UpstreamBroke(UpstreamLost("gone"))
FAILED = answered(isError=True)


def entry(key: str, ask: Ask, answer: dict[str, Any]) -> Entry:
    return Entry(key, ask.kind, fingerprint(ask), raw(answer))


# --- another run --------------------------------------------------------------------------------


def test_a_call_that_was_lost_while_held_is_run_again_and_answered_from_the_journal() -> None:
    talk = held(form(0, "a"), may_rerun=True)
    talk.retry({"a": accept(a="x")})
    talk.asked(form(1, "b"))
    talk.on(SettleElapsed())
    talk.on(LOST)

    assert talk.retry({"b": accept(b="y")}) == ["start over"]
    assert (talk.exchange.state, talk.exchange.runs) == (State.CALLING, 2)
    assert talk.asked(form(0, "a")) == [("answer", 0, accept(a="x"))]
    assert talk.asked(form(1, "b")) == [("answer", 1, accept(b="y"))]
    assert talk.on(DONE) == [OK, REUSABLE]


def test_without_leave_a_lost_call_is_an_error() -> None:
    talk = held(form(0, "a"))
    talk.on(LOST)

    assert talk.retry({"a": accept(a="x")}) == [("abort", "upstream_lost"), USED_UP]


@pytest.mark.parametrize("end", [failed(), FAILED])
@pytest.mark.parametrize("withdrawals", [[UpstreamWithdrew(0)], []])
def test_a_server_that_stopped_waiting_is_given_the_late_answer_in_another_run(
    end: Any, withdrawals: list[UpstreamWithdrew]
) -> None:
    """Ours: TypeScript servers withdraw the question, Python servers say nothing."""
    talk = held(form(0, "a"), may_rerun=True)
    for withdrawal in withdrawals:
        talk.on(withdrawal)
    talk.on(end)

    assert talk.retry({"a": accept(a="x")}) == ["start over"]
    assert talk.asked(form(0, "a")) == [("answer", 0, accept(a="x"))]


def test_an_error_is_not_run_again_where_no_late_answer_could_change_it() -> None:
    talk = held(form(0, "a"), may_rerun=True)
    talk.on(UpstreamWithdrew(0))
    talk.on(FAILED)

    assert talk.retry() == [("complete", {"isError": True}), REUSABLE]


def test_a_result_is_not_run_again() -> None:
    talk = held(form(0, "a"), may_rerun=True)
    talk.on(UpstreamWithdrew(0))
    talk.on(DONE)

    assert talk.retry({"a": accept(a="x")}) == [OK, REUSABLE]


def test_a_refusal_of_our_own_is_not_run_again() -> None:
    talk = held(form(0, "a"), may_rerun=True)
    talk.on(UpstreamBroke(Overloaded("no session")))

    assert talk.retry({"a": accept(a="x")}) == [("abort", "overloaded"), USED_UP]


def test_an_answer_that_the_server_did_not_take_is_taken_by_the_next_run() -> None:
    talk = held(form(0, "a"), form(1, "b"), may_rerun=True)
    talk.retry({"a": accept(a="x")})
    talk.on(SettleElapsed())

    assert talk.on(AnswerNotTaken(UpstreamLost("reset"))) == [("answer", 1, CANCEL), "cancel"]
    assert talk.retry({"b": accept(b="y")}) == ["start over"]
    assert talk.asked(form(0, "b")) == [("answer", 0, accept(b="y"))]
    assert talk.asked(form(1, "a")) == [("answer", 1, accept(a="x"))]


def test_only_what_the_journal_does_not_know_reaches_the_client() -> None:
    """DESIGN: the old version asked for `github` and `google`, the new one for `github` and `microsoft`."""
    talk = held(form(0, "github"), form(1, "google"), may_rerun=True)
    talk.on(LOST)
    talk.retry({"github": accept(github="octocat"), "google": accept(google="g")})

    assert talk.asked(form(0, "github"), form(1, "microsoft")) == [
        ("answer", 0, accept(github="octocat")),
        "settle",
    ]
    assert talk.on(SettleElapsed()) == [("hold", "microsoft")]


def test_keys_are_the_same_in_another_run() -> None:
    talk = held(form(0, "a", "b"), form(1, "c", "d"), sampling(2), may_rerun=True, names=["configured"])
    assert list(talk.shown) == ["configured", "elicitation-1", "sampling-1"]
    talk.on(LOST)
    talk.retry()

    talk.asked(form(0, "a", "b"), form(1, "c", "d"), sampling(2))
    assert talk.on(SettleElapsed()) == [("hold", "configured", "elicitation-1", "sampling-1")]


def test_the_same_question_asked_twice_gets_its_two_answers_in_order() -> None:
    talk = held(form(0, "a"), form(1, "a"), may_rerun=True)
    talk.on(LOST)
    talk.retry({"a": accept(a="first"), "a-2": accept(a="second")})

    assert talk.asked(form(0, "a"), form(1, "a"), form(2, "a")) == [
        ("answer", 0, accept(a="first")),
        ("answer", 1, accept(a="second")),
        "settle",
    ]


def test_answers_survive_a_run_that_broke_before_it_asked_for_them() -> None:
    talk = held(form(0, "a"), form(1, "b"), may_rerun=True)
    talk.on(LOST)
    talk.retry({"a": accept(a="x"), "b": accept(b="y")})
    talk.asked(form(0, "a"), form(1, "new"))
    talk.on(SettleElapsed())
    assert {known.key for known in talk.exchange.journal} == {"a", "b"}, "a ticket needs all of them"
    talk.on(LOST)
    talk.retry({"new": accept(new="z")})

    assert talk.asked(form(0, "b"), form(1, "a"), form(2, "new")) == [
        ("answer", 0, accept(b="y")),
        ("answer", 1, accept(a="x")),
        ("answer", 2, accept(new="z")),
    ]


def test_a_need_of_an_earlier_run_is_not_held_against_the_next() -> None:
    talk = held(form(0, "a"), may_rerun=True, can={"elicitation": {}})
    talk.asked(sampling(1))
    talk.on(LOST)
    talk.retry({"a": DECLINE})

    assert talk.on(FAILED) == [("complete", {"isError": True}), REUSABLE]


def test_another_run_asks_what_the_client_that_came_back_can_answer() -> None:
    talk = held(form(0, "a"), may_rerun=True, can={"elicitation": {}})
    talk.on(LOST)
    talk.retry({"a": DECLINE}, can={"sampling": {}})

    assert talk.asked(sampling(0)) == ["settle"]
    assert talk.asked(form(1, "new")) == [("refuse", 1, -32601)]


def test_a_page_is_opened_again_in_another_run_that_wants_it() -> None:
    talk = Conversation(may_rerun=True)
    talk.call()
    talk.on(pages_required("https://a.example"))
    talk.retry({"elicitation-1": {"action": "accept"}})
    talk.asked(form(0, "a"))
    talk.on(SettleElapsed())
    talk.on(LOST)
    talk.retry({"a": DECLINE})

    assert talk.on(pages_required("https://a.example")) == [("hold", "elicitation-1")]


def test_a_malformed_late_answer_is_rejected_and_changes_nothing() -> None:
    talk = held(form(0, "a"), may_rerun=True)
    talk.on(LOST)

    assert talk.retry({"a": {"action": "perhaps"}}) == [("reject", -32602)]
    assert talk.retry({"a": DECLINE}) == ["start over"]


def test_a_call_that_is_lost_again_and_again_is_given_up() -> None:
    talk = held(form(0, "a"), may_rerun=True)
    for run in range(MOST_RUNS - 1):
        talk.on(LOST)
        assert talk.retry() == ["start over"], run
        talk.asked(form(0, "a"))
        talk.on(SettleElapsed())
    talk.on(LOST)

    assert talk.retry() == [("abort", "call_lost"), USED_UP]
    assert lost(talk) == ("asks_differ", True)


# --- what another process began -------------------------------------------------------------------


def test_a_journal_that_came_with_a_ticket_answers_a_new_run() -> None:
    past = Past(round=3, runs=2, journal=[entry("a", form(0, "a"), accept(a="x"))], open_asks={})
    talk = Conversation(past=past)

    assert talk.call() == ["call"]
    assert talk.asked(form(0, "a")) == [("answer", 0, accept(a="x"))]
    assert (talk.exchange.round, talk.exchange.runs) == (3, 2)


def test_a_hold_that_another_process_had_goes_on_where_it_was() -> None:
    past = Past(
        round=2,
        runs=1,
        journal=[entry("first", form(0, "first"), DECLINE)],
        open_asks={"second": form(7, "second"), "roots-1": roots(8)},
    )
    talk = Conversation()
    naming = KeyNaming(HINT, ["first", "second", "third"])
    talk.exchange = Exchange.restored(AskPolicy(), naming, past, may_rerun=False, declared=EVERYTHING)

    assert (talk.exchange.state, talk.exchange.round) == (State.HELD, 2)
    assert talk.asked(form(7, "second")) == [], "the stream that is read again may bring it again"
    told = talk.retry({"second": DECLINE, "roots-1": ROOTS, "first": DECLINE})
    assert told == [("answer", 7, DECLINE), ("answer", 8, ROOTS)]
    assert talk.asked(form(7, "second")) == []
    assert [known.key for known in talk.exchange.journal] == ["first", "second", "roots-1"]
    talk.asked(sampling(9), form(10, "first"))
    assert talk.on(SettleElapsed()) == [("hold", "third", "first-2")]
    talk.retry({"third": SAMPLE, "first-2": DECLINE})
    assert talk.on(DONE) == [OK, REUSABLE]


def test_what_is_asked_before_the_client_of_a_restored_hold_is_heard_waits_for_it() -> None:
    """Ours: its server was read on, and asks before the round that brought the hold back has been taken."""
    talk = Conversation()
    past = Past(round=2, runs=1, journal=[], open_asks={})
    talk.exchange = Exchange.restored(
        AskPolicy(), KeyNaming(HINT), past, may_rerun=False, declared={"elicitation": {}}
    )

    assert talk.asked(form(7, "second")) == []
    talk.retry()
    assert talk.on(SettleElapsed()) == [("hold", "second")]
    assert talk.retry({"second": DECLINE}) == [("answer", 7, DECLINE)]


# --- pauses ------------------------------------------------------------------------------------------


def test_a_round_may_end_though_the_call_goes_on() -> None:
    talk = Conversation()
    talk.call()

    assert talk.on(RoundPaused()) == [("hold",)]
    assert talk.retry() == []
    assert talk.exchange.state is State.CALLING
    assert talk.on(DONE) == [OK, REUSABLE]


def test_a_round_that_pauses_takes_its_open_questions_along() -> None:
    talk = Conversation()
    talk.call()
    talk.asked(form(0, "a"))

    assert talk.on(RoundPaused()) == [("hold", "a")]
    assert talk.on(SettleElapsed()) == []


def test_what_ends_the_call_in_a_pause_is_told_at_the_retry() -> None:
    talk = Conversation()
    talk.call()
    talk.on(RoundPaused())
    talk.on(DONE)

    assert talk.retry() == [OK, REUSABLE]


def test_what_is_held_or_not_yet_sent_is_not_paused() -> None:
    talk = held(form(0, "a"))
    assert talk.on(RoundPaused()) == []

    talk = Conversation(early=[roots(0)])
    talk.call()
    talk.retry({"roots-1": ROOTS})
    assert talk.on(RoundPaused()) == []
    assert talk.on(SettleElapsed()) == ["call"]


def test_the_work_clock_runs_on_while_the_call_is_paused() -> None:
    """Ours: nobody was asked anything, so the time is the server's."""
    talk = Conversation()
    talk.call()
    talk.on(RoundPaused())
    assert talk.exchange.is_working

    assert talk.on(WorkTimedOut()) == ["cancel"]
    [ending, _] = talk.retry()
    assert ending == ("abort", "upstream_timed_out")


def test_a_question_in_a_pause_stops_the_work_clock_and_is_asked_at_the_retry() -> None:
    """Ours: questions asked while no client is attached are delivered at the next retry."""
    talk = Conversation()
    talk.call()
    talk.on(RoundPaused())
    talk.asked(form(0, "a"))
    assert not talk.exchange.is_working

    assert talk.retry() == ["settle"]
    assert talk.on(SettleElapsed()) == [("hold", "a")]


def test_answers_are_vetted_without_a_trace() -> None:
    """Ours: what is refused anyway must not be written down as taken."""
    talk = held(form(0, "a"))
    before = talk.exchange.round
    assert talk.exchange.vet({"a": {"action": Raw(b'"perhaps"')}}) is not None
    assert talk.exchange.vet({}) is None
    assert (talk.exchange.round, talk.exchange.state) == (before, State.HELD)
