"""The books of an exchange: what is open, what was shown, what is too much. Conversations are in `test_exchange`."""

import gc
import weakref
from typing import Any, cast

import pytest

from gateway.eras import questions as module
from gateway.eras.asks import KeyNaming
from gateway.eras.policy import AskPolicy
from gateway.eras.questions import Entry, Questions
from gateway.eras.vocabulary import Ask, Kind, SendAnswer
from gateway.wire.jsonrpc import Params, decode_members
from tests.support.asking import (
    CANCEL,
    DECLINE,
    EVERYTHING,
    HINT,
    ROOTS,
    accept,
    form,
    in_short,
    page,
    raw,
    roots,
    sampling,
)


def asked(*asks: Ask, **ahead: Any) -> Questions:
    """Questions of which these were asked."""
    several = Questions(AskPolicy(), KeyNaming(HINT))
    several.meet(EVERYTHING, {key: raw(answer) for key, answer in ahead.items()})
    for one in asks:
        several.hear(one)
        several.take(one)
    return several


def answer_in_large_request(answer: bytes) -> tuple[Params, "weakref.ref[bytearray]"]:
    """An answer as it is read from a request, and whether that request is still in memory."""

    class Body(bytearray):
        """Can be watched; a `bytes` cannot."""

    body = Body(b'{"arguments":"' + b"x" * 100_000 + b'","key":' + answer + b"}")
    members = decode_members(cast("bytes", body))
    assert members is not None
    given = decode_members(members["key"])
    assert given is not None
    return given, weakref.ref(body)


def test_the_journal_does_not_keep_the_requests_that_its_answers_came_in() -> None:
    """Ours: a request can be megabytes, and a hold is to cost no more than 25 KiB."""
    several = asked(form(0, "a"))
    several.show()
    given, body = answer_in_large_request(b'{"action":"decline"}')
    several.deliver("a", given)
    del given
    gc.collect()

    assert body() is None
    assert several.journal[0].answer == raw(DECLINE)


def test_answers_sent_ahead_do_not_keep_the_request_either() -> None:
    several = Questions(AskPolicy(), KeyNaming(HINT))
    given, body = answer_in_large_request(b'{"action":"decline"}')
    several.meet(EVERYTHING, {"a": given})
    del given
    gc.collect()

    assert body() is None


def test_an_entry_does_not_show_the_users_answer() -> None:
    entry = Entry("password", Kind.ELICITATION, "digest", raw(accept(password="hunter2")))

    assert "hunter2" not in f"{entry} {entry!r} {[entry]}"


def test_only_what_was_shown_can_be_answered() -> None:
    several = asked(form(0, "a"))
    several.show()
    several.take(form(1, "b"))

    assert several.read({"a": raw(DECLINE), "b": raw(DECLINE), "c": raw(DECLINE)}).keys() == {"a"}
    assert several.has_news is True
    several.show()
    assert several.read({"b": raw(DECLINE)}).keys() == {"b"}


def test_what_was_shown_is_no_news() -> None:
    several = asked(form(0, "a"))
    several.show()

    assert several.has_news is False


def test_what_was_withdrawn_after_it_was_shown_can_be_answered_late() -> None:
    several = asked(form(0, "a"), form(1, "b"))
    several.show()
    several.take(form(2, "unseen"))
    for ask_id in (0, 2):
        several.withdraw(ask_id)

    given = {key: raw(DECLINE) for key in ("a", "b", "unseen")}
    assert several.read(given).keys() == {"b"}
    assert several.read_late(given).keys() == {"a"}


def test_when_the_server_is_gone_all_that_was_shown_can_be_answered_late() -> None:
    several = asked(form(0, "a"), roots(1))
    several.show()
    several.lose()

    assert several.open == {}
    assert several.read_late({"a": raw(DECLINE), "roots-1": raw(ROOTS)}).keys() == {"a", "roots-1"}


def test_asks_are_closed_in_their_own_manner_but_for_the_kind_to_keep() -> None:
    several = asked(form(0, "a"), roots(1), sampling(2), page(None))

    assert [in_short(told) for told in several.close("over", keeping=Kind.ROOTS)] == [
        ("answer", 0, CANCEL),
        ("refuse", 2, -1),
    ]
    assert list(several.open) == ["roots-1"]
    assert several.forget() == (roots(1),)
    assert several.open == {}
    assert several.close("again") == []
    assert several.forget() == ()


def test_only_the_clients_own_answers_count_as_its_own() -> None:
    """Ours: the roots that the gateway remembers for a principal must come from that principal."""
    several = asked(roots(0))

    assert [
        told.from_client for told in several.deliver("roots-1", raw(ROOTS)) if isinstance(told, SendAnswer)
    ] == [True]
    known = Questions(AskPolicy(), KeyNaming(HINT), ROOTS)
    known.meet(EVERYTHING, {})
    assert [told.from_client for told in known.take(roots(0)) if isinstance(told, SendAnswer)] == [False]


def test_one_refused_page_is_enough() -> None:
    several = asked(page(None), form(0, "a"))

    yes, no = raw({"action": "accept"}), raw(DECLINE)
    assert several.is_page_refused({"elicitation-1": no, "a": yes})
    assert not several.is_page_refused({"elicitation-1": yes, "a": no})


@pytest.mark.parametrize("ask_id", [0, "", "0", 1])
def test_a_question_is_known_again_by_its_id_and_its_content(ask_id: Any) -> None:
    several = asked()

    assert several.hear(form(ask_id, "a"))
    assert not several.hear(form(ask_id, "a"))
    assert several.hear(form("another", "a"))
    assert several.hear(form(ask_id, "b")), "the first one is not open"


def test_while_a_question_is_open_its_id_means_that_question() -> None:
    several = asked(form(0, "a"))

    assert not several.hear(form(0, "b"))


def test_ids_are_told_apart_by_their_json_type() -> None:
    several = asked(form(0, "a"))

    assert several.hear(form("0", "a"))


def test_there_is_room_for_one_question_of_any_size_and_not_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OPEN_BYTES", 1000)
    several = asked()

    assert several.take(form(0, "a", message="x" * 5000)) == []
    assert [in_short(told) for told in several.take(form(1, "b"))] == [("refuse", 1, -32000)]
    assert list(several.open) == ["a"]


def test_names_count_what_the_call_asks_and_not_what_the_session_asks() -> None:
    several = Questions(AskPolicy(), KeyNaming(HINT, ["first", "second"]))
    several.meet(EVERYTHING, {})
    for one in (roots(0), form(1, "x"), roots(2), sampling(3), form(4, "y")):
        several.take(one)

    assert list(several.open) == ["roots-1", "first", "roots-2", "second", "y"]


def test_a_question_that_is_not_relayed_takes_no_name() -> None:
    several = Questions(AskPolicy(), KeyNaming(HINT, ["first"]))
    several.meet({"elicitation": {}}, {})

    assert [in_short(told) for told in several.take(sampling(0))] == [("refuse", 0, -32601)]
    several.take(form(1, "x"))
    assert list(several.open) == ["first"]
    assert several.needs == {"sampling": {}}
