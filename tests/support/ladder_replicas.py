"""Replicas of a gateway on one store and one loop, with real relays and real couriers; only the servers are ours."""

import asyncio
import os
from dataclasses import dataclass, field
from typing import Any

from gateway.errors import GatewayError
from gateway.holds.lease import Lease
from gateway.relay.courier import Bounds, Courier
from gateway.relay.hearts import BEATS_OF_DOUBT
from gateway.relay.listener import Reply
from gateway.relay.place import Shared
from gateway.relay.relay import Relay
from gateway.relay.request import ClientRequest
from gateway.sealing.box import Box
from gateway.sealing.envelope import Envelope
from gateway.sealing.keyring import Key, Keyring
from gateway.settings.upstream import Upstream
from gateway.stores.memory import MemoryStore
from gateway.stores.protocol import Owner
from gateway.telemetry.metrics import Metrics
from tests.support.asking_server import AskingServer, InProcessDialer
from tests.support.leaping_loop import LeapingLoop

HEARTBEAT = 2.0
HOLD_SECONDS = 120.0
GRACE_SECONDS = 60.0
ROUND_SECONDS = 150.0
"""No round takes longer: three owners that die unheard, a ping, and the time that a call may take."""
_STORE_SECONDS = 0.01
_DRAIN_SECONDS = 20.0
_RING = Keyring([Key(b"k" * 32)])
_SETTINGS = Upstream.model_validate(
    {
        "url": "http://127.0.0.1:9/mcp",
        "era": "legacy",
        "replay": "never",
        "replay_tools": {"again": "always"},
        "call_timeout": "30s",
        "holds": {"ttl": f"{HOLD_SECONDS:.0f}s", "grace": f"{GRACE_SECONDS:.0f}s"},
        "sessions": {"mode": "fresh", "warm": 0},
    }
)


class DistantStore(MemoryStore):
    """One that is a little way off: a process may die between what it has written down and what it does then.

    Or do something else before it is written down.
    """

    async def record(self, exchange: str, replica: str, stage: int, seconds: float) -> bool:
        await asyncio.sleep(_STORE_SECONDS)
        is_written = await super().record(exchange, replica, stage, seconds)
        await asyncio.sleep(_STORE_SECONDS)
        return is_written

    async def owner(self, exchange: str) -> Owner | None:
        owner = await super().owner(exchange)
        await asyncio.sleep(_STORE_SECONDS)
        return owner

    async def take_over(self, exchange: str, *, seen: Owner, replica: str, seconds: float) -> bool:
        is_taken = await super().take_over(exchange, seen=seen, replica=replica, seconds=seconds)
        await asyncio.sleep(_STORE_SECONDS)
        return is_taken


@dataclass
class Replica:
    """One process."""

    name: str
    courier: Courier
    relays: dict[str, Relay]
    is_draining: bool = False
    is_gone: bool = False
    connections: set["asyncio.Task[Any] | None"] = field(default_factory=set)

    async def round(self, upstream: str, request: ClientRequest) -> Reply:
        """What a client gets that comes here."""
        connection = asyncio.current_task()
        self.connections.add(connection)
        try:
            return await self._round(self.relays[upstream], request)
        finally:
            self.connections.discard(connection)

    async def _round(self, relay: Relay, request: ClientRequest) -> Reply:
        try:
            is_first = "requestState" not in request.params
            listener = await (relay.call(request) if is_first else relay.retry(request))
        except GatewayError as error:
            return Reply.of(error)
        # Whoever sent it looks at how long it takes: time in which this replica is frozen does not count.
        try:
            while not isinstance(heard := await listener.next(ROUND_SECONDS), Reply):
                pass
        finally:
            listener.left()
        return heard

    async def drain(self) -> None:
        """As a gateway does that was told to stop."""
        self.is_draining = True
        clock = asyncio.get_running_loop().time
        end = clock() + _DRAIN_SECONDS
        while clock() < end:
            for relay in self.relays.values():
                await relay.farewell.go_round(is_late=clock() > end - _DRAIN_SECONDS / 2)
            await self.courier.pause()
            if not self.connections and not any(relay.farewell.waiting() for relay in self.relays.values()):
                break
            await asyncio.sleep(0.05)
        await self.stop()

    async def stop(self) -> None:
        """Cut the connections that are left, let go of everything."""
        for connection in list(self.connections):
            if connection is not None:
                connection.cancel()
        await asyncio.sleep(0)
        for relay in self.relays.values():
            await relay.stop()
        await self.courier.close()
        self.is_gone = True

    def left(self) -> list[Any]:
        """All that is still kept of any exchange."""
        places = [relay._place for relay in self.relays.values()]
        return [kept for place in places for kept in (*place.ledger.everyone(), *place.drivers)]


async def new_replica(
    name: str, loop: LeapingLoop, store: MemoryStore, servers: dict[str, AskingServer]
) -> Replica:
    """A process that has just started."""
    metrics = Metrics(version="0", upstreams=list(servers))
    courier = Courier(
        store,
        Envelope(_RING, os.urandom),
        replica=name,
        metrics=metrics,
        bounds=Bounds(heartbeat=HEARTBEAT),
    )
    courier._hearts.lease = Lease(loop.time, HEARTBEAT * BEATS_OF_DOUBT)
    shared = Shared(
        box=Box(_RING, os.urandom),
        envelope=Envelope(_RING, os.urandom),
        ticket_seconds=HOLD_SECONDS,
        max_event_bytes=1024**2,
        metrics=metrics,
        replica=name,
        version="0",
        now=lambda: 10**9 + loop.time(),
        store=store,
        courier=courier,
        lease=courier.lease,
    )
    relays = {upstream: Relay(upstream, _SETTINGS, shared) for upstream in servers}
    for upstream, relay in relays.items():
        dialer: Any = InProcessDialer(servers[upstream])
        relay._dialer = relay._greeter._dialer = dialer
        courier.serve(upstream, relay._ladder.join, relay._ladder.reconsider)
    await courier.start()
    return Replica(name, courier, relays)
