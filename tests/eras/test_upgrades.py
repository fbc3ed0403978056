"""Which of a modern server's questions a legacy journal answers."""

from typing import Any

import pytest

from gateway.eras.asks import fingerprint
from gateway.eras.questions import Entry
from gateway.eras.upgrades import known_answers
from gateway.eras.vocabulary import Ask, Kind
from gateway.wire.jsonrpc import Raw, encode
from tests.support.asking import raw

FORM = {"message": "Name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
ANSWER = raw({"action": "accept", "content": {"name": "Ada"}})


def entry(params: Any, method: str = "elicitation/create", kind: Kind = Kind.ELICITATION) -> Entry:
    return Entry("k", kind, fingerprint(Ask(1, kind, method, raw(params))), ANSWER)


def asked(**questions: Any) -> Raw:
    return Raw(
        encode({key: {"method": "elicitation/create", "params": params} for key, params in questions.items()})
    )


@pytest.mark.parametrize("theirs", [FORM, {"mode": "form", **FORM}, dict(reversed(FORM.items()))])
@pytest.mark.parametrize("ours", [FORM, {"mode": "form", **FORM, "_meta": {"a": 1}}])
def test_the_same_form_is_known_however_it_is_written(ours: Any, theirs: Any) -> None:
    """Ours: the eras write the mode differently, and servers their keys in any order."""
    found, left = known_answers(asked(x=theirs), [entry(ours)])
    assert (found, left) == ({"x": ANSWER}, [])


def test_another_question_is_not_known_and_nothing_is_used_up() -> None:
    """Ours: only the same question, word for word."""
    journal = [entry(FORM)]
    other = {**FORM, "message": "Your name?"}
    url = {"mode": "url", "url": "https://a.example", "message": "Name?"}
    assert known_answers(asked(x=other, y=url), journal) == ({}, journal)


def test_an_answer_is_used_once() -> None:
    """Ours: who asks the same twice wants two answers."""
    found, left = known_answers(asked(x=FORM, y=FORM), [entry(FORM)])
    assert (found, left) == ({"x": ANSWER}, [])


def test_other_kinds_are_known_too() -> None:
    """Ours: roots have no parameters, in either era."""
    roots = entry({}, "roots/list", Kind.ROOTS)
    found, _ = known_answers(Raw(b'{"r":{"method":"roots/list"}}'), [roots])
    assert found == {"r": ANSWER}


@pytest.mark.parametrize(
    "nonsense", [None, Raw(b"1"), Raw(b'{"a":1}'), Raw(b'{"a":{"method":1e999}}'), Raw(b'{"a":{}}')]
)
def test_nonsense_is_no_question(nonsense: Raw | None) -> None:
    """Ours: it goes to the client as it is."""
    assert known_answers(nonsense, [entry(FORM)]) == ({}, [entry(FORM)])
