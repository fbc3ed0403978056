"""Who waits, who is known, and how many at most."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.holds import ledger as module
from gateway.holds.ledger import Ledger


def test_a_held_exchange_is_found_and_resumed_once() -> None:
    ledger: Ledger[str] = Ledger(10)

    assert ledger.hold("x", "exchange")
    assert (ledger.find("x"), ledger.held) == ("exchange", 1)
    assert ledger.resume("x")
    assert not ledger.resume("x")
    assert (ledger.find("x"), ledger.held) == ("exchange", 0), "its ticket is still good while it runs"


def test_nobody_is_found_who_was_not_held() -> None:
    ledger: Ledger[str] = Ledger(10)

    assert ledger.find("x") is None
    assert not ledger.resume("x")
    ledger.keep("x", 1)
    ledger.forget("x")
    assert ledger.everyone() == []


def test_there_is_room_for_so_many_and_no_more() -> None:
    ledger: Ledger[str] = Ledger(2)
    ledger.hold("a", "A")
    ledger.hold("b", "B")

    assert not ledger.hold("c", "C")
    assert ledger.find("c") is None
    ledger.resume("a")
    assert ledger.hold("c", "C")


def test_there_is_room_for_so_many_bytes_and_no_more() -> None:
    ledger: Ledger[str] = Ledger(10, max_bytes=100)
    ledger.hold("a", "A", size=60)

    assert not ledger.hold("b", "B", size=41)
    assert ledger.hold("c", "C", size=40)
    ledger.resume("a")
    assert ledger.hold("b", "B", size=41)
    ledger.hold("b", "B", size=50)
    ledger.forget("b")
    assert ledger.hold("d", "D", size=60), "what comes back heavier, or goes, is counted once"


def test_what_grows_while_it_waits_leaves_less_room_for_others() -> None:
    ledger: Ledger[str] = Ledger(10, max_bytes=100)
    ledger.hold("a", "A", "ann", size=10)
    ledger.weigh("a", 90)
    ledger.weigh("nobody", 90)

    assert not ledger.hold("b", "B", size=11)
    assert ledger.hold("c", "C", size=10)
    ledger.resume("a")
    ledger.weigh("a", 90)
    assert ledger.hold("b", "B", size=90), "one that works counts no more, nor is weighed"
    assert not ledger._of


def test_who_was_held_before_is_let_in_again_however_full_it_is() -> None:
    """Ours: a user who has answered one question must not lose the call to a newcomer at the second."""
    ledger: Ledger[str] = Ledger(1)
    ledger.hold("a", "A")
    ledger.resume("a")
    ledger.hold("b", "B")

    assert ledger.hold("a", "A")
    assert not ledger.hold("c", "C")


def test_an_outcome_is_kept_until_it_is_forgotten() -> None:
    ledger: Ledger[str] = Ledger(1)
    ledger.hold("a", "A")
    ledger.keep("a", 100)

    assert (ledger.find("a"), ledger.held) == ("A", 0)
    assert ledger.hold("b", "B"), "what is kept takes no place"
    ledger.forget("a")
    assert ledger.find("a") is None
    assert ledger.everyone() == ["B"]


def test_the_oldest_outcomes_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_KEPT_BYTES", 100)
    ledger: Ledger[str] = Ledger(10)
    for name in "abc":
        ledger.hold(name, name)
    for name in "abc":
        ledger.keep(name, 40)

    assert [ledger.find(name) for name in "abc"] == [None, "b", "c"]


def test_an_outcome_larger_than_all_room_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_KEPT_BYTES", 100)
    ledger: Ledger[str] = Ledger(10)
    ledger.hold("a", "A")
    ledger.keep("a", 101)

    assert ledger.find("a") is None


def test_no_more_outcomes_are_kept_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_KEPT", 2)
    ledger: Ledger[int] = Ledger(10)
    for number in range(5):
        ledger.hold(str(number), number)
        ledger.keep(str(number), 0)

    assert ledger.everyone() == [3, 4]


class Books(RuleBasedStateMachine):
    """Whatever is done in whatever order, the sums are right."""

    names = st.sampled_from("abcde")

    def __init__(self) -> None:
        super().__init__()
        self.ledger: Ledger[str] = Ledger(2)
        self.held: set[str] = set()
        self.kept: dict[str, int] = {}

    @rule(name=names)
    def hold(self, name: str) -> None:
        was_known = self.ledger.find(name) is not None
        let_in = self.ledger.hold(name, name)
        assert let_in == (was_known or len(self.held) < 2)
        if let_in:
            self.held.add(name)

    @rule(name=names)
    def resume(self, name: str) -> None:
        assert self.ledger.resume(name) == (name in self.held)
        self.held.discard(name)

    @rule(name=names, size=st.integers(0, 100))
    def keep(self, name: str, size: int) -> None:
        if self.ledger.find(name) is not None:
            self.kept[name] = size
        self.ledger.keep(name, size)
        self.held.discard(name)

    @rule(name=names)
    def forget(self, name: str) -> None:
        self.ledger.forget(name)
        self.held.discard(name)
        self.kept.pop(name, None)
        assert self.ledger.find(name) is None

    @invariant()
    def the_sums_are_right(self) -> None:
        assert self.ledger.held == len(self.held)
        assert self.ledger._kept_bytes == sum(self.kept.values())
        assert all(self.ledger.find(name) == name for name in {*self.held, *self.kept})


TestBooks = Books.TestCase


def test_one_holder_has_a_share_and_no_more() -> None:
    """Ours: one caller cannot take every place; who is nobody in particular has no share but the whole."""
    ledger: Ledger[str] = Ledger(10, 2)
    assert ledger.hold("a1", "A", "ann")
    assert ledger.hold("a2", "A", "ann")
    assert not ledger.hold("a3", "A", "ann")
    assert ledger.hold("b1", "B", "bob")
    assert all(ledger.hold(f"n{number}", "N") for number in range(3))
    ledger.resume("a1")
    assert ledger.hold("a3", "A", "ann")
    assert ledger.hold("a1", "A", "ann"), "one that was held before is always let in"
    for name in ("a1", "a2", "a3", "b1"):
        ledger.forget(name)
    assert not ledger._of, "nothing is remembered of holders who have nothing"
