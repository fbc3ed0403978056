"""When a server is left alone, for how long, and who tries first: a clock that a test moves."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.upstreams.breaker import Breaker, Circuit


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def _opened(failures: int = 3) -> tuple[Clock, Breaker]:
    clock = Clock()
    breaker = Breaker(clock, failures=failures, seconds=10)
    for _ in range(failures):
        assert breaker.admit() is None
        breaker.failed()
    return clock, breaker


def test_it_opens_after_so_many_failures_in_a_row() -> None:
    """Ours: one that succeeds in between starts the count afresh."""
    breaker = Breaker(Clock(), failures=3, seconds=10)
    for _ in range(5):
        breaker.failed()
        breaker.failed()
        breaker.reached()
    assert breaker.circuit is Circuit.CLOSED
    breaker.failed()
    breaker.failed()
    assert breaker.admit() is None
    breaker.failed()
    assert breaker.admit() is not None


def test_while_open_it_says_how_long() -> None:
    """Ours: Retry-After is the truth."""
    clock, breaker = _opened()
    assert breaker.admit() == 10
    clock.now += 4
    assert breaker.admit() == 6


def test_one_tries_and_the_others_still_wait() -> None:
    """Ours: a server that comes back is not run over."""
    clock, breaker = _opened()
    clock.now += 10
    assert breaker.admit() is None
    assert breaker.admit() is not None
    breaker.reached()
    assert breaker.admit() is None
    assert breaker.admit() is None


def test_a_try_that_fails_opens_it_for_as_long_again() -> None:
    """Ours: half-open has no patience."""
    clock, breaker = _opened()
    clock.now += 10
    assert breaker.admit() is None
    breaker.failed()
    assert breaker.admit() == 10


def test_a_try_that_nobody_waited_for_is_made_by_the_next() -> None:
    """Ours: a client that leaves must not leave the circuit half open for ever."""
    clock, breaker = _opened()
    clock.now += 10
    assert breaker.admit() is None
    breaker.gave_up()
    assert breaker.admit() is None


def test_it_can_be_switched_off() -> None:
    """Ours: `failures: 0`."""
    breaker = Breaker(Clock(), failures=0, seconds=10)
    for _ in range(100):
        assert breaker.admit() is None
        breaker.failed()


class AnyOrder(RuleBasedStateMachine):
    """However attempts end and overlap, nobody is turned away for longer than it says, and one at most tries."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.breaker = Breaker(self.clock, failures=3, seconds=10)
        self.under_way = 0

    @rule()
    def attempt(self) -> None:
        seconds = self.breaker.admit()
        if seconds is None:
            self.under_way += 1
        else:
            assert 0 < seconds <= 10

    @precondition(lambda self: self.under_way)
    @rule(how=st.sampled_from(["reached", "failed", "gave_up"]))
    def end(self, how: str) -> None:
        self.under_way -= 1
        getattr(self.breaker, how)()

    @rule(seconds=st.floats(0.1, 20))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @invariant()
    def nobody_waits_for_ever(self) -> None:
        if self.breaker.circuit is Circuit.HALF_OPEN:
            assert self.under_way, "somebody is trying"


TestAnyOrder = AnyOrder.TestCase
