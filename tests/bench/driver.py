"""The load, in a process of its own: `python -m tests.bench.driver`. It prints answers, not opinions.

One JSON command per line in, one JSON answer per line out:

    load     closed loop of `echo` calls: every worker sends its next call when the last one is answered
    ask      the same with `ask`: question, answer, result
    hold     start `ask` calls and leave them unanswered
    release  answer all of them, each with words of its own, and look whether they come back

A command names one or more endpoints; the workers, and with them the calls, are spread over them evenly.
It keeps the tickets of holds between `hold` and `release`, and nothing else.
"""

import asyncio
import gc
import json
import secrets
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

import uvloop

from tests.bench.http1 import Connection
from tests.bench.messages import (
    ASK_MARKER,
    Json,
    Target,
    initialize,
    legacy_call,
    legacy_post,
    modern_call,
    reply_of,
    session_of,
    text_of,
)

# Past so many something is wrong, and the rest would say the same.
_MAX_FAULTS: Final = 50
# Calls are numbered with eight digits, so that one prebuilt request of fixed length serves all `echo` calls.
_FIRST_NUMBER: Final = 10_000_000
_NUMBER: Final = b"10000000"
_ECHO: Final = {"text": f"text-{_FIRST_NUMBER}"}


@dataclass(frozen=True, slots=True)
class Held:
    """One call left waiting, and what must come back when it is answered."""

    number: int
    key: str
    state: str


class Tally:
    """What the workers of one command saw."""

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self.faults: list[str] = []
        self.mixed_up = 0

    def report(self, seconds: float) -> Json:
        ordered = sorted(self.latencies)
        return {
            "calls": len(ordered),
            "seconds": seconds,
            "faults": len(self.faults),
            "first_fault": self.faults[0] if self.faults else None,
            "mixed_up": self.mixed_up,
            "p50_ms": _percentile(ordered, 0.50) * 1000,
            "p99_ms": _percentile(ordered, 0.99) * 1000,
        }


def _percentile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


class Worker:
    """One connection (two for the legacy `ask`), one session where the era has any."""

    def __init__(self, target: Target, tally: Tally) -> None:
        self._target = target
        self._tally = tally
        self._connection = Connection(target.host, target.port)
        self._second = Connection(target.host, target.port)
        self._session = ""
        self._template = b""
        self._asks = count()

    async def open(self) -> None:
        if self._target.is_modern:
            self._template = modern_call(self._target, _FIRST_NUMBER, "echo", _ECHO)
            return
        self._session = session_of(await self._connection.request(initialize(self._target)))
        note = {"method": "notifications/initialized"}
        await self._connection.request(legacy_post(self._target, self._session, note))
        self._template = legacy_call(self._target, self._session, _FIRST_NUMBER, "echo", _ECHO)

    def close(self) -> None:
        self._connection.close()
        self._second.close()

    async def echo(self, number: int) -> None:
        request = self._template.replace(_NUMBER, b"%d" % number)
        started = time.perf_counter()
        response = await self._connection.request(request)
        self._tally.latencies.append(time.perf_counter() - started)
        # Not parsed, to cost little: the text is unique to this call.
        if response.status != 200 or b"text-%d" % number not in response.body:
            raise ConnectionError(f"{response.status} {response.body[:300]!r}")

    async def ask(self, number: int) -> None:
        started = time.perf_counter()
        if self._target.is_modern:
            held = await self.hold(number, timed=False)
            await self.release(held, timed=False)
        else:
            await self._ask_legacy(number)
        self._tally.latencies.append(time.perf_counter() - started)

    async def _ask_legacy(self, number: int) -> None:
        call = legacy_call(self._target, self._session, number, "ask", {"text": str(number)})
        await self._connection.send(call)
        await self._connection.until(ASK_MARKER)
        words = secrets.token_hex(8)
        # Ids of asks count from 0 in every session, and this session is ours alone.
        answer = {"id": next(self._asks), "result": {"action": "accept", "content": {"answer": words}}}
        await self._second.request(legacy_post(self._target, self._session, answer))
        self._check(text_of(await self._connection.response()), number, words)

    async def hold(self, number: int, *, timed: bool = True) -> Held:
        started = time.perf_counter()
        request = modern_call(self._target, number, "ask", {"text": str(number)})
        response = await self._connection.request(request)
        result = reply_of(response).get("result") or {}
        if result.get("resultType") != "input_required":
            raise ConnectionError(f"no question: {response.status} {response.body[:300]!r}")
        if timed:
            self._tally.latencies.append(time.perf_counter() - started)
        [key] = result["inputRequests"]
        return Held(number, key, result["requestState"])

    async def release(self, held: Held, *, timed: bool = True) -> None:
        words = secrets.token_hex(8)
        answers = {held.key: {"action": "accept", "content": {"answer": words}}}
        request = modern_call(
            self._target,
            held.number,
            "ask",
            {"text": str(held.number)},
            inputResponses=answers,
            requestState=held.state,
        )
        started = time.perf_counter()
        response = await self._connection.request(request)
        if timed:
            self._tally.latencies.append(time.perf_counter() - started)
        self._check(text_of(response), held.number, words)

    def _check(self, text: str, number: int, words: str) -> None:
        if text != f"{number}:{words}":
            self._tally.mixed_up += 1


class Driver:
    """Carries out commands, one at a time."""

    def __init__(self) -> None:
        self._held: dict[int, list[Held]] = {}
        """By the place of their endpoint in the command."""
        self._numbers = count(_FIRST_NUMBER)

    async def carry_out(self, command: Json) -> Json:
        targets = [Target(url, is_modern=command["modern"]) for url in command["urls"]]
        tally = Tally()
        workers = [Worker(targets[i % len(targets)], tally) for i in range(command["concurrency"])]
        for worker in workers:
            await worker.open()
        # A collection in the driver would show as a slow call of the gateway.
        gc.collect()
        gc.disable()
        started = time.perf_counter()
        jobs = [self._jobs(command, started, place) for place in range(len(targets))]
        try:
            async with asyncio.timeout(command["limit_seconds"]):
                await asyncio.gather(
                    *(
                        self._work(command["op"], worker, i % len(targets), jobs[i % len(targets)], tally)
                        for i, worker in enumerate(workers)
                    )
                )
        except TimeoutError:
            tally.faults.append(f"{command['op']} did not end in {command['limit_seconds']} s")
        elapsed = time.perf_counter() - started
        gc.enable()
        for worker in workers:
            worker.close()
        return {**tally.report(elapsed), "held": sum(map(len, self._held.values()))}

    def _jobs(self, command: Json, started: float, place: int) -> Iterator[int | Held]:
        """What is to be done at one endpoint, shared by its workers: whoever is free takes the next."""
        match command["op"]:
            case "load" | "ask":
                deadline = started + command["seconds"]
                while time.perf_counter() < deadline:
                    yield next(self._numbers)
            case "hold":
                for _ in range(place, command["count"], len(command["urls"])):
                    yield next(self._numbers)
            case "release":
                yield from self._held.pop(place, [])

    async def _work(
        self, op: str, worker: Worker, place: int, jobs: Iterator[int | Held], tally: Tally
    ) -> None:
        for job in jobs:
            try:
                match op, job:
                    case "load", int():
                        await worker.echo(job)
                    case "ask", int():
                        await worker.ask(job)
                    case "hold", int():
                        self._held.setdefault(place, []).append(await worker.hold(job))
                    case "release", Held():
                        await worker.release(job)
            except (OSError, ValueError, KeyError) as error:
                tally.faults.append(f"{type(error).__name__}: {error}")
                if len(tally.faults) >= _MAX_FAULTS:
                    return


async def _main() -> None:
    driver = Driver()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await driver.carry_out(json.loads(line))), flush=True)


if __name__ == "__main__":
    uvloop.run(_main())
