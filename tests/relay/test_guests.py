"""Rounds of clients that are elsewhere, seen from where the exchange is."""

import asyncio
import os
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from gateway.eras.notifications import RoundFilter
from gateway.relay import guests as module
from gateway.relay.guests import Guests
from gateway.relay.letters import (
    Accepted,
    CarriedRound,
    Carry,
    Left,
    Letter,
    Said,
    Told,
    Unknown,
    open_reply,
    pack_request,
)
from gateway.relay.listener import Listener
from gateway.relay.mail import Mail
from gateway.sealing.envelope import Envelope
from gateway.stores.memory import MemoryStore
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import Outcome, Rung
from tests.support.couriers import RING, progress, reply, request
from tests.support.waiting import until


class House:
    """The guests of a replica, and the inbox of the one that they come from."""

    def __init__(self) -> None:
        self.store = MemoryStore(asyncio.get_running_loop().time, is_shared=True)
        self.guests = Guests(self._mail("there"), patience=1.0)
        self.guests.serve("crm", self._join)
        self.listeners: list[Listener] = []
        self.left: list[Listener] = []
        self._letters = self._mail("here").letters()

    def _mail(self, replica: str) -> Mail:
        metrics = Metrics(version="0", upstreams=[])
        envelope = Envelope(RING, os.urandom)
        return Mail(self.store, envelope, replica=replica, metrics=metrics, max_letter_bytes=10**6)

    async def _join(self, carried: CarriedRound) -> Listener:
        if carried.digest == "bug":
            raise ZeroDivisionError("our bug")
        listener = Listener(RoundFilter("token", "debug"), rung=Rung.LIVE)
        listener.joined(self.left.append)
        self.listeners.append(listener)
        return listener

    def send(self, number: int = 1, digest: str = "d", packed: bytes | None = None) -> None:
        packed = pack_request(request()) if packed is None else packed
        self.guests.take(Carry("here", number, "crm", "x", 1, digest, packed))

    async def listener(self) -> Listener:
        async def look() -> bool:
            return bool(self.listeners)

        await until(look)
        return self.listeners[-1]

    async def read(self) -> Letter:
        async with asyncio.timeout(5):
            return await anext(self._letters)

    async def quiet(self) -> None:
        async def look() -> bool:
            return not self.guests.senders()

        await until(look)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    made = House()
    yield made
    await made.guests.close()


async def test_a_round_that_takes_a_while_is_accepted_first(house: House) -> None:
    house.send()
    assert await house.read() == Accepted(1)
    (await house.listener()).finish(reply())
    said = await house.read()
    assert isinstance(said, Said)
    assert open_reply(said.reply).outcome is Outcome.COMPLETE
    await house.quiet()


async def test_a_round_that_was_told_something_is_streamed_where_its_client_is(house: House) -> None:
    house.send()
    listener = await house.listener()
    assert await house.read() == Accepted(1)
    listener.tell(progress(1))
    assert isinstance(await house.read(), Told)
    assert listener.is_streaming
    listener.finish(reply())
    assert isinstance(await house.read(), Said)
    await house.quiet()


async def test_what_comes_together_is_told_in_one_letter(house: House) -> None:
    house.send()
    listener = await house.listener()
    for number in range(5):
        listener.tell(progress(number))
    listener.finish(reply())
    told = await house.read()
    assert isinstance(told, Told)
    assert len(told.notifications) == 5
    assert isinstance(await house.read(), Said)


async def test_much_that_comes_together_is_told_in_several_letters(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BATCH_BYTES", 200)
    house.send()
    listener = await house.listener()
    for number in range(6):
        listener.tell(progress(number))
    listener.finish(reply())
    told: list[bytes] = []
    sequences = []
    while isinstance(letter := await house.read(), Told):
        assert len(letter.notifications) < 6
        told += letter.notifications
        sequences.append(letter.sequence)
    assert len(told) == 6
    assert sequences == sorted(set(sequences))


async def test_a_bug_of_ours_is_logged_here_and_told_there(house: House) -> None:
    with capture_logs() as lines:
        house.send(digest="bug")
        said = await house.read()
        await house.quiet()
        await asyncio.sleep(0)
    assert isinstance(said, Said)
    assert open_reply(said.reply).outcome is Outcome.INTERNAL
    assert [line["event"] for line in lines] == ["internal_error"]


async def test_a_round_of_a_version_to_come_is_not_known(house: House) -> None:
    house.send(packed=b"[]")
    assert await house.read() == Unknown(1)
    await house.quiet()


async def test_a_client_that_left_is_written_to_no_more(house: House) -> None:
    house.send()
    assert await house.read() == Accepted(1)
    house.guests.leave(Left("here", 1))
    await house.quiet()
    assert house.left == house.listeners
    assert house.store._inboxes["here"].empty()


async def test_a_goodbye_of_nobody_is_nothing(house: House) -> None:
    house.guests.leave(Left("here", 1))
    house.send()
    house.guests.leave(Left("elsewhere", 1))
    assert await house.read() == Accepted(1)
    assert house.left == []


async def test_a_replica_that_died_takes_no_round_with_it(house: House) -> None:
    house.send()
    assert await house.read() == Accepted(1)
    house.guests.lost("here")
    await house.quiet()
    assert house.left == []
    assert house.store._inboxes["here"].empty()


async def test_rounds_that_cannot_be_finished_here_are_given_back_at_the_end(house: House) -> None:
    house.send(1)
    house.send(2)
    assert {await house.read(), await house.read()} == {Accepted(1), Accepted(2)}
    house.listeners[0].finish(reply())
    await house.guests.close()
    last = [await house.read(), await house.read()]
    assert [type(letter) for letter in last] == [Said, Unknown]


async def test_there_are_only_so_many_guests_at_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_GUESTS", 1)
    house.send(1)
    house.send(2)
    shed = await house.read()
    assert isinstance(shed, Said)
    assert open_reply(shed.reply).outcome is Outcome.SHED
