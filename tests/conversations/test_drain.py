"""A replica is told to stop while it has calls: others go on with what they can, it waits for what they cannot.

Real legacy servers with and without a memory of their streams, real gateway processes on one real Redis.
"""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.peers import Running, start_legacy
from tests.support.redis import RedisServer
from tests.support.replicas import Fleet, until_said
from tests.support.serving import Serving
from tests.support.waiting import until
from tests.support.wire import Answer, Wire, accept


@dataclass(frozen=True, slots=True)
class Two:
    """A replica that is about to stop, one that stays, and a client of each."""

    legacy: Running
    going: Serving
    staying: Serving
    here: Wire
    there: Wire

    async def until_called(self, event: str) -> None:
        async def look() -> bool:
            return event in (await self.legacy.observed())["events"]

        await until(look, 15)


@contextlib.asynccontextmanager
async def two(
    folder: Path,
    redis: RedisServer,
    kind: str,
    *,
    event_store: bool,
    drain: str = "20s",
    **upstream: Any,
) -> AsyncIterator[Two]:
    async with contextlib.AsyncExitStack() as stack:
        legacy = await stack.enter_async_context(start_legacy(kind, event_store=event_store))
        fleet = Fleet(
            folder,
            {"url": legacy.url, "replay": "never", **upstream},
            store=redis.url.get_secret_value(),
            drain=drain,
        )
        going = await stack.enter_async_context(fleet.alive("going"))
        staying = await stack.enter_async_context(fleet.alive("staying"))
        here = await stack.enter_async_context(Wire(going.url))
        there = await stack.enter_async_context(Wire(staying.url))
        yield Two(legacy, going, staying, here, there)


# --- held calls ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.32"])
async def test_a_hold_whose_server_remembers_is_handed_over_at_once(
    redis_server: RedisServer, tmp_path: Path, kind: str
) -> None:
    """Ours: the replica does not wait, the session lives on, the answer is delivered once, nothing runs twice."""
    async with two(tmp_path, redis_server, kind, event_store=True) as t:
        asked = await t.here.tool("side_effect_then_ask", {"id": "handed"})
        t.going.tell()
        assert await t.going.ended() == 0
        assert '"handed_over":1' in t.going.said()
        done = await t.there.retry(asked, {"name": accept(name="Ann")})
        assert done.text == "Hello Ann, effect 1"
        await until_said(t.staying, '"rung":"reattached"')
        seen = await t.legacy.observed()
    answers = [entry for entry in seen["http"] if "'Ann'" in str(entry.get("body"))]
    assert len(answers) == 1, answers
    assert "internal_error" not in t.going.said() + t.staying.said()


async def test_a_hold_that_may_be_run_again_is_handed_over_too(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    """Ours: cancelled at the server here, run again there; the user is not asked a second time."""
    async with two(
        tmp_path,
        redis_server,
        "py-1.30",
        event_store=False,
        replay_tools={"side_effect_then_ask": "always"},
    ) as t:
        asked = await t.here.tool("side_effect_then_ask", {"id": "again"})
        t.going.tell()
        assert await t.going.ended() == 0
        done = await t.there.retry(asked, {"name": accept(name="Ann")})
        assert done.text == "Hello Ann, effect 2"
        await until_said(t.staying, '"rung":"replayed"')


async def test_a_hold_that_nobody_else_can_finish_is_waited_for_and_reached_by_the_courier(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    """Ours: its listener is closed already; the retry comes to it through the replica that stays."""
    async with two(tmp_path, redis_server, "py-1.30", event_store=False) as t:
        asked = await t.here.tool("side_effect_then_ask", {"id": "stays"})
        t.going.tell()
        await until_said(t.going, '"event":"draining"')
        done = await t.there.retry(asked, {"name": accept(name="Ann")})
        assert done.text == "Hello Ann, effect 1"
        await until_said(t.staying, '"rung":"routed"')
        assert await t.going.ended() == 0  # and does not wait for the rest of its 20 s
        assert '"cancelled":0' in t.going.said()


async def test_what_is_left_at_the_end_is_cancelled_and_refused_precisely(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    """Ours: rung 5, wherever the retry comes; the session is ended at the server."""
    async with two(tmp_path, redis_server, "py-1.30", event_store=False, drain="300ms") as t:
        asked = await t.here.tool("side_effect_then_ask", {"id": "left"})
        t.going.tell()
        assert await t.going.ended() == 0
        assert '"cancelled":1' in t.going.said()
        refused = await t.there.retry(asked, {"name": accept(name="Ann")})
        assert refused.error["code"] == -31001
        assert refused.told == {"reason": "hold_lost", "sideEffectsPossible": True, "canStartAgain": True}
        assert "DELETE" in str((await t.legacy.observed())["http"])


# --- running rounds ----------------------------------------------------------------------------------


@pytest.mark.requirement("R24")
@pytest.mark.parametrize("kind", ["py-1.30", "ts-1.32"])
async def test_a_running_round_is_sent_on_to_the_replica_that_stays(
    redis_server: RedisServer, tmp_path: Path, kind: str
) -> None:
    """Seeds: load shedding. `requestState` and no question; the call runs once, to its end."""
    async with two(tmp_path, redis_server, kind, event_store=True) as t:
        calling = asyncio.ensure_future(t.here.tool("slow", {"seconds": 4, "tag": "shed"}))
        await t.until_called("slow:started:shed")
        t.going.tell()
        sent_on = await calling
        done = await _finish(t.there, sent_on)
        assert done.text == "slept"
        assert await t.going.ended() == 0
        events = (await t.legacy.observed())["events"]
    assert events.count("slow:started:shed") == 1
    assert "slow:cancelled:shed" not in events


async def test_a_running_round_that_nobody_else_can_finish_is_waited_for(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    """Ours: a server without a memory, a tool that must not run twice."""
    async with two(tmp_path, redis_server, "py-1.30", event_store=False) as t:
        calling = asyncio.ensure_future(t.here.tool("slow", {"seconds": 2, "tag": "waited"}))
        await t.until_called("slow:started:waited")
        t.going.tell()
        assert (await calling).text == "slept"
        assert await t.going.ended() == 0


async def test_a_second_signal_cuts_a_drain_that_waits_for_a_hold(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    """Ours: an operator who is in a hurry says so twice."""
    async with two(tmp_path, redis_server, "py-1.30", event_store=False) as t:
        await t.here.tool("side_effect_then_ask", {"id": "cut"})
        t.going.tell()
        await until_said(t.going, '"event":"draining"')
        t.going.tell(signal.SIGTERM)
        assert await t.going.ended(8) == 2


async def _finish(client: Wire, sent_on: Answer) -> Answer:
    """Come back, as clients do, until there is a result."""
    assert sent_on.result["resultType"] == "input_required"
    assert "inputRequests" not in sent_on.result
    while sent_on.result["resultType"] == "input_required":
        sent_on = await client.retry(sent_on)
    return sent_on
