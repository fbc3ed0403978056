"""A run's findings as a table for the terminal, as Markdown or as JSON, beside what was to be reached."""

import json
import statistics
from dataclasses import asdict, dataclass
from typing import Final

from tests.bench.routed import LIVE, ROUTED
from tests.bench.scenarios import HoldsLevel, HoldsRun, Measurement, Report

_KIB: Final = 1024
_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under one title."""

    title: str
    head: list[str]
    rows: list[list[str]]

    def as_text(self) -> str:
        widths = [max(len(row[i]) for row in [self.head, *self.rows]) for i in range(len(self.head))]

        def line(row: list[str]) -> str:
            cells = [
                f"{cell:<{w}}" if i == 0 else f"{cell:>{w}}"
                for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            ]
            return "  ".join(cells).rstrip()

        return "\n".join(
            [self.title, line(self.head), "  ".join("-" * w for w in widths), *map(line, self.rows)]
        )

    def as_markdown(self) -> str:
        def line(row: list[str]) -> str:
            return f"| {' | '.join(row)} |"

        rule = line(["---", *["---:"] * (len(self.head) - 1)])
        return "\n".join([f"### {self.title}", "", line(self.head), rule, *map(line, self.rows)])


@dataclass(frozen=True, slots=True)
class Goal:
    """One thing to reach, and what was reached."""

    text: str
    found: str
    is_met: bool


def as_text(report: Report) -> str:
    """For the terminal."""
    verdicts = [
        f"  {'met    ' if goal.is_met else 'NOT MET'}  {goal.text}: {goal.found}" for goal in goals(report)
    ]
    blocks = [_environment(report), *(table.as_text() for table in _tables(report)), *_remarks(report)]
    return "\n\n".join([*blocks, "\n".join(["Goals", *verdicts])])


def as_markdown(report: Report) -> str:
    """For docs/benchmarks.md."""
    rows = [[goal.text, goal.found, "yes" if goal.is_met else "**no**"] for goal in goals(report)]
    table = Table("Goals", ["goal", "measured", "met"], rows)
    return "\n\n".join(
        [
            _environment(report),
            *(one.as_markdown() for one in _tables(report)),
            *_remarks(report),
            table.as_markdown(),
        ]
    )


def as_json(report: Report) -> str:
    """Everything, for a machine."""
    return json.dumps({**asdict(report), "goals": [asdict(goal) for goal in goals(report)]}, indent=2)


def goals(report: Report) -> list[Goal]:
    """What the gateway must reach, as far as this run measured it."""
    found = [_ratio_goal(report, bare) for bare in report.measurements if _is_yardstick(bare)]
    found += [_routed_goal(report, live) for live in report.measurements if live.proxy == LIVE]
    for run in report.holds:
        found += _hold_goals(run)
    if report.seconds_to_ready:
        seconds = statistics.median(report.seconds_to_ready)
        found.append(Goal("start-up to ready < 1 s", f"{seconds:.2f} s", seconds < 1.0))
    return found


def _is_yardstick(one: Measurement) -> bool:
    return one.proxy == "bare" and one.scenario.startswith("echo") and one.concurrency in (16, 64)


def _ratio_goal(report: Report, bare: Measurement) -> Goal:
    ours = _beside(report, bare, "holdfast")
    ratio = ours.per_second / bare.per_second if ours and bare.per_second else 0.0
    text = f"{bare.scenario}, concurrency {bare.concurrency}: >= 0.70 x bare"
    return Goal(text, f"{ratio:.2f} x", ratio >= 0.7)


def _routed_goal(report: Report, live: Measurement) -> Goal:
    routed = _beside(report, live, ROUTED)
    slower = _over(routed.p50_ms, live.p50_ms) if routed else 0.0
    dearer = _over(routed.cpu_ms, live.cpu_ms) if routed else 0.0
    return Goal(
        f"a routed answer, concurrency {live.concurrency}: <= 3 x a live one",
        f"p50 {slower:.2f} x, CPU of both gateways {dearer:.2f} x",
        routed is not None and max(slower, dearer) <= 3.0,
    )


def _hold_goals(run: HoldsRun) -> list[Goal]:
    _, half, full = run.levels
    kind = f"{full.held:,} holds, {_kind(run)}"
    slow_down = _over(full.plain_p99_ms, full.control_p99_ms)
    growth = _over(full.bytes_per_hold, half.bytes_per_hold), _over(full.open_ms_cpu, half.open_ms_cpu)
    return [
        Goal(
            f"{kind}: <= 25 KiB each",
            f"{full.bytes_per_hold / _KIB:.1f} KiB",
            full.bytes_per_hold <= 25 * _KIB,
        ),
        Goal(
            f"{kind}: all answered, none mixed up",
            f"{run.answered:,} answered, {run.mixed_up} mixed up, {run.faults} faults",
            run.answered == full.held and not run.mixed_up and not run.faults,
        ),
        Goal(f"{kind}: plain p99 <= 1.5 x that with none", f"{slow_down:.2f} x", slow_down <= 1.5),
        Goal(
            f"{kind}: cost linear (per hold: memory of all against half, CPU of second half against first)",
            f"memory {growth[0]:.2f} x, CPU {growth[1]:.2f} x",
            max(growth) <= 1.5,
        ),
    ]


def _over(one: float, other: float) -> float:
    return one / other if other else 0.0


def _beside(report: Report, bare: Measurement, proxy: str) -> Measurement | None:
    same = (bare.scenario, bare.concurrency, proxy)
    return next(
        (one for one in report.measurements if (one.scenario, one.concurrency, one.proxy) == same), None
    )


# --- tables ---------------------------------------------------------------------


def _environment(report: Report) -> str:
    return "; ".join(f"{name} {value}" for name, value in report.environment.items())


def _kind(run: HoldsRun) -> str:
    kind = "GET stream" if run.get_is_stream else "GET 405"
    return kind if run.addresses == 1 else f"{kind}, {run.addresses} addresses"


def _tables(report: Report) -> list[Table]:
    tables = []
    if report.measurements:
        tables.append(_calls(report))
    tables += [_holds(run) for run in report.holds]
    return tables


def _calls(report: Report) -> Table:
    head = [
        "load",
        "conc.",
        "proxy",
        "calls/s",
        "of bare",
        "p50 ms",
        "p99 ms",
        "CPU ms/call",
        "RSS MiB",
        "faults",
    ]
    rows = []
    for one in report.measurements:
        bare = _beside(report, one, "bare")
        share = f"{one.per_second / bare.per_second:.2f}" if bare and bare.per_second else "-"
        rows.append(
            [
                one.scenario,
                str(one.concurrency),
                one.proxy,
                f"{one.per_second:,.0f}",
                "1" if one.proxy == "bare" else share,
                f"{one.p50_ms:.2f}",
                f"{one.p99_ms:.2f}",
                f"{one.cpu_ms:.3f}",
                f"{one.rss_bytes / _MIB:.0f}",
                str(one.faults + one.mixed_up),
            ]
        )
    return Table("Calls", head, rows)


def _holds(run: HoldsRun) -> Table:
    head = [
        "held",
        "KiB/hold",
        "holds/s",
        "CPU ms/hold",
        "of it system",
        "open files",
        "plain calls/s",
        "plain p50 ms",
        "plain p99 ms",
    ]

    def row(level: HoldsLevel) -> list[str]:
        return [
            f"{level.held:,}",
            f"{level.bytes_per_hold / _KIB:.1f}" if level.held else "-",
            f"{level.opened_per_second:,.0f}" if level.held else "-",
            f"{level.open_ms_cpu:.2f}" if level.held else "-",
            f"{level.open_ms_system:.2f}" if level.held else "-",
            f"{level.open_files:,}",
            f"{level.plain_per_second:,.0f}",
            f"{level.plain_p50_ms:.2f}",
            f"{level.plain_p99_ms:.2f}",
            f"{level.control_p99_ms:.2f}",
            f"{level.idle_cpu_percent:.1f}",
        ]

    return Table(
        f"Holds, {_kind(run)}", [*head, "p99 with none", "idle CPU %"], [row(level) for level in run.levels]
    )


def _remarks(report: Report) -> list[str]:
    remarks = [
        f"Holds, {_kind(run)}: {run.answered:,} answered at {run.answered_per_second:,.0f}/s, "
        f"{run.answer_ms_cpu:.2f} CPU ms each, {run.mixed_up} mixed up, {run.faults} faults; "
        f"afterwards {run.rss_after_bytes / _MIB:.0f} MiB RSS, {run.open_files_after:,} open files."
        + (f" {run.note}." if run.note else "")
        for run in report.holds
    ]
    if report.seconds_to_ready:
        median = statistics.median(report.seconds_to_ready)
        remarks.append(f"Start-up to ready: {median:.2f} s, median of {len(report.seconds_to_ready)}.")
    faults = {one.first_fault for one in report.measurements if one.first_fault}
    faults |= {run.first_fault for run in report.holds if run.first_fault}
    return remarks + [f"Fault: {fault}" for fault in sorted(faults)]
