"""Clocks, on a loop whose time the test tells."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gateway.relay.clocks import Alarm, Deadlines, WorkClock


class Handle:
    def __init__(self, when: float, ring: Callable[[], None]) -> None:
        self.when = when
        self.ring = ring

    def cancel(self) -> None:
        self.when = float("inf")


class Loop:
    """Time passes when `pass_time` is called, and not otherwise."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.handles: list[Handle] = []
        self.rang: list[float] = []

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, ring: Callable[[], None]) -> Handle:
        self.handles.append(Handle(self.now + seconds, ring))
        return self.handles[-1]

    def call_soon(self, ring: Callable[[], None]) -> None:
        ring()

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for handle in [handle for handle in self.handles if handle.when <= self.now]:
            self.handles.remove(handle)
            handle.ring()

    def ring(self) -> None:
        self.rang.append(self.now - 1000)


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Any:
    loop = Loop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    return loop


# --- how long the upstream may work -----------------------------------------------------------------


def test_a_work_clock_rings_when_the_time_is_up(loop: Loop) -> None:
    WorkClock(60).run(loop.ring, working=True)
    loop.pass_time(59)
    assert loop.rang == []

    loop.pass_time(1)
    assert loop.rang == [60]


def test_a_work_clock_stands_still_while_nobody_works(loop: Loop) -> None:
    clock = WorkClock(60)
    clock.run(loop.ring, working=True)
    loop.pass_time(40)
    clock.run(loop.ring, working=False)
    loop.pass_time(3600)
    assert loop.rang == []

    clock.run(loop.ring, working=True)
    loop.pass_time(19)
    assert loop.rang == []
    loop.pass_time(1)
    assert loop.rang == [40 + 3600 + 20]


def test_who_is_seen_to_work_has_all_the_time_again(loop: Loop) -> None:
    clock = WorkClock(60)
    clock.run(loop.ring, working=True)
    for _ in range(5):
        loop.pass_time(50)
        clock.start_anew(loop.ring)
    loop.pass_time(59)
    assert loop.rang == []
    loop.pass_time(1)
    assert loop.rang == [310]


def test_nobody_works_for_more_than_ten_times_the_time(loop: Loop) -> None:
    """Legacy spec: an implementation that starts anew at progress still enforces a maximum."""
    clock = WorkClock(60)
    clock.run(loop.ring, working=True)
    while not loop.rang:
        loop.pass_time(50)
        clock.start_anew(loop.ring)
    assert loop.rang == [600]


def test_a_clock_that_stands_still_is_not_started_by_progress(loop: Loop) -> None:
    clock = WorkClock(60)
    clock.start_anew(loop.ring)
    loop.pass_time(3600)
    assert loop.rang == []


def test_saying_the_same_twice_changes_nothing(loop: Loop) -> None:
    clock = WorkClock(60)
    for _ in range(3):
        clock.run(loop.ring, working=False)
    for _ in range(3):
        clock.run(loop.ring, working=True)
        loop.pass_time(10)

    assert len(loop.handles) == 1
    loop.pass_time(30)
    assert loop.rang == [60]


def test_time_that_is_used_up_stays_used_up(loop: Loop) -> None:
    clock = WorkClock(60)
    clock.run(loop.ring, working=True)
    loop.pass_time(60)
    clock.run(loop.ring, working=False)

    clock.run(loop.ring, working=True)
    loop.pass_time(0)
    assert len(loop.rang) == 2


def test_a_clock_that_stands_still_keeps_nobody_alive(loop: Loop) -> None:
    """Ours: ten thousand holds, each in a circle with its clock, would wait for the garbage collector."""
    clock = WorkClock(60)
    clock.run(loop.ring, working=True)
    clock.run(loop.ring, working=False)

    assert [getattr(clock, name) for name in clock.__slots__ if callable(getattr(clock, name))] == []


# --- alarms --------------------------------------------------------------------------------------------


def test_an_alarm_rings_once(loop: Loop) -> None:
    alarm = Alarm(loop.ring)
    alarm.set(5)
    assert alarm.is_set is True

    loop.pass_time(5)
    loop.pass_time(5)
    assert loop.rang == [5]


def test_an_alarm_that_rang_is_not_set(loop: Loop) -> None:
    alarm = Alarm(loop.ring)
    alarm.set(5)
    loop.pass_time(5)

    assert alarm.is_set is False


def test_an_alarm_set_again_rings_at_the_later_time_only(loop: Loop) -> None:
    alarm = Alarm(loop.ring)
    alarm.set(5)
    loop.pass_time(4)
    alarm.set(5)
    loop.pass_time(4)
    assert loop.rang == []

    loop.pass_time(1)
    assert loop.rang == [9]


def test_a_stopped_alarm_does_not_ring_and_says_how_long_it_was_set(loop: Loop) -> None:
    alarm = Alarm(loop.ring)
    alarm.set(5)
    loop.pass_time(3)

    assert alarm.stop() == 3
    assert not alarm.is_set
    loop.pass_time(100)
    assert loop.rang == []


def test_an_alarm_may_be_set_by_its_own_ringing(loop: Loop) -> None:
    def ring() -> None:
        loop.ring()
        alarm.set(5)

    alarm = Alarm(ring)
    alarm.set(5)
    loop.pass_time(5)
    loop.pass_time(5)

    assert loop.rang == [5, 10]


# --- many of the same patience ----------------------------------------------------------------------


def test_deadlines_ring_each_in_its_time_on_one_timer(loop: Loop) -> None:
    deadlines = Deadlines(60)
    for name in ("a", "b", "c"):
        deadlines.set(name, loop.ring)
        loop.pass_time(10)
    assert len(loop.handles) == 1
    for _ in range(6):
        loop.pass_time(10)
    assert loop.rang == [60, 70, 80]
    assert loop.handles == []


def test_a_deadline_that_was_stopped_does_not_ring_and_tells_how_long_it_was_set(loop: Loop) -> None:
    deadlines = Deadlines(60)
    deadlines.set("a", loop.ring)
    loop.pass_time(5)
    deadlines.set("b", loop.ring)
    assert deadlines.stop("a") == 5
    assert deadlines.stop("a") == 0
    loop.pass_time(55)
    assert loop.rang == []
    loop.pass_time(5)
    assert loop.rang == [65]


def test_a_deadline_that_is_set_again_counts_from_then(loop: Loop) -> None:
    deadlines = Deadlines(60)
    deadlines.set("a", loop.ring)
    loop.pass_time(50)
    deadlines.set("a", loop.ring)
    loop.pass_time(59)
    assert loop.rang == []
    loop.pass_time(1)
    assert loop.rang == [110]


def test_a_deadline_that_is_set_again_keeps_no_other_waiting(loop: Loop) -> None:
    deadlines = Deadlines(60)
    deadlines.set("a", loop.ring)
    loop.pass_time(10)
    deadlines.set("b", loop.ring)
    loop.pass_time(40)
    deadlines.set("a", loop.ring)
    for _ in range(6):
        loop.pass_time(10)
    assert loop.rang == [70, 110]


def test_deadlines_go_on_after_a_time_without_any(loop: Loop) -> None:
    deadlines = Deadlines(60)
    deadlines.set("a", loop.ring)
    loop.pass_time(1000)
    deadlines.set("a", loop.ring)
    loop.pass_time(60)
    assert loop.rang == [1000, 1060]
