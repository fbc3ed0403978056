"""A replica that was frozen and wakes up: it delivers nothing before it knows that the call is still its own."""

import contextlib
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.peers import Running, start_legacy
from tests.support.redis import RedisServer
from tests.support.replicas import Fleet, until_said
from tests.support.waiting import until
from tests.support.wire import Wire, accept


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """One that a test may kill."""
    server = RedisServer()
    server.start()
    yield server
    server.kill()


@contextlib.asynccontextmanager
async def fleet_on(
    redis: RedisServer, folder: Path, *, event_store: bool = True
) -> AsyncIterator[tuple[Running, Fleet]]:
    async with start_legacy("ts-1.32", event_store=event_store) as legacy:
        yield (
            legacy,
            Fleet(
                folder,
                {"url": legacy.url, "replay": "never"},
                store=redis.url.get_secret_value(),
                replica_heartbeat="300ms",
            ),
        )


async def _delivered(legacy: Running, answer: str) -> int:
    seen = (await legacy.observed())["http"]
    return sum(f"'{answer}'" in str(entry.get("body")) for entry in seen)


async def test_one_that_wakes_while_redis_is_away_delivers_nothing(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    """Ours: another took over and delivered; Redis, which knows that, is gone. The retry is told to wait."""
    async with (
        fleet_on(own_redis, tmp_path) as (legacy, fleet),
        fleet.alive("sleeper") as sleeper,
        fleet.alive("awake") as awake,
        Wire(sleeper.url) as here,
        Wire(awake.url) as there,
    ):
        asked = await here.tool("side_effect_then_ask", {"id": "sleeper"})
        sleeper.tell(signal.SIGSTOP)
        done = await there.retry(asked, {"name": accept(name="Ann")})
        assert done.text == "Hello Ann, effect 1"
        own_redis.kill()
        sleeper.tell(signal.SIGCONT)
        refused = await here.retry(asked, {"name": accept(name="Eve")})
        assert refused.status == 503
        assert refused.headers["Retry-After"]
        await until_said(sleeper, '"event":"frozen"')
        own_redis.start()  # it has forgotten everything

        async def look() -> bool:
            answer = await here.retry(asked, {"name": accept(name="Eve")})
            return answer.status != 503

        await until(look, 15)
        again = await here.retry(asked, {"name": accept(name="Eve")})
        assert "error" in again.message, again.message
        assert await _delivered(legacy, "Ann") == 1
        assert await _delivered(legacy, "Eve") == 0


async def test_one_that_never_slept_goes_on_without_redis(own_redis: RedisServer, tmp_path: Path) -> None:
    """Ours: Redis lost for good degrades to live-only."""
    async with (
        fleet_on(own_redis, tmp_path) as (legacy, fleet),
        fleet.alive("only") as only,
        Wire(only.url) as client,
    ):
        asked = await client.tool("side_effect_then_ask", {"id": "only"})
        own_redis.kill()
        await until_said(only, '"event":"store_lost"')
        done = await client.retry(asked, {"name": accept(name="Ann")})
        assert done.text == "Hello Ann, effect 1"
        assert await _delivered(legacy, "Ann") == 1


async def test_malformed_answers_do_not_count_as_taken(own_redis: RedisServer, tmp_path: Path) -> None:
    """Ours: the owner refuses them and dies; whoever takes over still delivers the ones that follow."""
    async with (
        fleet_on(own_redis, tmp_path) as (_, fleet),
        fleet.alive("first") as first,
        fleet.alive("second") as second,
        Wire(first.url) as here,
        Wire(second.url) as there,
    ):
        asked = await here.tool("side_effect_then_ask", {"id": "malformed"})
        refused = await here.retry(asked, {"name": {"action": "perhaps"}})
        assert refused.error["code"] == -32602
        first.tell(signal.SIGKILL)
        await first.ended()
        done = await there.retry(asked, {"name": accept(name="Ann")})
        assert done.text == "Hello Ann, effect 1"
