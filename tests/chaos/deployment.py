"""Everything that runs in a run: one Redis, the servers, wires, three gateways, a balancer. It breaks nothing."""

import asyncio
import contextlib
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.balancer import Backend, Balancer
from tests.chaos.durable_redis import DurableRedis
from tests.chaos.plan import REPLICAS, RESUMABLE, UPSTREAMS, Plan
from tests.chaos.replicas import Replica
from tests.chaos.sightings import Sightings
from tests.chaos.wires import Wires
from tests.support.peers import Running, launch, stop


@dataclass(slots=True)
class Deployment:
    """The parts, for those who break and for those who look."""

    now: Callable[[], float]
    key: str
    redis: DurableRedis
    servers: dict[str, Running]
    replicas: dict[str, Replica] = field(default_factory=dict)
    wires: dict[str, list[Wires]] = field(default_factory=dict)
    """By upstream, one for each replica."""
    sightings: dict[str, Sightings] = field(default_factory=dict)
    """By upstream."""
    balancer: Balancer | None = None

    @property
    def front(self) -> Balancer:
        assert self.balancer is not None
        return self.balancer


@contextlib.asynccontextmanager
async def deployed(plan: Plan) -> AsyncIterator[Deployment]:
    """The whole, running; at the end nothing of it is left."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-")))
        redis = DurableRedis(folder / "redis")
        stack.callback(redis.kill)
        await asyncio.to_thread(redis.start)
        servers = {}
        for name, kind in UPSTREAMS.items():
            servers[name] = await asyncio.to_thread(launch, kind, event_store=name in RESUMABLE)
            stack.callback(stop, servers[name])
        whole = Deployment(lambda: loop.time() - start, secrets.token_urlsafe(32), redis, servers)
        for name in REPLICAS:
            await _add_replica(whole, name, plan, folder, stack)
        await asyncio.gather(*(replica.start() for replica in whole.replicas.values()))
        backends = [Backend(replica.port, _life_of(replica)) for replica in whole.replicas.values()]
        whole.balancer = await stack.enter_async_context(Balancer(backends, whole.now))
        yield whole


async def _add_replica(
    whole: Deployment, name: str, plan: Plan, folder: Path, stack: contextlib.AsyncExitStack
) -> None:
    urls = {}
    for upstream, server in whole.servers.items():
        # Wires of its own for each replica: so it is known who speaks on them.
        sightings = whole.sightings.setdefault(upstream, Sightings())
        wires = Wires(server.port, lambda: whole.replicas[name].life, sightings)
        await stack.enter_async_context(wires)
        whole.wires.setdefault(upstream, []).append(wires)
        urls[upstream] = wires.url
    replica = Replica(name, folder, _settings(plan, whole, urls))
    whole.replicas[name] = replica
    stack.push_async_callback(replica.stop)


def _settings(plan: Plan, whole: Deployment, urls: dict[str, str]) -> dict[str, Any]:
    return {
        "store": whole.redis.url,
        "replica_heartbeat": f"{plan.heartbeat}s",
        "sealing": {"keys": [whole.key]},
        "drain": "5s",
        "upstreams": {name: {"url": url, "call_timeout": "30s"} for name, url in urls.items()},
    }


def _life_of(replica: Replica) -> Callable[[], str]:
    return lambda: replica.life
