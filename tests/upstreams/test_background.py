"""Tasks that outlive their starter: kept, watched, ended together."""

import asyncio
import gc

import structlog

from gateway.errors import UpstreamLost
from gateway.upstreams.background import Background


async def test_work_runs_beside_and_is_not_lost_to_the_collector() -> None:
    background, done = Background(), asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0)
        gc.collect()
        done.set()

    background.start(work())
    async with asyncio.timeout(5):
        await done.wait()
    await background.close()


async def test_a_refusal_is_an_outcome_and_a_bug_is_logged_without_its_text() -> None:
    background = Background()

    async def refused() -> None:
        raise UpstreamLost("gone")

    async def broken() -> None:
        raise ValueError("a user's secret")

    with structlog.testing.capture_logs() as lines:
        background.start(refused(), "refused")
        background.start(broken(), "broken")
        await background.settle(5)
        await asyncio.sleep(0)
    assert [(line["event"], line["where"]) for line in lines] == [("internal_error", "broken")]


async def test_settling_waits_for_what_runs_but_not_for_ever() -> None:
    background, order = Background(), list[str]()

    async def quick() -> None:
        await asyncio.sleep(0)
        order.append("quick")

    async def endless() -> None:
        await asyncio.Event().wait()

    background.start(quick())
    await background.settle(5)
    assert order == ["quick"]
    background.start(endless())
    async with asyncio.timeout(5):
        await background.settle(0.01)
    await background.close()


async def test_closing_cancels_and_waits_until_all_has_ended() -> None:
    background, order = Background(), list[str]()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            order.append("tidied up")

    task = background.start(work())
    await asyncio.sleep(0)
    await background.close()
    assert order == ["tidied up"]
    assert task.cancelled()
    await background.close()
    await background.settle(1)
