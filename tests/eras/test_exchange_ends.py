"""How exchanges end when not all is well: capabilities, clocks, clients that leave, servers that break."""

from typing import Any

import pytest

from gateway.eras.exchange import MAX_ROUNDS
from gateway.eras.policy import AskPolicy, Disposition
from gateway.eras.questions import MOST_HEARD, MOST_OPEN
from gateway.eras.states import State
from gateway.eras.vocabulary import (
    Abort,
    AnswerNotTaken,
    ClientLeft,
    Event,
    HoldExpired,
    RerunJudged,
    SessionChanged,
    SettleElapsed,
    UpstreamAsked,
    UpstreamBroke,
    UpstreamWithdrew,
    WorkTimedOut,
)
from gateway.errors import UpstreamLost, UpstreamRefused, UpstreamTimedOut, UpstreamUnreachable
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
    ask,
    failed,
    form,
    held,
    lost,
    needs,
    pages_required,
    roots,
    sampling,
)


@pytest.mark.requirement("R18", "R35")
@pytest.mark.parametrize("end", [answered(isError=True), failed()])
def test_a_call_that_fails_of_an_undeclared_capability_says_which(end: Any) -> None:
    talk = Conversation(can={"roots": {}})
    talk.call()

    assert talk.asked(form(0, "a"), sampling(1)) == [("refuse", 0, -32601), ("refuse", 1, -32601)]
    assert talk.on(end) == [("abort", "capability_missing"), REUSABLE]
    assert needs(talk) == {"elicitation": {"form": {}}, "sampling": {}}


def test_a_call_that_succeeds_without_the_undeclared_capability_is_a_success() -> None:
    talk = Conversation(can={})
    talk.call()
    talk.asked(form(0, "a"))

    assert talk.on(DONE) == [OK, REUSABLE]


def test_a_tool_that_fails_by_itself_is_no_missing_capability() -> None:
    talk = Conversation()
    talk.call()

    assert talk.on(answered(isError=True)) == [("complete", {"isError": True}), REUSABLE]


def test_a_result_that_cannot_be_looked_into_is_passed_on() -> None:
    talk = Conversation(can={})
    talk.call()
    talk.asked(form(0, "a"))

    told = talk.exchange.receive(type(DONE)(Raw(b"[" * 5000)))
    assert [type(command).__name__ for command in told] == ["Complete", "Release"]


def test_a_call_that_failed_of_a_capability_while_held_says_so_at_the_retry() -> None:
    talk = held(form(0, "a"), can={"elicitation": {}})
    talk.asked(sampling(1))

    assert talk.on(answered(isError=True)) == [("answer", 0, CANCEL)]
    assert talk.retry({"a": DECLINE}) == [("abort", "capability_missing"), USED_UP]


@pytest.mark.requirement("R35", "R38")
def test_a_later_round_is_not_asked_what_its_own_request_does_not_declare() -> None:
    talk = held(form(0, "a"), sampling(1))
    talk.asked(sampling(2))

    assert talk.retry({}, can={"elicitation": {}}) == [
        ("refuse", 1, -32601),
        ("refuse", 2, -32601),
        ("hold", "a"),
    ]
    talk.retry({"a": DECLINE}, can={"elicitation": {}})
    assert talk.on(failed()) == [("abort", "capability_missing"), REUSABLE]
    assert needs(talk) == {"sampling": {}}


@pytest.mark.requirement("R38")
def test_what_was_answered_counts_even_if_the_retry_declares_it_no_more() -> None:
    talk = held(sampling(0))

    assert talk.retry({"sampling-1": SAMPLE}, can={}) == [("answer", 0, SAMPLE)]


@pytest.mark.requirement("R38")
def test_what_a_later_round_declares_may_be_asked_then() -> None:
    talk = held(form(0, "a"), can={"elicitation": {}})
    assert talk.asked(sampling(1)) == [("refuse", 1, -32601)]
    talk.retry({"a": DECLINE}, can=EVERYTHING)

    assert talk.asked(sampling(2)) == ["settle"]


def test_a_page_that_the_retry_cannot_open_any_more_ends_the_call() -> None:
    talk = Conversation()
    talk.call()
    talk.on(pages_required("https://a.example"))

    assert talk.retry({}, can={"elicitation": {}}) == [("abort", "capability_missing"), REUSABLE]


def test_what_no_client_could_show_is_refused() -> None:
    talk = Conversation()
    talk.call()

    assert talk.asked(ask(0, "sampling/createMessage", messages="none")) == [("refuse", 0, -32602)]
    assert talk.on(failed(-32000)) == [("failed", -32000), REUSABLE], "that is no missing capability"


def test_a_hold_that_expires_cancels_what_it_can_and_then_the_call() -> None:
    talk = held(form(0, "a"), sampling(1), roots(2))

    assert talk.on(HoldExpired()) == [
        ("answer", 0, CANCEL),
        ("refuse", 1, -1),
        ("refuse", 2, -1),
        "cancel",
        USED_UP,
    ]
    assert lost(talk) == ("hold_expired", True)


def test_an_outcome_that_nobody_came_for_stays_the_outcome() -> None:
    talk = held(form(0, "a"))
    talk.on(UpstreamWithdrew(0))
    talk.on(DONE)

    assert talk.on(HoldExpired()) == [REUSABLE]
    assert talk.exchange.outcome is not None
    assert type(talk.exchange.outcome).__name__ == "Complete"


def test_an_upstream_that_works_too_long_is_cancelled() -> None:
    talk = Conversation()
    talk.call()

    assert talk.on(WorkTimedOut()) == [("abort", "upstream_timed_out"), "cancel", USED_UP]


def test_time_that_runs_out_while_settling_cancels_the_questions_too() -> None:
    talk = Conversation()
    talk.call()
    talk.asked(form(0, "a"))

    assert talk.on(WorkTimedOut()) == [
        ("abort", "upstream_timed_out"),
        ("answer", 0, CANCEL),
        "cancel",
        USED_UP,
    ]


def test_time_that_runs_out_before_the_call_cancels_nothing() -> None:
    talk = Conversation(early=[roots(0)])
    talk.call()
    talk.retry({"roots-1": ROOTS})

    assert talk.on(WorkTimedOut()) == [("abort", "upstream_timed_out"), REUSABLE]


@pytest.mark.parametrize("late", [WorkTimedOut(), ClientLeft(), SettleElapsed()])
def test_a_hold_cares_for_no_clock_but_its_own_and_for_no_client_that_is_gone(late: Any) -> None:
    talk = held(form(0, "a"))

    assert talk.on(late) == []
    assert talk.exchange.state is State.HELD


@pytest.mark.requirement("R33")
def test_a_client_that_leaves_while_the_call_runs_has_cancelled_it() -> None:
    talk = Conversation()
    talk.call()

    assert talk.on(ClientLeft()) == ["cancel", USED_UP]
    assert lost(talk) == ("cancelled", True)


@pytest.mark.requirement("R33")
def test_a_client_that_leaves_while_questions_settle_has_cancelled_them_too() -> None:
    talk = Conversation()
    talk.call()
    talk.asked(sampling(0), form(1, "a"))

    assert talk.on(ClientLeft()) == [("refuse", 0, -1), ("answer", 1, CANCEL), "cancel", USED_UP]


@pytest.mark.requirement("R33")
def test_a_client_that_leaves_in_a_later_round_has_cancelled_the_call() -> None:
    talk = held(form(0, "a"))
    talk.retry({"a": DECLINE})

    assert talk.on(ClientLeft()) == ["cancel", USED_UP]


@pytest.mark.requirement("R33")
def test_a_client_that_leaves_before_the_call_leaves_the_session_as_it_was() -> None:
    talk = Conversation(early=[roots(0)])
    talk.call()
    talk.retry({"roots-1": ROOTS})
    talk.asked(roots(1))

    assert talk.on(ClientLeft()) == [("release", "reusable", 1)]
    assert lost(talk) == ("cancelled", False)


@pytest.mark.parametrize(
    "late",
    [
        UpstreamAsked(form(9, "late")),
        UpstreamWithdrew(9),
        DONE,
        failed(),
        pages_required("https://a.example"),
        UpstreamBroke(UpstreamLost("late")),
        AnswerNotTaken(UpstreamLost("late")),
        SessionChanged(),
        SettleElapsed(),
        HoldExpired(),
        WorkTimedOut(),
        ClientLeft(),
    ],
)
def test_after_the_last_word_nothing_more_is_said(late: Any) -> None:
    talk = Conversation()
    talk.call()
    talk.on(DONE)

    assert talk.on(late) == []


def test_a_call_that_breaks_ends_the_session_and_owes_its_questions_nothing() -> None:
    talk = Conversation()
    talk.call()
    talk.asked(form(0, "a"))

    assert talk.on(UpstreamBroke(UpstreamLost("reset"))) == ["seek rerun"]
    assert talk.on(RerunJudged(is_allowed=False)) == [("abort", "upstream_lost"), USED_UP]


def test_a_call_that_breaks_while_its_client_listens_is_run_again_where_that_does_no_harm() -> None:
    """Ours (replay): what was answered is answered from the journal, and only what is new is asked."""
    talk = held(form(0, "a"))
    talk.retry({"a": accept(a="x")})
    assert talk.on(UpstreamBroke(UpstreamLost("reset"))) == ["seek rerun"]
    assert talk.asked(form(1, "b")) == [], "an echo of the session that is lost"

    assert talk.on(RerunJudged(is_allowed=True)) == ["start over"]
    assert talk.asked(form(0, "a")) == [("answer", 0, accept(a="x"))]
    assert talk.asked(form(1, "b")) == ["settle"]
    assert talk.on(SettleElapsed()) == [("hold", "b")]
    assert talk.exchange.runs == 2


def test_a_call_that_always_breaks_is_run_four_times_and_no_more() -> None:
    """Ours (replay): the bound is that of every other second run."""
    talk = Conversation()
    talk.call()
    for _ in range(3):
        assert talk.on(UpstreamBroke(UpstreamLost("reset"))) == ["seek rerun"]
        assert talk.on(RerunJudged(is_allowed=True)) == ["start over"]
    assert talk.on(UpstreamBroke(UpstreamLost("reset"))) == [("abort", "upstream_lost"), USED_UP]


@pytest.mark.parametrize(("event", "word"), [(ClientLeft(), "call_lost"), (WorkTimedOut(), "upstream_lost")])
def test_nothing_is_run_again_for_a_client_that_left_or_when_time_is_up(event: Event, word: str) -> None:
    """Ours (replay): the time that a call may take goes on while policy is asked."""
    talk = Conversation()
    talk.call()
    talk.on(UpstreamBroke(UpstreamLost("reset")))

    assert talk.on(event)[-1] == USED_UP
    assert isinstance(talk.exchange.outcome, Abort)
    assert talk.exchange.outcome.error.reason == word
    assert talk.on(RerunJudged(is_allowed=True)) == []


def test_a_call_that_was_refused_is_not_run_again() -> None:
    """Ours (replay): the server answered, if not with MCP."""
    talk = Conversation()
    talk.call()
    assert talk.on(UpstreamBroke(UpstreamRefused(500)))[-1] == USED_UP


def test_an_answer_that_the_server_did_not_take_ends_the_call() -> None:
    """Ours: the server waits for it for ever; so the call is cancelled, not only left."""
    talk = held(form(0, "a"))
    talk.retry({"a": DECLINE})

    assert talk.on(AnswerNotTaken(UpstreamTimedOut())) == [("abort", "upstream_timed_out"), "cancel", USED_UP]


def test_an_answer_that_could_not_be_sent_does_not_say_that_nothing_ran() -> None:
    """docs/reliability.md, Known limits: the call had begun, so trying again is not as safe as `unreachable` says."""
    talk = held(form(0, "a"))
    talk.retry({"a": DECLINE})

    assert talk.on(AnswerNotTaken(UpstreamUnreachable())) == [("abort", "upstream_lost"), "cancel", USED_UP]


def test_an_answer_that_the_server_did_not_take_is_told_to_the_client_that_comes_back() -> None:
    talk = held(form(0, "a"), form(1, "b"))
    talk.retry({"a": DECLINE})
    talk.on(SettleElapsed())

    assert talk.on(AnswerNotTaken(UpstreamTimedOut())) == [("answer", 1, CANCEL), "cancel"]
    assert talk.on(DONE) == []
    assert talk.retry({"b": DECLINE}) == [("abort", "upstream_timed_out"), USED_UP]


def test_an_answer_that_was_not_taken_does_not_undo_what_the_call_has_come_to() -> None:
    talk = held(form(0, "a"), form(1, "b"))
    talk.retry({"a": DECLINE})
    talk.on(SettleElapsed())
    talk.on(UpstreamWithdrew(1))
    talk.on(DONE)

    assert talk.on(AnswerNotTaken(UpstreamLost("late"))) == []
    assert talk.retry() == [OK, REUSABLE]


def test_a_server_may_not_have_more_questions_open_than_anybody_could_answer() -> None:
    talk = Conversation()
    talk.call()
    talk.asked(*(form(number, "a") for number in range(MOST_OPEN)))

    assert talk.asked(form("one more", "a")) == [("refuse", "one more", -32000)]
    told = talk.on(SettleElapsed())
    assert [len(hold) for hold in told] == [1 + MOST_OPEN]
    talk.on(failed(-32000))
    assert talk.retry() == [("failed", -32000), USED_UP], "that is no missing capability"


@pytest.mark.parametrize("policy", [AskPolicy(), AskPolicy(elicitation=Disposition.DECLINE)])
def test_a_server_that_asks_without_end_is_cancelled(policy: AskPolicy) -> None:
    talk = Conversation(policy)
    talk.call()
    talk.asked(*(form(number, "a") for number in range(MOST_HEARD)))

    assert talk.asked(form("one more", "a"))[0] == ("abort", "upstream_fault")
    assert talk.exchange.state is State.DONE


def test_a_server_that_asks_without_end_while_held_is_cancelled_once() -> None:
    talk = held(form("first", "a"))
    talk.asked(*(form(number, "a") for number in range(1, MOST_HEARD)))

    assert talk.asked(form("one more", "a"))[-1] == "cancel"
    assert talk.asked(form("and more", "a")) == []
    assert talk.retry({"a": DECLINE}) == [("abort", "upstream_fault"), USED_UP]


def test_a_call_may_not_send_its_client_away_for_ever() -> None:
    talk = held(form(0, "a"))
    for _ in range(MAX_ROUNDS - 1):
        assert talk.retry() == [("hold", "a")]

    assert talk.retry() == [("abort", "upstream_fault"), ("answer", 0, CANCEL), "cancel", USED_UP]


def test_a_wrong_order_is_our_own_bug() -> None:
    talk = Conversation()
    with pytest.raises(AssertionError):
        talk.retry()
    talk.call()
    with pytest.raises(AssertionError):
        talk.call()


def test_the_servers_own_name_for_a_question_is_used_first() -> None:
    talk = held(form(0, "a", _meta={HINT: "github_login"}), names=["configured"])

    assert list(talk.shown) == ["github_login"]
    assert "_meta" not in talk.shown["github_login"]["params"]
