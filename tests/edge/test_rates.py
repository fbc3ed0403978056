"""Token buckets: never more than was allowed, nothing taken by a refusal, and no more memory than promised."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge import rates
from gateway.edge.rates import Bucket, RateLimit
from gateway.errors import RateLimited
from gateway.settings.upstream import Rate


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


PAUSES = st.lists(st.floats(0, 3), max_size=60)


@given(rate=st.floats(0.1, 50), burst=st.integers(1, 20), pauses=PAUSES)
def test_no_order_of_requests_gets_more_than_the_burst_and_the_rate(
    rate: float, burst: int, pauses: list[float]
) -> None:
    """Ours: the bound that operators rely on."""
    clock = Clock()
    limit = RateLimit(Rate.model_validate({"per_principal": f"{rate}/s", "burst": burst}), clock)
    passed = 0
    for pause in pauses:
        clock.now += pause
        passed += limit.wait("ada") == 0.0
    assert passed <= burst + rate * (clock.now - 1000.0) + 1e-6


@given(rate=st.floats(0.1, 50), burst=st.integers(1, 20), pauses=PAUSES)
def test_who_waits_as_long_as_told_is_let_in(rate: float, burst: int, pauses: list[float]) -> None:
    """Ours: `Retry-After` is the truth."""
    clock = Clock()
    limit = RateLimit(Rate.model_validate({"per_principal": f"{rate}/s", "burst": burst}), clock)
    for pause in pauses:
        clock.now += pause
        seconds = limit.wait("ada")
        if seconds:
            clock.now += seconds + 1e-6
            assert limit.wait("ada") == 0.0


def test_a_refusal_takes_from_neither_bucket() -> None:
    """Ours: one caller who floods must not use up what all callers have together."""
    clock = Clock()
    limit = RateLimit(
        Rate.model_validate({"per_principal": "1/s", "burst": 1, "total": "1/s", "total_burst": 3}), clock
    )
    assert limit.wait("ada") == 0.0
    assert all(limit.wait("ada") > 0 for _ in range(10))
    assert [limit.wait(name) == 0.0 for name in ("bob", "eve", "joe")] == [True, True, False]


def test_callers_have_a_bucket_each_and_the_oldest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: whoever invents names costs no memory without bound."""
    monkeypatch.setattr(rates, "MOST_BUCKETS", 3)
    limit = RateLimit(Rate.model_validate({"per_principal": "1/h", "burst": 1}), Clock())
    for name in "abcabcdef":
        limit.wait(name)
    assert limit.known == 3
    assert [limit.wait(name) == 0.0 for name in "fed"] == [False, False, False]


def test_a_clock_that_goes_back_gives_nothing_away() -> None:
    """Ours: monotonic clocks do not, but a bucket need not rely on it."""
    bucket = Bucket(1.0, 1.0, 10.0)
    assert bucket.wait(10.0) == 0.0
    bucket.take()
    assert bucket.wait(5.0) == 1.0
    assert bucket.wait(10.5) == 0.5


def test_without_settings_there_is_no_limit() -> None:
    """Ours: what nobody asked for must not refuse anybody."""
    limit = RateLimit(Rate(), Clock())
    assert not limit.is_on
    assert all(limit.wait("ada") == 0.0 for _ in range(1000))


def test_the_refusal_says_when_in_whole_seconds() -> None:
    """RFC 9110, 10.2.3: Retry-After is a whole number of seconds."""
    assert RateLimited(0.02).headers == {"Retry-After": "1"}
    assert RateLimited(2.1).headers == {"Retry-After": "3"}
