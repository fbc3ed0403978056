"""One run from beginning to end: deploy, let clients work while things break, let it settle, gather what was noted."""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.chaos.deployment import Deployment, deployed
from tests.chaos.faults import Breaker
from tests.chaos.judge import Judge, Judgement
from tests.chaos.leaks import Leaks, look_for_leaks
from tests.chaos.lean_client import LeanClient
from tests.chaos.plan import Plan
from tests.chaos.records import Attempt, Records, Task, Told, process_of
from tests.chaos.replicas import Replica
from tests.chaos.sdk_client import SdkClient
from tests.chaos.tickets import TicketReader

_SETTLE_SECONDS = 10.0


@dataclass(slots=True)
class Outcome:
    """All that is known afterwards."""

    plan: Plan
    records: Records
    judgement: Judgement
    leaks: Leaks
    seconds: float
    redis_version: str
    own_faults: list[str]
    """What gateways wrote of bugs of their own."""


async def run(plan: Plan, tell: Callable[[str], None]) -> Outcome:
    """Carry the plan out."""
    async with deployed(plan) as whole:
        tell(f"running: 3 gateways, {len(whole.servers)} servers, 1 Redis")
        enough = asyncio.Event()
        breaker = Breaker(whole, plan.faults(), plan.kinds)
        breaking = asyncio.ensure_future(breaker.run(enough))
        try:
            told = await _work(plan, whole, tell, breaker, breaking)
        finally:
            enough.set()
            await breaking
        seconds = whole.now()
        tell(f"all exchanges ended after {seconds:.0f} s, {len(breaker.faults)} faults")
        # What was given up by one and taken over by another is let go of, and what clients lost is forgotten.
        servers = {name: await server.observed() for name, server in whole.servers.items()}
        await asyncio.gather(*(_drain(replica) for replica in whole.replicas.values()))
        leaks = await look_for_leaks(whole, breaker.faults, _SETTLE_SECONDS)
        records = _records(whole, told, breaker)
        records.servers = servers
        judgement = Judge(records).judge()
        bugs = [
            f"{line['process']}: {line['event']} {str(line.get('exception', line))[-1500:]}"
            for replica in whole.replicas.values()
            for line in replica.lines()
            if line.get("event") == "internal_error"
        ]
        return Outcome(plan, records, judgement, leaks, seconds, whole.redis.version, bugs)


async def _work(
    plan: Plan,
    whole: Deployment,
    tell: Callable[[str], None],
    breaker: Breaker,
    breaking: "asyncio.Future[None]",
) -> list[Told]:
    waiting = list(reversed(plan.tasks()))
    told: list[Told] = []
    lean, sdk = LeanClient(whole.front.port, whole.now), SdkClient(whole.front.port, whole.now)

    async def user() -> None:
        while waiting:
            task = waiting.pop()
            if plan.kinds and len(waiting) < plan.exchanges / 3:
                await breaker.has_struck_each.wait()  # some are left for each kind of fault to hit
            mine = Told(task)
            await (sdk if task.client == "mcp" else lean).carry_out(mine)
            told.append(mine)
            if len(told) % 50 == 0:
                tell(f"{len(told)} of {plan.exchanges} after {whole.now():.0f} s")

    users: asyncio.Future[Any] = asyncio.gather(*(user() for _ in range(plan.at_once)))
    try:
        # If what breaks things is itself broken, nobody needs to wait for the rest.
        await asyncio.wait([users, breaking], return_when=asyncio.FIRST_COMPLETED)
        if breaking.done():
            breaking.result()
        await users
    finally:
        users.cancel()
    return told


async def _drain(replica: Replica) -> None:
    replica.tell(signal.SIGTERM)
    await replica.ended()


def _records(whole: Deployment, told: list[Told], breaker: Breaker) -> Records:
    records = Records(
        told=told,
        faults=breaker.faults,
        passages=whole.front.passages,
        servers={},
        rounds=[line for replica in whole.replicas.values() for line in replica.rounds()],
    )
    _read_tickets(records, TicketReader(whole.key))
    return records


def _read_tickets(records: Records, reader: TicketReader) -> None:
    lives: dict[str, str] = {}
    owned: list[tuple[Task, Attempt, str]] = []
    for told in records.told:
        answered = [attempt for attempt in told.attempts if attempt.outcome == "answered"]
        for number, (token, attempt) in enumerate(zip(told.tickets, answered, strict=False)):
            ticket = reader.read(token, told.task)
            records.exchange_ids[told.task.name] = ticket.exchange
            process = process_of(records.passages, attempt)
            if number == 0 and process is not None:
                lives[ticket.owner] = process  # who takes a first request keeps it
            owned.append((told.task, attempt, ticket.owner))
    for task, attempt, owner in owned:
        records.owners.setdefault(task.name, []).append((attempt.ended, lives.get(owner, owner)))
