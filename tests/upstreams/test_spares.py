"""Processes that wait for whoever comes first."""

import os
import signal
from collections.abc import AsyncIterator

import pytest

from gateway.errors import UpstreamUnreachable
from gateway.telemetry.logs import get_logger
from gateway.telemetry.redact import Blackout
from gateway.upstreams.guard import Guard
from gateway.upstreams.last_words import Allowance
from gateway.upstreams.spares import Spares
from gateway.upstreams.stdio import Stdio
from tests.support.calling import LIMIT
from tests.support.processes import own_zombies
from tests.support.waiting import until


class Start:
    """Starts `cat`, which waits until its input ends; counts."""

    def __init__(self) -> None:
        self.guard = Guard()
        self.started: list[Stdio] = []
        self.command = ["cat"]

    async def __call__(self) -> Stdio:
        channel = Stdio(
            max_line_bytes=LIMIT, log=get_logger(), allowance=Allowance(lambda: 0.0), blackout=Blackout(())
        )
        await channel.open(self.command, env={"PATH": os.environ["PATH"]}, cwd=None, guard=self.guard)
        self.started.append(channel)
        return channel

    def running(self) -> int:
        return sum(channel.is_running for channel in self.started)


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    starting = Start()
    yield starting
    for channel in starting.started:
        await channel.close()
    await starting.guard.close()
    assert own_zombies() == []


async def filled(spares: Spares, number: int) -> None:
    async def is_so() -> bool:
        return spares.waiting == number

    await until(is_so)


async def test_the_first_is_started_and_others_wait_for_those_who_come_later(start: Start) -> None:
    spares = Spares(start, number=2, idle=60)

    first = await spares.take()
    await filled(spares, 2)
    second = await spares.take()
    await filled(spares, 2)

    assert first is start.started[0]
    assert second is start.started[1]
    assert len(start.started) == 4
    await spares.close()


async def test_closing_ends_those_that_wait_and_leaves_those_that_were_taken(start: Start) -> None:
    spares = Spares(start, number=2, idle=60)
    taken = await spares.take()
    await filled(spares, 2)

    await spares.close()

    assert taken.is_running
    assert start.running() == 1


async def test_closing_at_once_leaves_nothing_behind(start: Start) -> None:
    spares = Spares(start, number=2, idle=60)
    await spares.take()

    await spares.close()

    assert start.running() == 1


async def test_without_spares_every_one_is_started_when_it_is_wanted(start: Start) -> None:
    spares = Spares(start, number=0, idle=60)

    await spares.take()
    await spares.take()

    assert (len(start.started), spares.waiting) == (2, 0)
    await spares.close()


async def test_one_that_ended_while_it_waited_is_not_given_out(start: Start) -> None:
    spares = Spares(start, number=1, idle=60)
    await spares.take()
    await filled(spares, 1)
    dead = start.started[1]
    os.kill(int((dead.session_id or "").removeprefix("pid-")), signal.SIGKILL)

    async def has_ended() -> bool:
        return not dead.is_running

    await until(has_ended)
    taken = await spares.take()

    assert taken is not dead
    assert taken.is_running
    await spares.close()


async def test_spares_that_nobody_takes_do_not_wait_for_ever(start: Start) -> None:
    spares = Spares(start, number=2, idle=0.3)
    await spares.take()
    await filled(spares, 2)
    await filled(spares, 0)

    async def only_one_runs() -> bool:
        return start.running() == 1

    await until(only_one_runs)
    await spares.close()


async def test_a_command_that_cannot_be_started_fails_for_who_wants_it_and_not_in_the_background(
    start: Start,
) -> None:
    spares = Spares(start, number=1, idle=60)
    await spares.take()
    await filled(spares, 1)
    start.command = ["/nowhere/server"]

    assert (await spares.take()).is_running
    with pytest.raises(UpstreamUnreachable):
        await spares.take()

    await spares.close()
