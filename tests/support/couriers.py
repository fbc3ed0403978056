"""Replicas in one process that share a store: each a courier, and an exchange that does what a test says."""

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gateway.eras.notifications import RoundFilter
from gateway.relay.courier import Bounds, Courier
from gateway.relay.guests import UnknownExchange
from gateway.relay.ladder import new_listener
from gateway.relay.letters import CarriedRound
from gateway.relay.listener import Listener, Reply
from gateway.relay.request import ClientRequest, Principal
from gateway.sealing.envelope import Envelope
from gateway.sealing.keyring import Key, Keyring
from gateway.stores.memory import MemoryStore
from gateway.stores.protocol import Store
from gateway.stores.redis import RedisStore, Times
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import Outcome, Rung
from gateway.wire.jsonrpc import Notification, Raw, encode
from tests.support.redis import RedisServer
from tests.support.waiting import until

HEARTBEAT = 0.2
UPSTREAM = "crm"
EXCHANGE = "hf-owner-1"
RING = Keyring([Key(b"k" * 32)])
BOB = Principal(id="bob", material=b"hunter2", is_authenticated=True, authorization="Bearer hunter2")

NewStore: TypeAlias = Callable[[], Store]


def request(**changes: Any) -> ClientRequest:
    """A retry as the edge would give it."""
    given: dict[str, Any] = {
        "id": 7,
        "method": "tools/call",
        "params": {
            "name": Raw(b'"book"'),
            "arguments": Raw(b'{"n": 1.0}'),
            "requestState": Raw(b'"the ticket"'),
            "inputResponses": Raw(b'{"day": {"action": "accept"}}'),
        },
        "target": "book",
        "principal": BOB,
        "capabilities": {"elicitation": {}},
        "client_info": {"name": "client", "version": "1"},
        "log_level": "info",
        "progress_token": "token",
    }
    return ClientRequest(**{**given, **changes})


def reply(text: str = "done") -> Reply:
    """A result."""
    return Reply(Outcome.COMPLETE, result={"resultType": "complete", "text": text})


def progress(number: float) -> Notification:
    """What a server says while it works."""
    params = {"progressToken": Raw(b'"legacy"'), "progress": Raw(encode(number))}
    return Notification("notifications/progress", params)


@dataclass
class Replica:
    """A courier and what it was asked to carry out."""

    name: str
    store: Store
    courier: Courier
    metrics: Metrics
    rounds: list[CarriedRound] = field(default_factory=list)
    listeners: list[Listener] = field(default_factory=list)
    left: list[Listener] = field(default_factory=list)
    paused: asyncio.Event = field(default_factory=asyncio.Event)
    refusal: Exception | None = None
    outcome: Reply | None = None
    """What a round that comes now gets at once."""

    async def on_carry(self, carried: CarriedRound) -> Listener:
        """Let the client join, as a driver would."""
        self.rounds.append(carried)
        if carried.exchange != EXCHANGE:
            raise UnknownExchange
        if self.refusal is not None:
            raise self.refusal
        asked = carried.request(BOB)
        listener = Listener(RoundFilter(asked.progress_token, asked.log_level), rung=Rung.LIVE)
        listener.joined(self.left.append, self.paused.set)
        self.listeners.append(listener)
        if self.outcome is not None:
            listener.finish(self.outcome)
        return listener

    async def guest(self, number: int = 0) -> Listener:
        """The listener of a round that was carried here, as soon as there is one."""

        async def look() -> bool:
            return len(self.listeners) > number

        await until(look)
        return self.listeners[number]

    async def carry(self, owner: str, **changes: Any) -> Listener:
        """Have a round carried out elsewhere."""
        named = {"exchange": EXCHANGE, "round_": 1, "digest": "d", "upstream": UPSTREAM, "request": request()}
        carried: dict[str, Any] = {**named, **changes}
        listener = new_listener(carried["request"], Rung.ROUTED)
        await self.courier.carry(owner, **carried, listener=listener)
        return listener


async def heard(listener: Listener, seconds: float = 5.0) -> bytes | Reply:
    """The next that a client hears; not to hear anything is a failure."""
    found = await listener.next(seconds)
    assert found is not None, "nothing was heard"
    return found


class Replicas:
    """Makes replicas that share a store, and ends them."""

    def __init__(self, new_store: NewStore, bounds: Bounds) -> None:
        self._new_store = new_store
        self._bounds = bounds
        self._made: list[Replica] = []

    async def __call__(self, name: str, *, ring: Keyring = RING) -> Replica:
        """One more."""
        store = self._new_store()
        metrics = Metrics(version="0", upstreams=[UPSTREAM])
        envelope = Envelope(ring, os.urandom)
        courier = Courier(store, envelope, replica=name, metrics=metrics, bounds=self._bounds)
        replica = Replica(name, store, courier, metrics)
        courier.serve(UPSTREAM, replica.on_carry)
        await store.start()
        await courier.start()
        self._made.append(replica)
        return replica

    async def alive(self, *replicas: Replica) -> None:
        """Until each has seen the hearts of all."""

        async def look() -> bool:
            return all([await one.store.is_alive(other.name) for one in replicas for other in replicas])

        await until(look)

    async def kill(self, replica: Replica) -> None:
        """As `kill -9` would: nothing is said to anybody, nothing more is done."""
        courier = replica.courier
        for background in (courier._heart, courier._tasks, courier._guests._rounds):
            await background.close()
        self._made.remove(replica)
        await replica.store.close()

    async def close(self) -> None:
        """End all that were not killed."""
        for replica in self._made:
            await replica.courier.close()
            await replica.store.close()


@contextlib.asynccontextmanager
async def replicas_on_memory(bounds: Bounds) -> AsyncIterator[Replicas]:
    """Replicas with one store between them."""
    shared = MemoryStore(asyncio.get_running_loop().time, is_shared=True)
    replicas = Replicas(lambda: shared, bounds)
    yield replicas
    await replicas.close()


@contextlib.asynccontextmanager
async def replicas_on_redis(server: RedisServer, bounds: Bounds) -> AsyncIterator[Replicas]:
    """Replicas with connections of their own to one Redis."""
    prefix = f"test:{uuid.uuid4().hex}:"
    times = Times(operation=1.5, block=0.5)
    replicas = Replicas(lambda: RedisStore(server.url, prefix=prefix, times=times), bounds)
    yield replicas
    await replicas.close()
