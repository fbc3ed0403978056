"""What an answer costs that comes to another gateway than the one that holds its call. It judges nothing.

Two gateways on one Redis. Calls are held by the first; the answers come to it (`live`), or to the other (`routed`).
"""

import secrets
from contextlib import ExitStack
from typing import Final

from tests.bench.holdfast import Holdfast, Sharing, holdfast
from tests.bench.processes import Process, started, started_on_port
from tests.bench.scenarios import Json, Measurement, Plan, Report, median_of
from tests.support.redis import RedisServer

SCENARIO: Final = "answers"
CONCURRENCY: Final = (1, 16)
LIVE: Final = "live"
ROUTED: Final = "routed"
_LIMIT_SECONDS: Final = 60.0


def measure_routed(plan: Plan, report: Report) -> None:
    """The two ways in turn, so that a busy moment of the machine does not fall on one of them."""
    with ExitStack() as stack:
        redis = RedisServer()
        redis.start()
        stack.callback(redis.kill)
        sharing = Sharing(redis.url.get_secret_value(), secrets.token_urlsafe(32))
        _, url = stack.enter_context(started_on_port("legacy", "-m", "tests.bench.legacy", log=plan.log))
        holder, other = (
            stack.enter_context(
                holdfast(
                    url, plan.folder, holds=1000, log_level=plan.log_level, log=plan.log, sharing=sharing
                )
            )
            for _ in range(2)
        )
        driver = stack.enter_context(started("driver", "-m", "tests.bench.driver", log=plan.log))
        bench = _Answers(driver, holder, other)
        for concurrency in CONCURRENCY:
            seen: dict[str, list[Measurement]] = {LIVE: [], ROUTED: []}
            for way in seen:
                bench.load(way, concurrency, 50)
            for _ in range(plan.rounds):
                for way, found in seen.items():
                    found.append(bench.load(way, concurrency, round(200 * plan.seconds)))
            for found in seen.values():
                report.measurements.append(median_of(found))
                last = report.measurements[-1]
                plan.tell(
                    f"{SCENARIO} x{concurrency} {last.proxy}: {last.per_second:.0f}/s, p50 {last.p50_ms:.2f} ms"
                )


class _Answers:
    """Holds calls, then answers them; only the answers are measured."""

    def __init__(self, driver: Process, holder: Holdfast, other: Holdfast) -> None:
        self._driver = driver
        self._holder = holder
        self._other = other

    def load(self, way: str, concurrency: int, count: int) -> Measurement:
        held = self._command("hold", self._holder, 16, count=count)
        before = self._cpu_seconds()
        found = self._command("release", self._holder if way == LIVE else self._other, concurrency)
        cpu = self._cpu_seconds() - before
        return Measurement(
            SCENARIO,
            concurrency,
            way,
            found["calls"] / found["seconds"],
            found["p50_ms"],
            found["p99_ms"],
            cpu * 1000 / max(1, found["calls"]),
            self._holder.process.usage().rss_bytes,
            held["faults"] + found["faults"],
            found["mixed_up"],
            held["first_fault"] or found["first_fault"],
        )

    def _cpu_seconds(self) -> float:
        return sum(one.process.usage().cpu_seconds for one in (self._holder, self._other))

    def _command(self, op: str, gateway: Holdfast, concurrency: int, **more: int) -> Json:
        return self._driver.command(
            op=op,
            urls=[gateway.unsettled.url],
            modern=True,
            concurrency=concurrency,
            limit_seconds=_LIMIT_SECONDS,
            **more,
        )
