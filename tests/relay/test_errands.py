"""Rounds that were carried away, seen from where the client is: silence, refusal and nonsense from the other side."""

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from gateway.errors import Overloaded
from gateway.relay import errands as module
from gateway.relay.errands import Errands, OwnerGone
from gateway.relay.hearts import Hearts
from gateway.relay.ladder import new_listener
from gateway.relay.letters import Accepted, Carry, Left, Letter, Said, Told, Unknown, pack_reply
from gateway.relay.listener import Listener, Reply
from gateway.relay.mail import Mail
from gateway.sealing.envelope import Envelope
from gateway.stores.memory import MemoryStore
from gateway.stores.protocol import StoreUnavailable
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import Rung
from tests.support.couriers import RING, heard, reply, request

LETTERS = 3


class Shaky(MemoryStore):
    steady = 1000.0

    def steady_seconds(self) -> float:
        return self.steady


class Desk:
    """The errands of a replica, and the inbox of the one that they go to."""

    def __init__(self) -> None:
        self.store = Shaky(asyncio.get_running_loop().time, is_shared=True, most_letters=LETTERS)
        hearts = Hearts(self.store, replica="here", heartbeat=60)
        self.errands = Errands(self._mail("here"), self.store, hearts, replica="here", patience=0.1)
        self._letters = self._mail("there").letters()

    def _mail(self, replica: str) -> Mail:
        metrics = Metrics(version="0", upstreams=[])
        envelope = Envelope(RING, os.urandom)
        return Mail(self.store, envelope, replica=replica, metrics=metrics, max_letter_bytes=10**6)

    async def run(self) -> Listener:
        listener = new_listener(request(), Rung.ROUTED)
        await self.errands.run("there", "crm", "x", 1, "d", request(), listener)
        return listener

    async def read(self) -> Letter:
        async with asyncio.timeout(5):
            return await anext(self._letters)

    async def begin(self) -> tuple[int, Listener]:
        running = asyncio.ensure_future(self.run())
        carry = await self.read()
        assert isinstance(carry, Carry)
        self.errands.hear(Accepted(carry.number))
        return carry.number, await running


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    made = Desk()
    await made.store.beat("there", 60)
    yield made
    await made.errands.close()


async def test_a_replica_that_lives_and_does_not_answer_is_gone(desk: Desk) -> None:
    with pytest.raises(OwnerGone, match="does not answer"):
        await desk.run()
    assert desk.errands.owners() == set()


async def test_who_gives_up_waiting_does_not_cancel_what_may_be_under_way(desk: Desk) -> None:
    """Ours: the owner may have taken the answers; `Left` would cancel a call that the next rung looks for."""
    with pytest.raises(OwnerGone):
        await desk.run()
    assert isinstance(await desk.read(), Carry)
    await desk.errands.close()
    await desk.store.post("there", b"marker")
    assert desk.store._inboxes["there"].qsize() == 1


async def test_silence_while_letters_may_have_been_lost_proves_nothing(desk: Desk) -> None:
    desk.store.steady = 0.05
    with pytest.raises(StoreUnavailable):
        await desk.run()


async def test_a_replica_that_does_not_read_its_letters_is_gone(desk: Desk) -> None:
    for _ in range(LETTERS):
        await desk.store.post("there", b"unread")
    with pytest.raises(OwnerGone, match="does not read"):
        await desk.run()
    assert desk.errands.owners() == set()


async def test_a_replica_that_is_dead_gets_no_letter(desk: Desk) -> None:
    await desk.store.leave("there")
    with pytest.raises(OwnerGone, match="dead"):
        await desk.run()
    assert desk.store._inboxes["there"].empty()


async def test_there_are_only_so_many_errands_at_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ERRANDS", 1)
    await desk.begin()
    with pytest.raises(Overloaded):
        await desk.run()


async def test_a_last_word_implies_that_the_round_was_taken(desk: Desk) -> None:
    running = asyncio.ensure_future(desk.run())
    carry = await desk.read()
    assert isinstance(carry, Carry)
    desk.errands.hear(Said(carry.number, pack_reply(reply())))
    assert isinstance(await heard(await running), Reply)
    assert desk.errands.owners() == set()


async def test_a_last_word_that_cannot_be_read_ends_the_round_all_the_same(desk: Desk) -> None:
    number, listener = await desk.begin()
    desk.errands.hear(Said(number, b"of a version to come"))
    found = await heard(listener)
    assert isinstance(found, Reply)
    assert found.reason == "call_lost"


async def test_nonsense_among_what_is_told_is_passed_over(desk: Desk) -> None:
    number, listener = await desk.begin()
    good = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}'
    request_ = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    desk.errands.hear(Told(number, 0, [b"", b"garbage", request_, b"[]", good]))
    found = await heard(listener)
    assert isinstance(found, bytes)
    assert b'"data":1' in found


async def test_an_exchange_that_is_forgotten_in_mid_round_goes_to_the_heir(desk: Desk) -> None:
    number, listener = await desk.begin()
    losses: list[Exception] = []
    listener.entrust(lambda _, loss: losses.append(loss))
    desk.errands.hear(Unknown(number))
    assert [type(loss) for loss in losses] == [OwnerGone]


async def test_a_client_that_was_lost_with_its_owner_and_leaves_sends_nothing(desk: Desk) -> None:
    _, listener = await desk.begin()
    listener.entrust(lambda _, __: None)
    desk.errands.lost(OwnerGone("dead"), "there")
    listener.left()
    await desk.errands.close()
    assert desk.store._inboxes["there"].empty()


async def test_a_client_that_leaves_sends_one_goodbye(desk: Desk) -> None:
    number, listener = await desk.begin()
    listener.left()
    listener.left()
    assert await desk.read() == Left("here", number)
    await desk.errands.close()
    assert desk.store._inboxes["there"].empty()


async def test_only_rounds_that_were_asked_for_before_are_asked_for_again(desk: Desk) -> None:
    number, _ = await desk.begin()
    now = asyncio.get_running_loop().time()
    await desk.errands.remind(now - 60)
    assert desk.store._inboxes["there"].empty()
    await desk.errands.remind(now + 1)
    again = await desk.read()
    assert isinstance(again, Carry)
    assert again.number == number
