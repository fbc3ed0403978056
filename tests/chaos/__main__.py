"""`python -m tests.chaos`: breaks a whole deployment on purpose, and reports what became of every exchange.

Exit codes: 0 every zero is zero, 1 one is not (the stories are on standard error), 2 wrong usage.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from tests.chaos.plan import Plan
from tests.chaos.records import FaultKind
from tests.chaos.report import as_markdown, put_between_marks, zeros
from tests.chaos.run import run
from tests.chaos.story import stories


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--exchanges", type=int, default=1000, help="how many [1000]")
    parser.add_argument("--seed", type=int, default=1, help="of exchanges and faults [1]")
    parser.add_argument("--report", type=Path, metavar="FILE", help="put the report between its marks")
    parser.add_argument(
        "--kinds", default=",".join(FaultKind), help=f"of faults, with commas [{','.join(FaultKind)}]"
    )
    parser.add_argument("--pause", type=float, default=2.0, help="seconds between two faults [2]")
    return parser


def main() -> int:
    """Run, print, and say by the exit code whether everything held."""
    parser = _parser()
    options = parser.parse_args()
    if options.report is not None and not options.report.is_file():
        parser.error(f"{options.report} is no file with marks to put the report between")
    try:
        kinds = frozenset(FaultKind(kind) for kind in options.kinds.split(",") if kind)
    except ValueError as problem:
        parser.error(str(problem))
    plan = Plan(options.exchanges, options.seed, pause=options.pause, kinds=kinds)
    outcome = asyncio.run(run(plan, lambda text: print(text, file=sys.stderr, flush=True)))
    text = as_markdown(outcome)
    print(text)
    if options.report is not None:
        put_between_marks(options.report, text)
    print(stories(outcome), file=sys.stderr)
    return int(any(zeros(outcome).values()))


if __name__ == "__main__":
    sys.exit(main())
