"""What comes before the call, or makes it start again: early asks, lost sessions, pages to open (-32042)."""

from typing import Any

import pytest

from gateway.eras.policy import AskPolicy, Disposition
from gateway.eras.questions import MOST_OPEN
from gateway.eras.vocabulary import (
    AnswerNotTaken,
    HoldExpired,
    RerunJudged,
    RoundPaused,
    SessionChanged,
    SettleElapsed,
    UpstreamBroke,
    UpstreamWithdrew,
)
from gateway.errors import UpstreamLost
from gateway.wire.jsonrpc import Failure, Raw
from tests.support.asking import (
    CANCEL,
    DECLINE,
    DONE,
    OK,
    REUSABLE,
    ROOTS,
    USED_UP,
    Conversation,
    Told,
    accept,
    failed,
    form,
    held,
    lost,
    needs,
    pages_required,
    roots,
    sampling,
)


def test_what_was_asked_before_the_call_is_answered_before_the_call() -> None:
    talk = Conversation(early=[roots(0)])

    assert talk.call() == [("hold", "roots-1")]
    assert talk.retry({"roots-1": ROOTS}) == [("answer", 0, ROOTS), "settle"]
    assert talk.exchange.is_working
    assert talk.on(SettleElapsed()) == ["call"]
    assert talk.on(DONE) == [OK, REUSABLE]


def test_a_question_while_the_gate_opens_is_asked_before_the_call_too() -> None:
    talk = Conversation(early=[roots(0)])
    talk.call()
    talk.retry({"roots-1": ROOTS})

    assert talk.asked(roots(1)) == []
    assert talk.on(SettleElapsed()) == [("hold", "roots-2")]
    talk.retry({"roots-2": ROOTS})
    assert talk.on(SettleElapsed()) == ["call"]


def test_an_early_ask_that_is_withdrawn_while_held_no_longer_bars_the_call() -> None:
    talk = Conversation(early=[roots(0)])
    talk.call()
    talk.on(UpstreamWithdrew(0))

    assert talk.retry({"roots-1": ROOTS}) == ["settle"]
    assert talk.on(SettleElapsed()) == ["call"]


def test_an_early_ask_that_is_not_answered_is_asked_again_and_the_call_still_waits() -> None:
    talk = Conversation(early=[roots(0)])
    talk.call()

    assert talk.retry() == [("hold", "roots-1")]


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"known_roots": ROOTS}, ("answer", 0, ROOTS)),
        (
            {"policy": AskPolicy(roots=Disposition.STATIC, static_roots=ROOTS["roots"])},
            ("answer", 0, ROOTS),
        ),
        ({"policy": AskPolicy(roots=Disposition.DECLINE)}, ("refuse", 0, -32601)),
    ],
)
def test_early_asks_that_need_no_client_are_told_before_the_call_is_sent(
    how: dict[str, Any], told: Told
) -> None:
    talk = Conversation(early=[roots(0)], **how)

    assert talk.call() == [told, "settle"]
    assert talk.on(SettleElapsed()) == ["call"]


def test_an_early_ask_may_be_answered_ahead() -> None:
    talk = Conversation(early=[roots(0)])

    assert talk.call(**{"roots-1": ROOTS}) == [("answer", 0, ROOTS), "settle"]
    assert talk.on(SettleElapsed()) == ["call"]


def test_roots_asked_before_the_call_do_not_take_the_tools_own_names() -> None:
    talk = Conversation(early=[roots(0)], names=["resolution"])

    assert talk.call() == [("hold", "roots-1")]
    talk.retry({"roots-1": ROOTS})
    talk.on(SettleElapsed())
    talk.asked(form(1, "x"))
    assert talk.on(SettleElapsed()) == [("hold", "resolution")]


def test_nobody_answers_an_early_ask_and_the_session_is_as_good_as_before() -> None:
    talk = Conversation(early=[roots(0)])
    talk.call()

    assert talk.on(HoldExpired()) == [("release", "reusable", 0)]
    assert lost(talk) == ("hold_expired", False), "the call was never sent"


def test_an_answer_that_does_not_arrive_before_the_call_is_the_calls_to_find_out() -> None:
    """Ours: a server that lost its idle session is met anew when the call is sent, and nothing is lost."""
    talk = Conversation(early=[roots(0)])
    talk.call()
    talk.retry({"roots-1": ROOTS})

    assert talk.on(AnswerNotTaken(UpstreamLost("404"))) == []
    assert talk.on(SettleElapsed()) == ["call"]


def test_in_a_new_session_the_old_ones_questions_are_forgotten_and_its_ids_are_free() -> None:
    talk = Conversation()
    talk.call()
    talk.asked(form(7, "old"), roots(0))

    assert talk.on(SessionChanged()) == ["call"]
    assert talk.on(SettleElapsed()) == []
    assert talk.asked(roots(0)) == ["settle"]
    assert talk.on(SettleElapsed()) == [("hold", "roots-2")]
    assert talk.retry({"old": accept(old="x"), "roots-1": ROOTS, "roots-2": ROOTS}) == [("answer", 0, ROOTS)]


def test_what_a_new_session_asks_before_the_call_is_answered_before_the_call_is_sent_there() -> None:
    """Ours: as in the first session. A file server that knows no folders yet would turn the call away."""
    talk = Conversation()
    talk.call()

    assert talk.on(SessionChanged((roots(0),))) == [("hold", "roots-1")]
    assert talk.retry({"roots-1": ROOTS}) == [("answer", 0, ROOTS), "settle"]
    assert talk.on(SettleElapsed()) == ["call"]
    assert talk.on(DONE) == [OK, REUSABLE]


def test_what_was_answered_in_the_lost_session_is_told_in_the_new_one_too() -> None:
    """Ours: the user is asked once, and the call waits until the server knows."""
    talk = Conversation(early=[roots(0)])
    talk.call()
    talk.retry({"roots-1": ROOTS})
    talk.on(SettleElapsed())

    assert talk.on(SessionChanged((roots(0),))) == [("answer", 0, ROOTS), "settle"]
    assert talk.on(SettleElapsed()) == ["call"]
    assert [entry.key for entry in talk.exchange.journal] == ["roots-1"]


def test_a_server_that_has_asked_too_often_in_the_end_is_told_so_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.eras.questions.MOST_HEARD", 2)
    talk = Conversation(can={})
    talk.call()
    talk.asked(sampling(0))

    told = talk.on(SessionChanged((sampling(0), sampling(1), sampling(2))))
    assert told == [("refuse", 0, -32601), ("abort", "upstream_fault"), REUSABLE]


def test_a_need_of_the_lost_session_is_not_held_against_the_call_in_the_new_one() -> None:
    talk = Conversation(can={})
    talk.call()
    assert talk.asked(sampling(0)) == [("refuse", 0, -32601)]

    assert talk.on(SessionChanged()) == ["call"]
    assert talk.on(failed()) == [("failed", -32603), REUSABLE]


def test_another_run_waits_for_what_its_session_asks_first() -> None:
    talk = Conversation(early=[roots(0)])
    talk.call()
    talk.retry({"roots-1": ROOTS})
    talk.on(SettleElapsed())
    talk.on(UpstreamBroke(UpstreamLost("crashed")))

    assert talk.on(RerunJudged(is_allowed=True)) == ["start over"]
    assert talk.on(SessionChanged((roots(0),))) == [("answer", 0, ROOTS), "settle"]
    assert talk.on(SettleElapsed()) == ["call"]


def test_a_session_that_changes_in_a_pause_has_the_call_sent_at_once_or_when_its_questions_are_answered() -> (
    None
):
    talk = Conversation()
    talk.call()
    talk.on(RoundPaused())
    assert talk.on(SessionChanged()) == ["call"]
    assert talk.retry() == []

    talk.on(RoundPaused())
    assert talk.on(SessionChanged((roots(0),))) == []
    assert not talk.exchange.is_working, "the client is waited for"
    assert talk.retry() == [("hold", "roots-1")]
    assert talk.retry({"roots-1": ROOTS}) == [("answer", 0, ROOTS), "settle"]
    assert talk.on(SettleElapsed()) == ["call"]


def test_an_answer_to_the_old_session_s_question_is_none_to_the_new_one_s() -> None:
    """Ours: a client answers what it was shown; ids and names of the old session stand for nothing in the new one."""
    talk = held(form(0, "a", "b"))

    assert talk.on(SessionChanged((form(0, "a", "c"),))) == []
    assert talk.retry({"elicitation-1": accept(a="x", b="y")}) == [("hold", "elicitation-2")]


def test_pages_to_open_hold_the_call_and_the_retry_sends_it_anew() -> None:
    talk = Conversation()
    talk.call()

    assert talk.on(pages_required("https://a.example", "https://b.example")) == [
        ("hold", "elicitation-1", "elicitation-2")
    ]
    assert talk.shown["elicitation-2"]["params"] == {
        "mode": "url",
        "message": "?",
        "url": "https://b.example",
    }
    yes = {"action": "accept"}
    assert talk.retry({"elicitation-1": yes}) == [("hold", "elicitation-2")]
    assert talk.retry({"elicitation-2": yes}) == ["call"]
    assert talk.on(DONE) == [OK, REUSABLE]


def test_a_call_that_was_sent_anew_is_a_call_like_any_other() -> None:
    talk = Conversation(can={"elicitation": {"form": {}, "url": {}}})
    talk.call()
    talk.on(pages_required("https://a.example"))
    talk.retry({"elicitation-1": {"action": "accept"}})
    talk.asked(form(0, "a"), sampling(1))
    talk.on(SettleElapsed())

    assert talk.retry({"a": DECLINE}) == [("answer", 0, DECLINE)]
    assert talk.on(DONE) == [OK, REUSABLE]


def test_pages_may_have_to_be_opened_again() -> None:
    talk = Conversation()
    talk.call()
    talk.on(pages_required("https://a.example"))
    talk.retry({"elicitation-1": {"action": "accept"}})

    assert talk.on(pages_required("https://a.example")) == [("hold", "elicitation-2")]


@pytest.mark.parametrize("answer", [DECLINE, CANCEL, {"error": {"code": -1, "message": "no"}}])
def test_a_page_that_the_user_does_not_open_ends_the_call(answer: dict[str, Any]) -> None:
    talk = Conversation()
    talk.call()
    talk.on(pages_required("https://a.example", "https://b.example"))

    assert talk.retry({"elicitation-1": answer}) == [("failed", -32603), REUSABLE]


def test_pages_that_the_client_cannot_open_are_its_missing_capability() -> None:
    talk = Conversation(can={"elicitation": {}})
    talk.call()

    assert talk.on(pages_required("https://a.example")) == [("abort", "capability_missing"), REUSABLE]
    assert needs(talk) == {"elicitation": {"url": {}}}


def test_a_need_from_before_does_not_keep_the_pages_from_the_client() -> None:
    talk = Conversation(can={"elicitation": {"url": {}}})
    talk.call()
    assert talk.asked(roots(0)) == [("refuse", 0, -32601)]

    assert talk.on(pages_required("https://a.example")) == [("hold", "elicitation-1")]


def test_pages_that_policy_declines_leave_the_error_as_it_was() -> None:
    talk = Conversation(AskPolicy(elicitation=Disposition.DECLINE))
    talk.call()

    assert talk.on(pages_required("https://a.example")) == [("failed", -32042), REUSABLE]


@pytest.mark.parametrize(
    "data", [None, Raw(b"[]"), Raw(b'{"elicitations": [{"message": "no url"}, 7]}'), Raw(b"1e999")]
)
def test_an_error_that_names_no_page_is_an_error(data: Raw | None) -> None:
    talk = Conversation()
    talk.call()
    end = failed()

    assert talk.on(type(end)(Failure(1, -32042, "?", data))) == [("failed", -32042), REUSABLE]


def test_pages_required_while_held_are_shown_to_the_client_that_comes_back() -> None:
    talk = held(form(0, "a"))

    assert talk.on(pages_required("https://a.example")) == [("answer", 0, CANCEL)]
    assert talk.retry({"a": DECLINE}) == [("hold", "elicitation-1")]
    assert talk.retry({"elicitation-1": {"action": "accept"}}) == ["call"]


def test_pages_required_while_held_are_not_shown_to_a_client_that_cannot_open_them() -> None:
    talk = held(form(0, "a"))
    talk.on(pages_required("https://a.example"))

    assert talk.retry({}, can={"elicitation": {}}) == [("abort", "capability_missing"), USED_UP]


def test_the_ended_calls_own_questions_are_cancelled_before_it_is_sent_anew() -> None:
    talk = Conversation()
    talk.call()
    talk.asked(form(0, "a"), roots(1))

    told = talk.on(pages_required("https://a.example"))
    assert told == [("answer", 0, CANCEL), ("hold", "roots-1", "elicitation-1")]
    assert talk.retry({"roots-1": ROOTS, "elicitation-1": {"action": "accept"}}) == [
        ("answer", 1, ROOTS),
        "call",
    ]
    assert talk.on(DONE) == [OK, USED_UP]


def test_roots_answered_beside_a_page_are_no_refusal_of_the_page() -> None:
    talk = Conversation()
    talk.call()
    talk.on(pages_required("https://a.example"))
    talk.asked(roots(1))

    assert talk.retry({"elicitation-1": {"action": "accept"}}) == [("hold", "roots-1")]
    assert talk.retry({"roots-1": ROOTS}) == [("answer", 1, ROOTS), "call"]


def test_an_answer_sent_ahead_does_not_open_a_page() -> None:
    """Ours: the server says only now that it is needed; and one request must not start calls without end."""
    talk = Conversation()
    talk.call(**{"elicitation-1": {"action": "accept"}})

    assert talk.on(pages_required("https://a.example")) == [("hold", "elicitation-1")]


def test_nobody_opens_the_page_and_the_session_is_as_good_as_before() -> None:
    talk = Conversation()
    talk.call()
    talk.on(pages_required("https://a.example"))

    assert talk.on(HoldExpired()) == [REUSABLE]
    assert lost(talk) == ("hold_expired", True)


def test_no_more_pages_than_anybody_could_open() -> None:
    talk = Conversation()
    talk.call()

    told = talk.on(pages_required(*(f"https://a.example/{number}" for number in range(500))))
    assert [len(hold) for hold in told] == [1 + MOST_OPEN]
