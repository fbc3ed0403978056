"""A round whose client is at one replica and whose exchange is at another: carried, heard, left, lost."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.errors import GatewayError, Overloaded, StateRejected
from gateway.relay.courier import Bounds
from gateway.relay.errands import OwnerGone
from gateway.relay.letters import Carry, Told, encode
from gateway.relay.listener import Listener, Reply
from gateway.sealing.keyring import Key, Keyring
from gateway.stores.memory import MemoryStore
from gateway.stores.protocol import StoreUnavailable
from gateway.telemetry.names import Outcome, Rung
from gateway.wire.jsonrpc import Notification, Raw, decode
from gateway.wire.jsonrpc import encode as encode_json
from tests.support.couriers import (
    EXCHANGE,
    HEARTBEAT,
    Replica,
    Replicas,
    heard,
    progress,
    replicas_on_memory,
    replicas_on_redis,
    reply,
    request,
)
from tests.support.redis import RedisServer
from tests.support.waiting import until

BOUNDS = Bounds(letter_bytes=256 * 1024)
RESTLESS = Bounds(heartbeat=HEARTBEAT, outage=2.0, reminder=0.5)
"""For tests of death and loss. On a busy machine even the living may seem dead by it, so only for those."""
restless = pytest.mark.parametrize("bounds", [RESTLESS])


@pytest.fixture
def bounds() -> Bounds:
    return BOUNDS


@pytest.fixture(params=["memory", "redis"])
async def replicas(request: pytest.FixtureRequest, bounds: Bounds) -> AsyncIterator[Replicas]:
    if request.param == "memory":
        async with replicas_on_memory(bounds) as made:
            yield made
    else:
        async with replicas_on_redis(request.getfixturevalue("redis_server"), bounds) as made:
            yield made


@pytest.fixture
async def here(replicas: Replicas) -> Replica:
    return await replicas("here")


@pytest.fixture
async def there(replicas: Replicas, here: Replica) -> Replica:
    made = await replicas("there")
    await replicas.alive(here, made)
    return made


def _text(found: bytes | Reply) -> Any:
    assert isinstance(found, Reply)
    assert found.result is not None
    return decode(encode_json(found.result["text"]))


def _progress(found: bytes | Reply) -> Any:
    assert isinstance(found, bytes)
    return decode(found)["params"]["progress"]


async def _count(replica: Replica, kind: str) -> float:
    return replica.metrics.registry.get_sample_value("holdfast_letters_total", {"kind": kind}) or 0.0


# --- a round -------------------------------------------------------------------------


async def test_a_round_is_carried_out_where_the_exchange_is(here: Replica, there: Replica) -> None:
    there.outcome = reply("booked")
    listener = await here.carry("there", round_=3, digest="abc")

    assert _text(await heard(listener)) == "booked"
    (carried,) = there.rounds
    assert (carried.sender, carried.exchange, carried.round, carried.digest) == ("here", EXCHANGE, 3, "abc")
    assert (listener.rung, listener.exchange_id, listener.round) == (Rung.ROUTED, EXCHANGE, 3)


async def test_what_is_heard_there_is_heard_here_in_order_and_as_it_comes(
    here: Replica, there: Replica
) -> None:
    carrying = asyncio.ensure_future(here.carry("there"))
    guest = await there.guest()
    listener = await carrying  # accepted, with nothing to be heard yet
    told: list[Any] = []
    for number in range(0, 100, 10):
        for step in range(10):
            guest.tell(progress(number + step))
        told += [_progress(await heard(listener)) for _ in range(10)]
    guest.finish(reply())
    found = await heard(listener)
    assert told == list(range(100))
    assert _text(found) == "done"


async def test_progress_has_the_token_of_the_client_that_listens_now(here: Replica, there: Replica) -> None:
    carrying = asyncio.ensure_future(here.carry("there", request=request(progress_token=0)))
    (await there.guest()).tell(progress(1))
    found = await heard(await carrying)
    assert isinstance(found, bytes)
    assert decode(found)["params"] == {"progressToken": 0, "progress": 1}


async def test_a_client_that_wants_no_logs_gets_none(here: Replica, there: Replica) -> None:
    carrying = asyncio.ensure_future(here.carry("there", request=request(log_level="error")))
    guest = await there.guest()
    for level in ("info", "critical"):
        params = {"level": Raw(encode_json(level)), "data": Raw(b'"x"')}
        guest.tell(Notification("notifications/message", params))
    guest.finish(reply())
    listener = await carrying
    found = await heard(listener)
    assert isinstance(found, bytes)
    assert decode(found)["params"]["level"] == "critical"
    assert _text(await heard(listener)) == "done"


async def test_rounds_at_the_same_time_do_not_mix(here: Replica, there: Replica) -> None:
    async def one(number: int) -> None:
        listener = await here.carry("there", digest=str(number))
        assert _progress(await heard(listener)) == number
        assert _text(await heard(listener)) == str(number)

    clients = [asyncio.ensure_future(one(number)) for number in range(50)]
    await there.guest(49)
    pairs = list(zip(there.rounds, there.listeners, strict=True))
    for carried, guest in reversed(pairs):
        guest.tell(progress(int(carried.digest)))
    for carried, guest in pairs:
        guest.finish(reply(carried.digest))
    await asyncio.gather(*clients)


async def test_both_may_carry_for_each_other(here: Replica, there: Replica) -> None:
    here.outcome, there.outcome = reply("from here"), reply("from there")
    outward, homeward = await asyncio.gather(here.carry("there"), there.carry("here"))
    assert _text(await heard(outward)) == "from there"
    assert _text(await heard(homeward)) == "from here"


async def test_a_round_that_ends_at_once_costs_two_letters(here: Replica, there: Replica) -> None:
    there.outcome = reply()
    await heard(await here.carry("there"))
    sent = {
        kind: await _count(here, kind) + await _count(there, kind) for kind in ("carry", "accepted", "said")
    }
    assert sent == {"carry": 1, "accepted": 0, "said": 1}


# --- refusals -----------------------------------------------------------------------


@pytest.mark.parametrize("refusal", [StateRejected("ticket of an earlier round"), Overloaded("full")])
async def test_a_refusal_there_is_the_client_s_last_word_here(
    here: Replica, there: Replica, refusal: GatewayError
) -> None:
    there.refusal = refusal
    found = await heard(await here.carry("there"))
    assert isinstance(found, Reply)
    assert found.error is not None
    assert (found.status, found.error.code, found.reason) == (
        refusal.http_status,
        refusal.rpc_code,
        refusal.reason,
    )
    assert dict(found.headers) == refusal.headers


async def test_a_store_that_is_lost_there_makes_the_client_try_again(here: Replica, there: Replica) -> None:
    there.refusal = StoreUnavailable("gone")
    found = await heard(await here.carry("there"))
    assert isinstance(found, Reply)
    assert (found.outcome, found.status) == (Outcome.SHED, 503)


async def test_an_exchange_that_is_not_there_is_looked_for_on_the_next_rung(
    here: Replica, there: Replica
) -> None:
    with pytest.raises(OwnerGone, match="does not know"):
        await here.carry("there", exchange="another")
    with pytest.raises(OwnerGone, match="does not know"):
        await here.carry("there", upstream="another")


async def test_a_result_that_no_letter_can_hold_is_an_error_and_not_silence(
    here: Replica, there: Replica
) -> None:
    there.outcome = reply("x" * BOUNDS.letter_bytes)
    found = await heard(await here.carry("there"))
    assert isinstance(found, Reply)
    assert found.reason == "upstream_protocol"


async def test_a_notification_that_no_letter_can_hold_does_not_cost_the_result(
    here: Replica, there: Replica
) -> None:
    carrying = asyncio.ensure_future(here.carry("there"))
    guest = await there.guest()
    params = {"level": Raw(b'"error"'), "data": Raw(encode_json("x" * BOUNDS.letter_bytes))}
    guest.tell(Notification("notifications/message", params))
    listener = await carrying
    guest.finish(reply())
    assert _text(await heard(listener)) == "done"


async def test_a_request_that_no_letter_can_hold_is_refused(here: Replica, there: Replica) -> None:
    params = {"arguments": Raw(encode_json("x" * BOUNDS.letter_bytes))}
    with pytest.raises(GatewayError, match="too large"):
        await here.carry("there", request=request(params=params))
    assert here.courier._errands._errands == {}


# --- leaving ------------------------------------------------------------------------


async def test_a_client_that_leaves_here_has_left_there(here: Replica, there: Replica) -> None:
    carrying = asyncio.ensure_future(here.carry("there"))
    guest = await there.guest()
    (await carrying).left()

    async def has_left() -> bool:
        return there.left == [guest]

    await until(has_left)
    assert here.courier._errands._errands == {}


async def test_a_client_that_leaves_before_the_round_is_under_way_has_left_too(
    replicas: Replicas, here: Replica, there: Replica
) -> None:
    may_go_on = asyncio.Event()
    join = there.on_carry

    async def slow(carried: Any) -> Listener:
        listener = await join(carried)
        await may_go_on.wait()
        return listener

    there.courier.serve("crm", slow)
    carrying = asyncio.ensure_future(here.carry("there"))
    guest = await there.guest()
    carrying.cancel()
    await asyncio.gather(carrying, return_exceptions=True)

    async def is_told() -> bool:
        return any(guest.has_left for guest in there.courier._guests._guests.values())

    await until(is_told)
    may_go_on.set()

    async def has_left() -> bool:
        return there.left == [guest]

    await until(has_left)


# --- death --------------------------------------------------------------------------


@restless
async def test_a_replica_that_never_lived_is_found_dead_at_once(replicas: Replicas, here: Replica) -> None:
    async def is_steady() -> bool:
        return here.store.steady_seconds() > HEARTBEAT * 3

    await until(is_steady)
    with pytest.raises(OwnerGone, match="dead"):
        await here.carry("nobody")


@restless
async def test_an_owner_that_dies_in_mid_round_leaves_the_client_to_the_heir(
    replicas: Replicas, here: Replica, there: Replica
) -> None:
    carrying = asyncio.ensure_future(here.carry("there"))
    guest = await there.guest()
    listener = await carrying
    guest.tell(progress(1))
    assert _progress(await heard(listener)) == 1
    losses: list[Exception] = []

    def adopt(orphan: Listener, loss: Exception) -> None:
        losses.append(loss)
        orphan.tell(progress(0))  # has been, and is not told again
        orphan.tell(progress(2))
        orphan.finish(reply("from the next rung"))

    listener.entrust(adopt)
    await replicas.kill(there)

    assert _progress(await heard(listener)) == 2
    assert _text(await heard(listener)) == "from the next rung"
    (loss,) = losses
    assert isinstance(loss, OwnerGone)


@restless
async def test_an_owner_that_dies_is_the_last_word_where_nobody_inherits(
    replicas: Replicas, here: Replica, there: Replica
) -> None:
    carrying = asyncio.ensure_future(here.carry("there"))
    await there.guest()
    listener = await carrying
    await replicas.kill(there)
    found = await heard(listener)
    assert isinstance(found, Reply)
    assert (found.outcome, found.reason) == (Outcome.LOST, "call_lost")


@restless
async def test_an_owner_that_dies_before_it_took_the_round_is_gone(
    replicas: Replicas, here: Replica, there: Replica
) -> None:
    await replicas.kill(there)
    with pytest.raises(OwnerGone):
        await here.carry("there")
    assert here.courier._errands._errands == {}


async def test_an_owner_that_goes_in_an_orderly_way_tells_so_at_once(
    replicas: Replicas, here: Replica, there: Replica
) -> None:
    carrying = asyncio.ensure_future(here.carry("there"))
    await there.guest()
    listener = await carrying
    lost: list[Exception] = []
    listener.entrust(lambda _, loss: lost.append(loss))
    await there.courier.close()

    async def is_lost() -> bool:
        return bool(lost)

    await until(is_lost, seconds=BOUNDS.heartbeat)


@restless
async def test_a_round_whose_client_s_replica_has_died_goes_on(
    replicas: Replicas, here: Replica, there: Replica
) -> None:
    """Ours: the client is not dead; it comes back to another replica with the same ticket."""
    carrying = asyncio.ensure_future(here.carry("there"))
    guest = await there.guest()
    await carrying
    await replicas.kill(here)

    async def is_let_go() -> bool:
        return not there.courier._guests.senders()

    await until(is_let_go)
    assert there.left == []
    guest.finish(reply())
    third = await replicas("third")
    there.outcome = reply("kept")
    assert _text(await heard(await third.carry("there"))) == "kept"


# --- letters that are lost, doubled or foreign --------------------------------------


async def test_a_round_that_is_asked_for_again_is_not_carried_out_twice(
    here: Replica, there: Replica
) -> None:
    carrying = asyncio.ensure_future(here.carry("there"))
    guest = await there.guest()
    listener = await carrying
    loop = asyncio.get_running_loop()
    for _ in range(3):
        await here.courier._errands.remind(loop.time())
    await here.carry("there", digest="another")  # letters are read in order: what was sent before is read
    guest.tell(progress(1))
    guest.finish(reply())
    assert _progress(await heard(listener)) == 1
    assert _text(await heard(listener)) == "done"
    assert [carried.digest for carried in there.rounds] == ["d", "another"]


@restless
async def test_a_last_word_that_was_lost_is_asked_for_again(
    here: Replica, there: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reminder: whatever became of the letter, a client never waits for ever."""
    carrying = asyncio.ensure_future(here.carry("there"))
    guest = await there.guest()
    listener = await carrying
    sent = there.store.post
    lost: list[bytes] = []

    async def lose(to: str, letter: bytes) -> None:
        lost.append(letter)

    monkeypatch.setattr(there.store, "post", lose)
    guest.finish(reply("lost"))

    async def is_lost() -> bool:
        return bool(lost)

    await until(is_lost)
    monkeypatch.setattr(there.store, "post", sent)
    there.outcome = reply("kept")
    assert _text(await heard(listener)) == "kept"


async def test_a_replica_that_was_frozen_asks_for_all_of_its_rounds_again(
    here: Replica, there: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: for the others it was dead, and they stopped writing to it."""
    carrying = asyncio.ensure_future(here.carry("there"))
    await there.guest()
    listener = await carrying
    there.courier._guests.lost("here")
    there.outcome = reply("kept")
    monkeypatch.setattr(here.courier._hearts, "lifetime", 0.0)  # any pause is as long as death
    assert _text(await heard(listener)) == "kept"


async def test_what_is_told_twice_is_heard_once(here: Replica, there: Replica) -> None:
    carrying = asyncio.ensure_future(here.carry("there"))
    guest = await there.guest()
    listener = await carrying
    (number,) = here.courier._errands._errands
    note = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}'
    for _ in range(2):
        here.courier._hear(Told(number, 5, [note]))
    guest.finish(reply())
    assert isinstance(await heard(listener), bytes)
    assert _text(await heard(listener)) == "done"


async def test_letters_from_strangers_are_logged_and_nothing_else(
    replicas: Replicas, here: Replica, there: Replica
) -> None:
    stranger = await replicas("stranger", ring=Keyring([Key(b"x" * 32)]))
    carry = Carry("stranger", 1, "crm", EXCHANGE, 1, "d", b"")
    await stranger.courier._mail.send("there", carry)
    await stranger.store.post("there", b"garbage")
    await stranger.store.post("there", encode(carry))
    there.outcome = reply()
    assert _text(await heard(await here.carry("there"))) == "done"
    assert len(there.rounds) == 1


async def test_letters_about_a_round_that_is_over_are_ignored(here: Replica, there: Replica) -> None:
    there.outcome = reply()
    await heard(await here.carry("there"))
    for number in (0, 1, 2):
        here.courier._hear(Told(number, 99, [b"garbage"]))
    assert _text(await heard(await here.carry("there"))) == "done"


async def test_a_gateway_of_one_process_has_nobody_to_carry_to() -> None:
    store = MemoryStore(asyncio.get_running_loop().time)
    made = Replicas(lambda: store, BOUNDS)
    alone = await made("alone")
    with pytest.raises(OwnerGone):
        await alone.carry("other")
    await made.close()


# --- Redis that is restarted ----------------------------------------------------------


async def test_rounds_under_way_outlive_a_redis_that_lost_everything(own_redis_server: RedisServer) -> None:
    async with replicas_on_redis(own_redis_server, RESTLESS) as replicas:
        here, there = await replicas("here"), await replicas("there")
        await replicas.alive(here, there)
        carrying = asyncio.ensure_future(here.carry("there"))
        guest = await there.guest()
        listener = await carrying
        losses: list[Exception] = []
        listener.entrust(lambda _, loss: losses.append(loss))

        own_redis_server.kill()
        guest.tell(progress(1))
        guest.finish(reply("after all"))
        there.outcome = reply("after all")
        own_redis_server.start()

        found = await heard(listener)
        if isinstance(found, bytes):
            found = await heard(listener)
        assert _text(found) == "after all"
        assert losses == []
        assert there.left == []


async def test_a_redis_that_stays_away_too_long_is_told_to_who_waits(own_redis_server: RedisServer) -> None:
    bounds = Bounds(heartbeat=HEARTBEAT, outage=0.5)
    async with replicas_on_redis(own_redis_server, bounds) as replicas:
        here, there = await replicas("here"), await replicas("there")
        await replicas.alive(here, there)
        carrying = asyncio.ensure_future(here.carry("there"))
        await there.guest()
        listener = await carrying
        lost: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        listener.entrust(lambda _, loss: lost.set_result(loss))
        own_redis_server.kill()
        async with asyncio.timeout(5):
            assert isinstance(await lost, StoreUnavailable)
        with pytest.raises(StoreUnavailable):
            await here.carry("there")
        own_redis_server.start()


async def test_after_a_restart_living_replicas_are_not_taken_for_dead(own_redis_server: RedisServer) -> None:
    async with replicas_on_redis(own_redis_server, RESTLESS) as replicas:
        here, there = await replicas("here"), await replicas("there")
        await replicas.alive(here, there)
        there.outcome = reply()
        own_redis_server.kill()
        own_redis_server.start()

        async def is_carried() -> bool:
            try:
                return bool(_text(await heard(await here.carry("there"))) == "done")
            except StoreUnavailable:
                return False

        await until(is_carried)
