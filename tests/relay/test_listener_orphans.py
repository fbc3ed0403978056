"""A client whose exchange was driven elsewhere, and lost there: somebody else cares for it, or it is told."""

import asyncio

from gateway.eras.notifications import RoundFilter
from gateway.relay.listener import Listener
from gateway.telemetry.names import Rung
from tests.support.couriers import heard, progress, reply


def _listener() -> Listener:
    return Listener(RoundFilter("token", None), rung=Rung.ROUTED)


async def test_an_orphan_goes_to_its_heir_and_the_client_notices_nothing() -> None:
    listener = _listener()
    loss = RuntimeError("gone")
    adopted: list[tuple[Listener, Exception]] = []
    listener.entrust(lambda orphan, why: adopted.append((orphan, why)))
    waiting = asyncio.ensure_future(heard(listener))
    await asyncio.sleep(0)
    listener.orphan(loss, reply("the last word"))
    assert adopted == [(listener, loss)]
    assert not waiting.done()
    listener.finish(reply("found again"))
    assert await waiting == reply("found again")


async def test_an_orphan_without_an_heir_gets_the_last_word() -> None:
    listener = _listener()
    listener.orphan(RuntimeError(), reply("the last word"))
    assert await heard(listener) == reply("the last word")


async def test_one_is_orphaned_once_and_not_after_the_end() -> None:
    listener = _listener()
    adopted: list[Listener] = []
    listener.entrust(lambda orphan, _: adopted.append(orphan))
    listener.finish(reply())
    listener.orphan(RuntimeError(), reply("too late"))
    assert adopted == []
    assert await heard(listener) == reply()


async def test_who_drove_the_exchange_and_is_lost_is_not_told_that_the_client_leaves() -> None:
    listener = _listener()
    left: list[Listener] = []
    listener.joined(left.append)
    listener.entrust(lambda _, __: None)
    listener.orphan(RuntimeError(), reply())
    listener.left()
    assert left == []
    listener.joined(left.append)
    listener.left()
    assert left == [listener]


async def test_all_that_waits_can_be_taken_at_once() -> None:
    listener = _listener()
    for number in range(3):
        listener.tell(progress(number))
    assert len(listener.rest()) == 3
    assert listener.rest() == []
