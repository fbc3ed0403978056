"""Waiting for what happens once."""

import asyncio

import pytest

from gateway.upstreams.flag import Flag


def waiting_for(flag: Flag) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(flag.wait())


async def test_those_who_wait_go_on_when_it_happens() -> None:
    flag = Flag()
    waiting = [waiting_for(flag) for _ in range(3)]
    await asyncio.sleep(0)
    assert not flag.is_set()
    assert not any(task.done() for task in waiting)
    flag.set()
    async with asyncio.timeout(5):
        await asyncio.gather(*waiting)
    assert flag.is_set()


async def test_nobody_waits_for_what_has_happened() -> None:
    flag = Flag()
    flag.set()
    flag.set()
    async with asyncio.timeout(5):
        await flag.wait()


async def test_who_stops_waiting_is_forgotten_and_the_others_are_not() -> None:
    flag = Flag()
    impatient, patient = waiting_for(flag), waiting_for(flag)
    await asyncio.sleep(0)
    impatient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await impatient
    flag.set()
    async with asyncio.timeout(5):
        await patient


async def test_who_stops_waiting_in_the_moment_in_which_it_happens_does_no_harm() -> None:
    flag = Flag()
    waiting = waiting_for(flag)
    await asyncio.sleep(0)
    waiting.cancel()
    flag.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert flag.is_set()
