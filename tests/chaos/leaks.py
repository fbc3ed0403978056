"""What is left when all is over: sessions at the servers, sockets to them, processes, keys in Redis."""

import contextlib
from dataclasses import dataclass, field

from redis.asyncio import Redis

from tests.chaos.deployment import Deployment
from tests.chaos.records import Fault, FaultKind
from tests.support.waiting import until


@dataclass(slots=True)
class Leaks:
    """Each list should be empty."""

    sessions: list[str] = field(default_factory=list)
    sockets: list[str] = field(default_factory=list)
    processes: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    orphans: int = 0
    """Sessions whose last user was killed: nobody is left who knows of them. Not a leak; servers let them expire."""
    unheard: int = 0
    """Sessions of which no gateway ever heard: the answer to `initialize` was cut off."""
    bounded_keys: int = 0
    """Keys that are there and will go by themselves."""

    @property
    def total(self) -> int:
        return len(self.sessions) + len(self.sockets) + len(self.processes) + len(self.keys)


async def look_for_leaks(whole: Deployment, faults: list[Fault], seconds: float) -> Leaks:
    """After every gateway has ended. What is still closing gets so many seconds for it."""

    async def all_closed() -> bool:
        return not any(wires.open for some in whole.wires.values() for wires in some)

    with contextlib.suppress(AssertionError, TimeoutError):
        await until(all_closed, seconds)
    leaks = Leaks()
    killed = {fault.target for fault in faults if fault.kind is FaultKind.KILL}
    for upstream, server in whole.servers.items():
        still_open = (await server.observed())["open"]
        leaked, orphans, unheard = whole.sightings[upstream].leaked(still_open, killed)
        leaks.sessions += [f"{upstream} {session}" for session in leaked]
        leaks.orphans += orphans
        leaks.unheard += unheard
        for wires in whole.wires[upstream]:
            leaks.sockets += [f"{upstream}: {sorted(wire.exchanges)}" for wire in wires.open]
    leaks.processes = [
        f"{replica.name}: {pid}" for replica in whole.replicas.values() for pid in replica.left_behind()
    ]
    async with Redis.from_url(whole.redis.url) as redis:
        async for key in redis.scan_iter("*"):
            if await redis.ttl(key) == -1:
                leaks.keys.append(key.decode())
            else:
                leaks.bounded_keys += 1
    return leaks
