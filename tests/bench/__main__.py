"""`python -m tests.bench`: the gateway beside a bare proxy, in one run, on this machine. Loopback only.

Exit codes: 0 measured, 1 a process failed (with --strict also: a goal was missed), 2 wrong usage.
"""

import argparse
import os
import platform
import sys
import tempfile
from pathlib import Path

from gateway import __version__
from tests.bench import report as reports
from tests.bench.processes import BenchFailed, raise_file_limit
from tests.bench.routed import measure_routed
from tests.bench.scenarios import Answer, Plan, Report, run

_SCENARIOS = ("start", "echo", "ask", "routed", "holds")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("scenario", nargs="*", metavar="SCENARIO", help=f"of {', '.join(_SCENARIOS)} [all]")
    parser.add_argument(
        "--quick", action="store_true", help="short rounds and 1,000 holds: does it work at all"
    )
    parser.add_argument("--seconds", type=float, help="length of one load [3]")
    parser.add_argument("--rounds", type=int, help="loads per proxy, in turn; medians are shown [3]")
    parser.add_argument("--holds", type=int, help="calls held at once [10000]")
    parser.add_argument(
        "--addresses",
        type=int,
        default=2,
        help="of the legacy server, in turn, while calls are held [2]: Linux looks long for a free port when one "
        "address has half as many connections as there are ports",
    )
    parser.add_argument(
        "--answers", choices=["sse", "json", "both"], default="both", help="of the legacy server"
    )
    parser.add_argument(
        "--log-level", choices=["info", "warning"], default="info", help="of the gateway [info]"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    form.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a goal is not met")
    return parser


def main() -> int:
    """Run, print, and say by the exit code whether it worked."""
    parser = _parser()
    options = parser.parse_args()
    if unknown := set(options.scenario) - set(_SCENARIOS):
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    answers: tuple[Answer, ...] = ("sse", "json") if options.answers == "both" else (options.answers,)
    quick = options.quick
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("w+b") as log:
        plan = Plan(
            seconds=options.seconds or (1.0 if quick else 3.0),
            rounds=options.rounds or (1 if quick else 3),
            holds=options.holds or (1000 if quick else 10_000),
            starts=1 if quick else 5,
            answers=answers,
            file_limit=raise_file_limit(),
            log_level=options.log_level,
            addresses=options.addresses,
            folder=Path(folder),
            log=log,
            tell=lambda text: print(text, file=sys.stderr, flush=True),
        )
        report = Report(_environment(plan))
        failure = None
        try:
            only = frozenset(options.scenario or _SCENARIOS)
            if "routed" in only:
                measure_routed(plan, report)
            run(plan, report, only=only)
        except BenchFailed as failed:
            failure = f"bench failed: {failed}\n{_tail(Path(folder) / 'log')}"
    show = reports.as_markdown if options.markdown else reports.as_json if options.json else reports.as_text
    print(show(report))
    if failure is not None:
        print(failure, file=sys.stderr)
        return 1
    return int(options.strict and not all(goal.is_met for goal in reports.goals(report)))


def _environment(plan: Plan) -> dict[str, str]:
    return {
        "Holdfast": __version__,
        "Python": platform.python_version(),
        "cores": str(os.cpu_count()),
        "load before": f"{os.getloadavg()[0]:.1f}",
        "each load": f"{plan.seconds:g} s, median of {plan.rounds}",
        "log level": plan.log_level,
    }


def _tail(log: Path, lines: int = 20) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


if __name__ == "__main__":
    sys.exit(main())
