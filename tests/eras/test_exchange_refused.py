"""Answers that a server does not take because of the caller's credentials: as if the round had not come."""

from gateway.eras.states import State
from gateway.eras.vocabulary import AnswerRefused, ClientLeft, HoldExpired, UpstreamAsked
from gateway.errors import UpstreamUnauthorized
from tests.support.asking import DONE, OK, REUSABLE, Conversation, accept, form, held, roots

ERROR = UpstreamUnauthorized(401, "Bearer")
REJECTED = ("reject", -32600)


def test_the_same_answer_can_be_given_again_under_the_same_round() -> None:
    """Issue: consumes nothing; a retry with a good token then succeeds with the same requestState."""
    talk = held(form(7, "name"))
    assert talk.retry({"name": accept(name="Ann")}) == [("answer", 7, accept(name="Ann"))]
    assert talk.on(AnswerRefused(form(7, "name"), ERROR)) == [REJECTED]
    assert talk.exchange.state is State.HELD
    assert talk.exchange.round == 1
    assert talk.exchange.journal == []
    assert talk.retry({"name": accept(name="Ann")}) == [("answer", 7, accept(name="Ann"))]
    assert talk.on(DONE) == [OK, REUSABLE]


def test_of_two_answers_the_client_hears_one_last_word_and_both_are_open_again() -> None:
    """Ours: every round has exactly one."""
    one, two = form(1, "name"), form(2, "city")
    talk = held(one, two)
    both = {"name": accept(name="Ann"), "city": accept(city="Oslo")}
    talk.retry(both)
    assert talk.on(AnswerRefused(one, ERROR)) == [REJECTED]
    assert talk.on(AnswerRefused(two, ERROR)) == []
    assert talk.exchange.open_asks.keys() == {"name", "city"}
    assert len(talk.retry(both)) == 2


def test_an_answer_that_was_taken_stays_taken() -> None:
    """Design: an answer reaches the server at most once."""
    one, two = form(1, "name"), form(2, "city")
    talk = held(one, two)
    both = {"name": accept(name="Ann"), "city": accept(city="Oslo")}
    talk.retry(both)
    talk.on(AnswerRefused(two, ERROR))
    assert talk.retry(both) == [("answer", 2, accept(city="Oslo"))]


def test_a_call_that_waits_for_an_early_answer_goes_on_waiting() -> None:
    """Ours: before the call is sent nothing runs, and nothing is lost either."""
    talk = Conversation(early=[roots(5)])
    talk.call()
    assert talk.exchange.state is State.HELD
    talk.retry({"roots-1": {"roots": []}})
    assert talk.on(AnswerRefused(roots(5), ERROR)) == [REJECTED]
    assert talk.exchange.open_asks.keys() == {"roots-1"}
    assert talk.on(HoldExpired())[-1][0] == "release"


def test_an_answer_that_was_not_the_client_s_fails_the_call_as_before() -> None:
    """Ours: there is nobody to ask again."""
    talk = Conversation()
    talk.call()
    told = talk.on(AnswerRefused(form(9, "name"), ERROR))
    assert ("abort", "upstream_unauthorized") in told
    assert talk.exchange.state is State.DONE


def test_after_the_last_word_it_changes_nothing() -> None:
    """Ours: a late word of either side."""
    talk = held(form(7, "name"))
    talk.retry({"name": accept(name="Ann")})
    talk.on(ClientLeft())
    assert talk.on(AnswerRefused(form(7, "name"), ERROR)) == []
    assert talk.on(UpstreamAsked(form(8, "more"))) == []
