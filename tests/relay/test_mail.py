"""Letters in and out of one replica: sealed, bounded, and stubborn where it matters."""

import asyncio
import os
from contextlib import aclosing

import pytest
from structlog.testing import capture_logs

from gateway.relay.letters import Accepted, Letter, Said, Unknown
from gateway.relay.mail import LetterTooLarge, Mail
from gateway.sealing.envelope import Envelope
from gateway.stores.memory import MemoryStore
from gateway.stores.protocol import InboxFull, StoreUnavailable
from gateway.telemetry.metrics import Metrics
from tests.support.couriers import RING


class Failing(MemoryStore):
    """A store that does not take the next so many letters."""

    failures = 0
    tries = 0

    async def post(self, replica: str, letter: bytes) -> None:
        self.tries += 1
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("away")
        await super().post(replica, letter)


@pytest.fixture
def store() -> Failing:
    return Failing(lambda: 0.0, is_shared=True)


@pytest.fixture
def mail(store: Failing) -> Mail:
    return _mail(store, "a")


def _mail(store: MemoryStore, replica: str) -> Mail:
    return Mail(
        store,
        Envelope(RING, os.urandom),
        replica=replica,
        metrics=Metrics(version="0", upstreams=[]),
        max_letter_bytes=1000,
    )


async def _read(mail: Mail, count: int) -> list[Letter]:
    async with asyncio.timeout(5), aclosing(mail.letters()) as letters:
        return [await anext(letters) for _ in range(count)]


async def test_a_letter_is_read_by_whom_it_was_sent_to(store: Failing, mail: Mail) -> None:
    await mail.send("b", Accepted(7))
    await mail.send("b", Said(7, b"text"))
    assert await _read(_mail(store, "b"), 2) == [Accepted(7), Said(7, b"text")]


async def test_what_lies_in_the_store_is_sealed(store: Failing, mail: Mail) -> None:
    await mail.send("b", Said(7, b"a secret answer"))
    assert b"secret" not in await anext(store.inbox("b"))


async def test_a_letter_in_the_wrong_box_is_told_in_the_log_and_not_read(store: Failing, mail: Mail) -> None:
    await mail.send("c", Accepted(1))
    await store.post("b", await anext(store.inbox("c")))
    await store.post("b", b"garbage")
    await mail.send("b", Accepted(2))
    with capture_logs() as lines:
        assert await _read(_mail(store, "b"), 1) == [Accepted(2)]
    assert [(line["event"], line["reason"]) for line in lines] == [
        ("letter_unreadable", "tag does not verify"),
        ("letter_unreadable", "too short"),
    ]


async def test_a_letter_that_is_too_large_is_not_sent(store: Failing, mail: Mail) -> None:
    with pytest.raises(LetterTooLarge):
        await mail.send("b", Said(1, b"x" * 1000))
    with pytest.raises(LetterTooLarge):
        await mail.deliver("b", Said(1, b"x" * 1000), seconds=5)
    assert store.tries == 0


async def test_who_sends_once_hears_that_it_failed(store: Failing, mail: Mail) -> None:
    store.failures = 1
    with pytest.raises(StoreUnavailable):
        await mail.send("b", Accepted(1))
    assert store.tries == 1


async def test_a_delivery_is_tried_until_it_is_made(store: Failing, mail: Mail) -> None:
    store.failures = 3
    assert await mail.deliver("b", Accepted(1), seconds=5)
    assert await _read(_mail(store, "b"), 1) == [Accepted(1)]


async def test_a_delivery_ends_when_its_time_is_over(store: Failing, mail: Mail) -> None:
    store.failures = 1000
    assert not await mail.deliver("b", Accepted(1), seconds=0.1)
    assert 1 <= store.tries < 5


async def test_a_delivery_ends_when_nobody_wants_it(store: Failing, mail: Mail) -> None:
    store.failures = 1000
    assert not await mail.deliver("b", Accepted(1), seconds=5, is_wanted=lambda: store.tries < 2)
    assert store.tries == 2


async def test_an_inbox_that_is_full_is_told_as_such(mail: Mail) -> None:
    full = _mail(MemoryStore(lambda: 0.0, is_shared=True, most_letters=1), "a")
    await full.send("b", Unknown(1))
    with pytest.raises(InboxFull):
        await full.send("b", Unknown(2))


async def test_letters_that_were_taken_are_counted_by_kind(store: Failing) -> None:
    metrics = Metrics(version="0", upstreams=[])
    mail = Mail(store, Envelope(RING, os.urandom), replica="a", metrics=metrics, max_letter_bytes=1000)
    await mail.send("b", Accepted(1))
    await mail.send("b", Unknown(1))
    store.failures = 1
    with pytest.raises(StoreUnavailable):
        await mail.send("b", Accepted(2))
    count = metrics.registry.get_sample_value
    assert count("holdfast_letters_total", {"kind": "accepted"}) == 1
    assert count("holdfast_letters_total", {"kind": "unknown"}) == 1
