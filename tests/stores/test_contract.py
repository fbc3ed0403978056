"""What every store promises, asked of each kind: the one in memory, and a real Redis."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from gateway.stores.memory import MemoryStore
from gateway.stores.protocol import InboxFull, Owner, Store
from gateway.stores.redis import RedisStore
from tests.support.waiting import until

MINUTE = 60.0
BRIEF = 0.05
MOST_LETTERS = 8


@pytest.fixture(params=["memory", "redis"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    made: Store
    if request.param == "memory":
        made = MemoryStore(asyncio.get_running_loop().time, is_shared=True, most_letters=MOST_LETTERS)
    else:
        server = request.getfixturevalue("redis_server")
        made = RedisStore(server.url, prefix=f"test:{uuid.uuid4().hex}:", most_letters=MOST_LETTERS)
    await made.start()
    yield made
    await made.close()


async def _briefly(store: Store) -> None:
    """Until what was given a brief time before has lost it."""
    await store.beat("witness", BRIEF)

    async def is_over() -> bool:
        return not await store.is_alive("witness")

    await until(is_over)


async def _read(store: Store, replica: str, count: int) -> list[bytes]:
    letters: list[bytes] = []
    async with asyncio.timeout(5), aclosing(store.inbox(replica)) as inbox:
        async for letter in inbox:
            letters.append(letter)
            if len(letters) == count:
                break
    return letters


async def test_a_store_that_was_started_is_there_and_shared(store: Store) -> None:
    assert store.is_available()
    assert store.is_shared
    assert store.steady_seconds() >= 0


# --- hearts ----------------------------------------------------------------------


async def test_a_replica_lives_while_its_heart_beats(store: Store) -> None:
    assert not await store.is_alive("a")
    await store.beat("a", MINUTE)
    assert await store.is_alive("a")
    assert not await store.is_alive("b")


async def test_a_heart_stops_when_it_does_not_beat_again_in_time(store: Store) -> None:
    await store.beat("a", BRIEF)
    await _briefly(store)
    assert not await store.is_alive("a")


async def test_a_beat_prolongs_a_life_that_was_about_to_end(store: Store) -> None:
    await store.beat("a", BRIEF)
    await store.beat("a", MINUTE)
    await _briefly(store)
    assert await store.is_alive("a")


async def test_a_replica_that_leaves_is_gone_at_once(store: Store) -> None:
    await store.beat("a", MINUTE)
    await store.leave("a")
    assert not await store.is_alive("a")
    await store.leave("a")


# --- owners ----------------------------------------------------------------------


async def test_an_exchange_that_nobody_wrote_down_has_no_owner(store: Store) -> None:
    assert await store.owner("x") is None


async def test_an_owner_is_found_at_the_stage_last_written_down(store: Store) -> None:
    assert await store.record("x", "a", 2, MINUTE)
    assert await store.owner("x") == Owner("a", 2, 1)
    assert await store.record("x", "a", 3, MINUTE)
    assert await store.owner("x") == Owner("a", 3, 1)
    assert await store.owner("y") is None


async def test_a_stage_never_goes_back(store: Store) -> None:
    """Ours: else a late retry of round 1 would let the answers of round 2 be delivered once more."""
    await store.record("x", "a", 5, MINUTE)
    assert await store.record("x", "a", 3, MINUTE)
    assert await store.owner("x") == Owner("a", 5, 1)
    assert await store.record("x", "a", 2**31, MINUTE)
    assert await store.record("x", "a", 10, MINUTE)
    assert await store.owner("x") == Owner("a", 2**31, 1)


async def test_what_another_owns_is_not_written_over(store: Store) -> None:
    await store.record("x", "a", 2, MINUTE)
    assert not await store.record("x", "b", 9, MINUTE)
    assert await store.owner("x") == Owner("a", 2, 1)


async def test_an_owner_is_forgotten_when_its_time_is_over(store: Store) -> None:
    await store.record("x", "a", 2, BRIEF)
    await _briefly(store)
    assert await store.owner("x") is None
    assert await store.record("x", "b", 2, MINUTE)
    assert await store.owner("x") == Owner("b", 2, 1)


async def test_who_takes_over_is_the_owner_under_a_higher_fence(store: Store) -> None:
    await store.record("x", "a", 2, MINUTE)
    seen = await store.owner("x")
    assert seen is not None
    assert await store.take_over("x", seen=seen, replica="b", seconds=MINUTE)
    assert await store.owner("x") == Owner("b", 2, 2)


async def test_a_replica_that_was_frozen_finds_that_it_owns_nothing_any_more(store: Store) -> None:
    """The fence: asked right before answers are delivered, so that they are never delivered twice."""
    await store.record("x", "a", 2, MINUTE)
    await store.take_over("x", seen=Owner("a", 2, 1), replica="b", seconds=MINUTE)
    assert not await store.record("x", "a", 3, MINUTE)
    await store.forget("x", "a")
    assert await store.owner("x") == Owner("b", 2, 2)


@pytest.mark.parametrize("changed", [Owner("a", 3, 1), Owner("b", 2, 1), Owner("a", 2, 2)])
async def test_what_has_changed_since_it_was_seen_is_not_taken_over(store: Store, changed: Owner) -> None:
    await store.record("x", "a", 2, MINUTE)
    assert not await store.take_over("x", seen=changed, replica="c", seconds=MINUTE)
    assert await store.owner("x") == Owner("a", 2, 1)


async def test_what_nobody_owns_is_not_taken_over(store: Store) -> None:
    assert not await store.take_over("x", seen=Owner("a", 2, 1), replica="b", seconds=MINUTE)
    assert await store.owner("x") is None


async def test_of_many_who_take_over_exactly_one_succeeds(store: Store) -> None:
    await store.record("x", "a", 2, MINUTE)
    seen = Owner("a", 2, 1)
    tries = [store.take_over("x", seen=seen, replica=f"r{number}", seconds=MINUTE) for number in range(50)]
    won = await asyncio.gather(*tries)
    assert sum(won) == 1
    assert await store.owner("x") == Owner(f"r{won.index(True)}", 2, 2)


async def test_taking_over_gives_the_exchange_new_time(store: Store) -> None:
    await store.record("x", "a", 2, BRIEF)
    assert await store.take_over("x", seen=Owner("a", 2, 1), replica="b", seconds=MINUTE)
    await _briefly(store)
    assert await store.owner("x") == Owner("b", 2, 2)


async def test_an_exchange_that_has_ended_is_forgotten_by_its_owner_only(store: Store) -> None:
    await store.record("x", "a", 2, MINUTE)
    await store.forget("x", "b")
    assert await store.owner("x") == Owner("a", 2, 1)
    await store.forget("x", "a")
    assert await store.owner("x") is None
    await store.forget("x", "a")


@pytest.mark.parametrize("name", ["", "a b", "1 2 3", "%d+", "é", "a:b", "{a}", "x\ny"])
async def test_names_are_only_names(store: Store, name: str) -> None:
    """Ours: what is written with separators, or matched by a pattern, must not care what a name looks like."""
    await store.record(name, name, 4, MINUTE)
    assert await store.owner(name) == Owner(name, 4, 1)
    assert not await store.record(name, name + "'", 4, MINUTE)
    assert await store.take_over(name, seen=Owner(name, 4, 1), replica=name + "'", seconds=MINUTE)
    await store.forget(name, name + "'")
    assert await store.owner(name) is None
    await store.beat(name, MINUTE)
    assert await store.is_alive(name)
    await store.post(name, b"letter")
    assert await _read(store, name, 1) == [b"letter"]


# --- letters ---------------------------------------------------------------------


async def test_letters_come_in_order_and_whole(store: Store) -> None:
    letters = [b"", b"\0\xff\r\n", b"x" * 300_000, *(str(number).encode() for number in range(4))]
    for letter in letters:
        await store.post("a", letter)
    assert await _read(store, "a", len(letters)) == letters


async def test_a_reader_that_waits_gets_a_letter_when_it_comes(store: Store) -> None:
    reading = asyncio.ensure_future(_read(store, "a", 2))
    await asyncio.sleep(0)
    await store.post("a", b"one")
    await store.post("a", b"two")
    assert await reading == [b"one", b"two"]


async def test_a_letter_reaches_the_one_it_is_addressed_to(store: Store) -> None:
    await store.post("a", b"to a")
    await store.post("b", b"to b")
    assert await _read(store, "b", 1) == [b"to b"]
    assert await _read(store, "a", 1) == [b"to a"]


async def test_a_letter_is_read_once(store: Store) -> None:
    async with asyncio.timeout(5), aclosing(store.inbox("a")) as inbox:
        for number in range(MOST_LETTERS * 3):
            await store.post("a", str(number).encode())
            assert await anext(inbox) == str(number).encode()


async def test_an_inbox_that_nobody_empties_takes_no_more_letters_than_fit(store: Store) -> None:
    for number in range(MOST_LETTERS):
        await store.post("a", str(number).encode())
    with pytest.raises(InboxFull):
        await store.post("a", b"one too many")
    assert store.is_available()
    assert await _read(store, "a", MOST_LETTERS) == [str(number).encode() for number in range(MOST_LETTERS)]


async def test_an_inbox_that_was_emptied_takes_letters_again(store: Store) -> None:
    async with asyncio.timeout(5), aclosing(store.inbox("a")) as inbox:
        for turn in range(3):
            for number in range(MOST_LETTERS - 1):
                await store.post("a", f"{turn}/{number}".encode())
            got = [await anext(inbox) for _ in range(MOST_LETTERS - 1)]
            assert got == [f"{turn}/{number}".encode() for number in range(MOST_LETTERS - 1)]
            # What was read is struck out with the next look, so look once more.
            await store.post("a", b"last")
            assert await anext(inbox) == b"last"
