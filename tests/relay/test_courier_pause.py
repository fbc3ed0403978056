"""A replica that is about to stop has a client's connection, another one the call: the round is asked to end."""

import asyncio

from gateway.relay.courier import Bounds
from gateway.relay.listener import Reply
from tests.support.couriers import heard, replicas_on_memory, reply
from tests.support.waiting import until


async def test_a_round_is_paused_where_it_runs_once() -> None:
    """Ours: the client hears a last word before its connection ends, and the call goes on."""
    async with replicas_on_memory(Bounds()) as replicas:
        here, there = await replicas("here"), await replicas("there")
        await replicas.alive(here, there)
        carrying = asyncio.ensure_future(here.carry("there"))
        guest = await there.guest()
        listener = await carrying
        await here.courier.pause()
        await here.courier.pause()
        async with asyncio.timeout(5):
            await there.paused.wait()
        guest.finish(reply("come back"))
        found = await heard(listener)
        assert isinstance(found, Reply)
        sent = here.metrics.registry.get_sample_value("holdfast_letters_total", {"kind": "pause"})
        assert sent == 1
        assert there.left == []


async def test_what_was_exchanged_while_frozen_is_reconsidered() -> None:
    """Ours: after a freeze each exchange is asked about before anything counts as sure again."""
    async with replicas_on_memory(Bounds(heartbeat=0.1)) as replicas:
        here = await replicas("here")
        asked = []

        async def reconsider() -> None:
            asked.append(1)

        here.courier.serve("other", here.on_carry, reconsider)
        here.courier.lease.doubts += 1
        assert not here.courier.lease.is_sure

        async def look() -> bool:
            return here.courier.lease.is_sure

        await until(look)
        assert asked
