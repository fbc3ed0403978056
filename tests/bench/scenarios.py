"""What is measured, in which order. It prints nothing and judges nothing."""

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Literal

from tests.bench.holdfast import Holdfast, holdfast
from tests.bench.messages import Target
from tests.bench.processes import BenchFailed, Process, started, started_on_port

Answer = Literal["sse", "json"]
Json = dict[str, Any]

ECHO_CONCURRENCY: Final = (1, 16, 64)
_ASK_CONCURRENCY: Final = 16
_PLAIN_CONCURRENCY: Final = 16
_HOLD_CONCURRENCY: Final = 64
_GRACE_SECONDS: Final = 30.0
_HOLD_LIMIT_SECONDS: Final = 300.0
_IDLE_SECONDS: Final = 3.0
# What a process needs besides the streams of its holds.
_SPARE_FILES: Final = 2000


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how often."""

    seconds: float
    rounds: int
    holds: int
    starts: int
    answers: tuple[Answer, ...]
    file_limit: int
    log_level: str
    addresses: int
    folder: Path
    log: IO[bytes]
    tell: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One load on one proxy: the median of its rounds."""

    scenario: str
    concurrency: int
    proxy: str
    per_second: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    rss_bytes: int
    faults: int
    mixed_up: int
    first_fault: str | None = None


@dataclass(frozen=True, slots=True)
class HoldsLevel:
    """The gateway with so many calls held."""

    held: int
    bytes_per_hold: float
    open_ms_cpu: float
    """Gateway CPU per hold opened since the level before."""
    open_ms_system: float
    """How much of it was the kernel's work."""
    opened_per_second: float
    open_files: int
    plain_per_second: float
    plain_p50_ms: float
    plain_p99_ms: float
    control_p99_ms: float
    """The same at the same time on a gateway that holds nothing: the machine's mood is in both."""
    idle_cpu_percent: float


@dataclass(frozen=True, slots=True)
class HoldsRun:
    """Levels of 0, half and all holds, and what became of the answers."""

    get_is_stream: bool
    addresses: int
    wanted: int
    levels: list[HoldsLevel]
    answered: int
    mixed_up: int
    faults: int
    first_fault: str | None
    answer_ms_cpu: float
    answered_per_second: float
    rss_after_bytes: int
    open_files_after: int
    note: str = ""


@dataclass(slots=True)
class Report:
    """Everything that one run found."""

    environment: Json
    measurements: list[Measurement] = field(default_factory=list)
    holds: list[HoldsRun] = field(default_factory=list)
    seconds_to_ready: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Lane:
    """One proxy under one kind of load."""

    name: str
    process: Process
    target: Target


def run(plan: Plan, report: Report, *, only: frozenset[str]) -> None:
    """Carry out the plan; `report` is filled as it goes, so that a failure keeps what was measured."""
    if "start" in only:
        _measure_starts(plan, report)
    if only & {"echo", "ask"}:
        for answer in plan.answers:
            _measure_calls(plan, report, answer, only)
    if "holds" in only:
        _measure_holds(plan, report, get_is_stream=False)
        _measure_holds(plan, report, get_is_stream=True)


def _measure_starts(plan: Plan, report: Report) -> None:
    with started_on_port("legacy", "-m", "tests.bench.legacy", log=plan.log) as (_, url):
        seconds = []
        for _ in range(1 + plan.starts):
            with holdfast(url, plan.folder, holds=1, log_level=plan.log_level, log=plan.log) as gateway:
                seconds.append(gateway.seconds_to_ready)
        # Not the first: an installer compiles what it installs, and so does the image; a checkout does it then.
        report.seconds_to_ready += seconds[1:]
    plan.tell(f"start-up to ready: {statistics.median(report.seconds_to_ready):.2f} s")


def _measure_calls(plan: Plan, report: Report, answer: Answer, only: frozenset[str]) -> None:
    with ExitStack() as stack:
        legacy = ("legacy", "-m", "tests.bench.legacy", "--answer", answer)
        _, url = stack.enter_context(started_on_port(*legacy, log=plan.log))
        bare, bare_url = stack.enter_context(
            started_on_port("bare", "-m", "tests.bench.bare", url, log=plan.log)
        )
        gateway = stack.enter_context(
            holdfast(url, plan.folder, holds=1000, log_level=plan.log_level, log=plan.log)
        )
        driver = stack.enter_context(started("driver", "-m", "tests.bench.driver", log=plan.log))
        lanes = [
            _Lane("bare", bare, Target(bare_url, is_modern=False)),
            _Lane("holdfast", gateway.process, gateway.target),
        ]
        if "echo" in only:
            for concurrency in ECHO_CONCURRENCY:
                _compare(plan, report, driver, f"echo, {answer.upper()} answers", "load", concurrency, lanes)
        if "ask" in only and answer == plan.answers[0]:
            lanes.append(_Lane("holdfast, settle 0", gateway.process, gateway.unsettled))
            _compare(plan, report, driver, "ask", "ask", _ASK_CONCURRENCY, lanes)


def _compare(
    plan: Plan, report: Report, driver: Process, scenario: str, op: str, concurrency: int, lanes: list[_Lane]
) -> None:
    """The lanes in turn, A/B/A/B, so that a busy moment of the machine does not fall on one of them."""
    seen: dict[str, list[Measurement]] = {lane.name: [] for lane in lanes}
    for lane in lanes:
        _load(driver, lane, op, concurrency, min(1.0, plan.seconds))
    for _ in range(plan.rounds):
        for lane in lanes:
            before = lane.process.usage()
            found = _load(driver, lane, op, concurrency, plan.seconds)
            after = lane.process.usage()
            calls = max(1, found["calls"])
            seen[lane.name].append(
                Measurement(
                    scenario,
                    concurrency,
                    lane.name,
                    found["calls"] / found["seconds"],
                    found["p50_ms"],
                    found["p99_ms"],
                    (after.cpu_seconds - before.cpu_seconds) * 1000 / calls,
                    after.rss_bytes,
                    found["faults"],
                    found["mixed_up"],
                    found["first_fault"],
                )
            )
    for lane in lanes:
        measurement = median_of(seen[lane.name])
        report.measurements.append(measurement)
        plan.tell(f"{scenario} x{concurrency} {lane.name}: {measurement.per_second:.0f}/s")


def _load(driver: Process, lane: _Lane, op: str, concurrency: int, seconds: float) -> Json:
    return driver.command(
        op=op,
        urls=[lane.target.url],
        modern=lane.target.is_modern,
        concurrency=concurrency,
        seconds=seconds,
        limit_seconds=seconds + _GRACE_SECONDS,
    )


def median_of(rounds: list[Measurement]) -> Measurement:
    """What stands for several rounds of one load."""

    def middle(name: str) -> float:
        return float(statistics.median(getattr(one, name) for one in rounds))

    return Measurement(
        rounds[0].scenario,
        rounds[0].concurrency,
        rounds[0].proxy,
        middle("per_second"),
        middle("p50_ms"),
        middle("p99_ms"),
        middle("cpu_ms"),
        rounds[-1].rss_bytes,
        sum(one.faults for one in rounds),
        sum(one.mixed_up for one in rounds),
        next((one.first_fault for one in rounds if one.first_fault), None),
    )


# --- holds ----------------------------------------------------------------------


def _measure_holds(plan: Plan, report: Report, *, get_is_stream: bool) -> None:
    streams = 2 if get_is_stream else 1
    most = (plan.file_limit - _SPARE_FILES) // streams
    wanted = min(plan.holds, most)
    note = ""
    if wanted < plan.holds:
        note = (
            f"{plan.holds:,} holds with a GET stream need {plan.holds * streams:,} open files; "
            f"the limit here is {plan.file_limit:,} (ulimit -n), so {wanted:,}"
        )
        plan.tell(note)
    with ExitStack() as stack:
        get = "stream" if get_is_stream else "405"
        legacy = ("legacy", "-m", "tests.bench.legacy", "--get", get, "--addresses", str(plan.addresses))
        _, url = stack.enter_context(started_on_port(*legacy, log=plan.log))
        gateway, control = (
            stack.enter_context(
                holdfast(
                    url,
                    plan.folder,
                    holds=n,
                    log_level=plan.log_level,
                    log=plan.log,
                    addresses=plan.addresses,
                )
            )
            for n in (wanted, 1000)
        )
        driver = stack.enter_context(started("driver", "-m", "tests.bench.driver", log=plan.log))
        measure = _HoldsMeasure(plan, gateway, control, driver, get_is_stream=get_is_stream)
        report.holds.append(measure.run(wanted, note))


@dataclass(frozen=True, slots=True)
class _Opening:
    """What it took to open the holds of one level."""

    cpu_ms: float = 0.0
    system_ms: float = 0.0
    per_second: float = 0.0


class _HoldsMeasure:
    """One run of holds: none, half, all, none."""

    def __init__(
        self, plan: Plan, gateway: Holdfast, control: Holdfast, driver: Process, *, get_is_stream: bool
    ) -> None:
        self._plan = plan
        self._process = gateway.process
        self._driver = driver
        self._lane = _Lane("holdfast", gateway.process, gateway.target)
        self._control = _Lane("control", control.process, control.target)
        self._urls = [target.url for target in gateway.by_address]
        self._get_is_stream = get_is_stream
        self._faults = 0
        self._first_fault: str | None = None

    def run(self, wanted: int, note: str) -> HoldsRun:
        # The pool, the heap and every lazily made thing are there before the first weighing.
        for lane in (self._lane, self._control):
            self._note(_load(self._driver, lane, "load", _HOLD_CONCURRENCY, 2.0))
            self._note(_load(self._driver, lane, "ask", _HOLD_CONCURRENCY, 2.0))
        empty = self._process.usage().rss_bytes
        levels = [self._level(0, empty, _Opening())]
        for held in (wanted // 2, wanted):
            before = self._process.usage()
            found = self._command("hold", count=held - levels[-1].held)
            after = self._process.usage()
            opened = max(1, found["calls"])
            opening = _Opening(
                (after.cpu_seconds - before.cpu_seconds) * 1000 / opened,
                (after.system_seconds - before.system_seconds) * 1000 / opened,
                opened / found["seconds"],
            )
            if found["held"] != held:
                raise BenchFailed(f"{found['held']} of {held} held: {found['first_fault']}")
            levels.append(self._level(held, empty, opening))
        before = self._process.usage()
        found = self._command("release")
        after = self._process.usage()
        # Sessions that are one too many are closed in the background.
        time.sleep(_IDLE_SECONDS)
        rest = self._process.usage()
        self._plan.tell(f"{found['calls']} answered, {found['mixed_up']} mixed up")
        return HoldsRun(
            self._get_is_stream,
            len(self._urls),
            wanted,
            levels,
            found["calls"],
            found["mixed_up"],
            self._faults,
            self._first_fault,
            (after.cpu_seconds - before.cpu_seconds) * 1000 / max(1, found["calls"]),
            found["calls"] / found["seconds"],
            rest.rss_bytes,
            rest.open_files,
            note,
        )

    def _level(self, held: int, empty: int, opening: "_Opening") -> HoldsLevel:
        weight = self._process.usage()
        idle_from = weight.cpu_seconds
        time.sleep(_IDLE_SECONDS)
        idle = (self._process.usage().cpu_seconds - idle_from) / _IDLE_SECONDS
        rounds: list[Json] = []
        controls: list[Json] = []
        # A tail needs more rounds than a middle.
        for _ in range(2 * self._plan.rounds - 1):
            for lane, seen in ((self._control, controls), (self._lane, rounds)):
                seen.append(_load(self._driver, lane, "load", _PLAIN_CONCURRENCY, self._plan.seconds))
                self._note(seen[-1])
        level = HoldsLevel(
            held,
            (weight.rss_bytes - empty) / held if held else 0.0,
            opening.cpu_ms,
            opening.system_ms,
            opening.per_second,
            weight.open_files,
            statistics.median(one["calls"] / one["seconds"] for one in rounds),
            statistics.median(one["p50_ms"] for one in rounds),
            statistics.median(one["p99_ms"] for one in rounds),
            statistics.median(one["p99_ms"] for one in controls),
            idle * 100,
        )
        self._plan.tell(
            f"{held} held ({'GET stream' if self._get_is_stream else 'GET 405'}): "
            f"{level.bytes_per_hold / 1024:.1f} KiB each, "
            f"plain p99 {level.plain_p99_ms:.1f} ms, with none {level.control_p99_ms:.1f} ms"
        )
        return level

    def _command(self, op: str, **more: Any) -> Json:
        found = self._driver.command(
            op=op,
            urls=self._urls,
            modern=True,
            concurrency=_HOLD_CONCURRENCY,
            limit_seconds=_HOLD_LIMIT_SECONDS,
            **more,
        )
        self._note(found)
        return found

    def _note(self, found: Json) -> None:
        self._faults += found["faults"]
        self._first_fault = self._first_fault or found["first_fault"]
