"""Redis that is not there, is frozen, forgets, or refuses: bounded, told, and healed without help."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable
from contextlib import aclosing
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.settings.store_url import StoreUrl
from gateway.stores.protocol import Owner, StoreUnavailable
from gateway.stores.redis import RedisStore, Times
from tests.support.redis import RedisServer
from tests.support.waiting import until

TIMES = Times(operation=0.3, block=0.2)
BOUND = 1.0
MINUTE = 60.0


@pytest.fixture
async def store(own_redis_server: RedisServer) -> AsyncIterator[RedisStore]:
    made = RedisStore(own_redis_server.url, times=TIMES)
    await made.start()
    yield made
    await made.close()


async def _reached(store: RedisStore) -> bool:
    try:
        await store.is_alive("anyone")
    except StoreUnavailable:
        return False
    return True


async def _refused_in_time(operation: Awaitable[Any]) -> None:
    async with asyncio.timeout(BOUND):
        with pytest.raises(StoreUnavailable):
            await operation


async def test_a_gateway_starts_without_redis_and_finds_it_later(own_redis_server: RedisServer) -> None:
    own_redis_server.kill()
    store = RedisStore(own_redis_server.url, times=TIMES)
    async with asyncio.timeout(BOUND):
        await store.start()
    assert not store.is_available()
    assert store.steady_seconds() == 0
    await _refused_in_time(store.beat("a", MINUTE))
    own_redis_server.start()
    await until(lambda: _reached(store))
    assert store.is_available()
    assert 0 <= store.steady_seconds() < 5
    await store.close()


async def test_no_operation_hangs_while_redis_says_nothing(
    store: RedisStore, own_redis_server: RedisServer
) -> None:
    await store.record("x", "a", 2, MINUTE)
    own_redis_server.freeze()
    operations = [
        store.beat("a", MINUTE),
        store.is_alive("a"),
        store.leave("a"),
        store.record("x", "a", 3, MINUTE),
        store.owner("x"),
        store.forget("x", "a"),
        store.post("a", b"letter"),
        *(store.owner("x") for _ in range(100)),
    ]
    async with asyncio.timeout(BOUND):
        answers = await asyncio.gather(*operations, return_exceptions=True)
    assert [answer for answer in answers if not isinstance(answer, StoreUnavailable)] == []
    assert not store.is_available()


async def test_an_answer_that_comes_too_late_is_not_taken_for_another_s(
    store: RedisStore, own_redis_server: RedisServer
) -> None:
    """Ours: a connection on which somebody stopped waiting must not be used again."""
    names = [f"x{number}" for number in range(8)]
    for name in names:
        await store.record(name, name, 2, MINUTE)
    own_redis_server.freeze()
    await asyncio.gather(*(_refused_in_time(store.owner(name)) for name in names))
    own_redis_server.thaw()
    await until(lambda: _reached(store))
    for name in reversed(names):
        owner = await store.owner(name)
        assert owner is not None
        assert owner.replica == name


async def test_a_caller_that_is_cancelled_leaves_no_answer_behind_for_the_next(store: RedisStore) -> None:
    for name in ("x", "y"):
        await store.record(name, name, 2, MINUTE)
    for _ in range(50):
        asking = asyncio.ensure_future(store.owner("x"))
        for _ in range(3):
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        owner = await store.owner("y")
        assert owner is not None
        assert owner.replica == "y"


async def test_an_inbox_outlives_a_redis_that_was_restarted_with_nothing_left(
    store: RedisStore, own_redis_server: RedisServer
) -> None:
    async with asyncio.timeout(10), aclosing(store.inbox("a")) as inbox:
        for turn in range(3):
            await store.post("a", b"before %d" % turn)
            assert await anext(inbox) == b"before %d" % turn
            waiting = asyncio.ensure_future(anext(inbox))
            own_redis_server.kill()
            own_redis_server.start()
            await until(lambda: _reached(store))
            await store.post("a", b"after %d" % turn)
            assert await waiting == b"after %d" % turn


async def test_what_came_while_the_reader_was_cut_off_is_read_once_and_in_order(
    store: RedisStore, own_redis_server: RedisServer
) -> None:
    sent = [b"%d" % number for number in range(200)]
    got: list[bytes] = []

    async def read() -> None:
        async with aclosing(store.inbox("a")) as inbox:
            while True:
                got.append(await anext(inbox))

    reading = asyncio.ensure_future(read())
    cut = 0
    for letter in sent:
        await store.post("a", letter)
        if int(letter) % 20 == 0:
            cut += await _cut_off_readers(own_redis_server)

    async def is_all_there() -> bool:
        return len(got) >= len(sent)

    await until(is_all_there)
    assert got == sent
    assert cut > 0
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)


async def _cut_off_readers(server: RedisServer) -> int:
    """Close every connection that is reading an inbox now."""
    other = RedisStore(server.url, times=TIMES)
    readers = [client for client in await other._redis.client_list() if client["cmd"] == "xread"]
    for client in readers:
        await other._redis.client_kill_filter(_id=client["id"])
    await other.close()
    return len(readers)


async def test_letters_of_a_redis_whose_clock_is_behind_the_last_one_s_arrive(store: RedisStore) -> None:
    """Ours: ids are times, and another machine may have taken over with another idea of it."""
    async with asyncio.timeout(5), aclosing(store.inbox("a")) as inbox:
        far_ahead = "9999999999999-0"
        await store._redis.xadd("holdfast:inbox:a", {"letter": b"first"}, id=far_ahead)
        assert await anext(inbox) == b"first"
        await store._redis.flushall()
        await store.post("a", b"second")
        assert await anext(inbox) == b"second"


async def test_a_redis_that_has_forgotten_everything_counts_as_steady_only_from_then_on(
    store: RedisStore,
) -> None:
    await store.beat("a", MINUTE)
    await store.beat("a", MINUTE)
    loop = asyncio.get_running_loop()
    store._steady_since = loop.time() - 100
    await store._redis.flushall()
    with capture_logs() as lines:
        await store.beat("a", MINUTE)
    assert store.steady_seconds() < 5
    assert [line["event"] for line in lines] == ["store_emptied"]


async def test_a_redis_that_only_copies_another_is_not_there_until_it_takes_writes_again(
    store: RedisStore, own_redis_server: RedisServer
) -> None:
    """After a failover: the address leads to what is a copy now."""
    admin = RedisStore(own_redis_server.url, times=TIMES)
    await admin._redis.replicaof("127.0.0.1", "1")
    await _refused_in_time(store.beat("a", MINUTE))
    assert not store.is_available()
    await admin._redis.replicaof("NO", "ONE")
    await store.beat("a", MINUTE)
    assert store.is_available()
    await admin.close()


async def test_a_redis_that_can_be_read_and_takes_nothing_is_lost_until_it_takes_a_beat(
    store: RedisStore, own_redis_server: RedisServer
) -> None:
    """Ours: with its memory full it was found again with every look into the inbox, and lost with every beat."""
    admin = RedisStore(own_redis_server.url, times=TIMES)
    with capture_logs() as lines:
        await admin._redis.config_set("maxmemory", "1")
        for _ in range(3):
            await _refused_in_time(store.beat("a", MINUTE))
            assert not await store.is_alive("a")
            assert not await store.take_over("x", seen=Owner("b", 2, 1), replica="a", seconds=MINUTE)
            assert not store.is_available()
            assert store.steady_seconds() == 0
        await admin._redis.config_set("maxmemory", "0")
        await store.beat("a", MINUTE)
        assert store.is_available()
    assert [line["event"] for line in lines] == ["store_lost", "store_found"]
    await admin.close()


async def test_a_redis_that_has_no_connection_left_is_lost_although_the_inbox_has_one(
    store: RedisStore, own_redis_server: RedisServer
) -> None:
    """Ours: the reader, which had come in time, found it again each second, and each beat lost it."""
    admin = RedisStore(own_redis_server.url, times=TIMES)
    await admin.start()
    with capture_logs() as lines:
        await store._look("holdfast:inbox:a", [])
        await admin._redis.config_set("maxclients", "2")
        await store._redis.connection_pool.disconnect()
        for _ in range(3):
            await _refused_in_time(store.beat("a", MINUTE))
            assert await store._look("holdfast:inbox:a", []) == []
            assert not store.is_available()
        await admin._redis.config_set("maxclients", "100")
        await store.beat("a", MINUTE)
        assert store.is_available()
    assert [line["event"] for line in lines] == ["store_lost", "store_found"]
    await admin.close()


async def test_losing_and_finding_redis_is_one_line_each(
    store: RedisStore, own_redis_server: RedisServer
) -> None:
    with capture_logs() as lines:
        own_redis_server.kill()
        for _ in range(5):
            await _refused_in_time(store.is_alive("a"))
        own_redis_server.start()
        await until(lambda: _reached(store))
        await store.is_alive("a")
    assert [line["event"] for line in lines] == ["store_lost", "store_found"]
    assert {line["store"] for line in lines} == {f"redis://127.0.0.1:{own_redis_server.port}/0"}


async def test_a_password_is_in_no_log_line_and_in_no_error(own_redis_server: RedisServer) -> None:
    url = StoreUrl(f"redis://user:hunter2@127.0.0.1:{own_redis_server.port}/3")
    store = RedisStore(url, times=TIMES)
    with capture_logs() as lines:
        await store.start()
        with pytest.raises(StoreUnavailable) as refusal:
            await store.beat("a", MINUTE)
    assert lines
    assert not store.is_available()
    shown = f"{lines} {refusal.value} {refusal.value.__context__} {store!r} {url!r} {url}"
    assert "hunter2" not in shown
    assert lines[0]["reason"] == "AuthenticationError"
    await store.close()


async def test_two_gateways_with_prefixes_of_their_own_do_not_see_each_other(
    redis_server: RedisServer,
) -> None:
    one, other = (RedisStore(redis_server.url, prefix=f"{uuid.uuid4().hex}:") for _ in range(2))
    await one.beat("a", MINUTE)
    await one.record("x", "a", 2, MINUTE)
    assert not await other.is_alive("a")
    assert await other.owner("x") is None
    await one.close()
    await other.close()


async def test_more_at_once_than_there_are_connections_wait_for_their_turn(redis_server: RedisServer) -> None:
    store = RedisStore(redis_server.url, prefix=f"{uuid.uuid4().hex}:", connections=2)
    taken = await asyncio.gather(*(store.record(f"x{number}", "a", 2, MINUTE) for number in range(200)))
    assert all(taken)
    await store.close()
