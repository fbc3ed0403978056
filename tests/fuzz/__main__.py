"""`python -m tests.fuzz`: attack tickets, parsers and running gateways; print what was found, and write it down.

--seed N     another run of the same kind; the same seed sends the same
--scale F    F times as much (1: a million tickets, a hundred thousand each of requests and messages)
--no-write   leave docs/security.md as it is
"""

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gateway import __version__
from tests.fuzz import clients, parsers, tickets, upstreams
from tests.fuzz.report import Report, write

MUTANTS = 1_000_000
ACROSS = 5_000
TIMINGS = 20_000
REQUESTS = 100_000
EVENTS = 200_000
CALLS = 30_000


def run(seed: int, scale: float, tell: Callable[[str], None]) -> Report:
    """All of it, one after the other."""
    report = Report(
        seed,
        f"Holdfast {__version__}, Python {platform.python_version()}, {os.cpu_count()} cores, scale {scale:g}.",
    )
    started = time.monotonic()

    def step(text: str) -> None:
        tell(f"{time.monotonic() - started:6.0f} s  {text}")

    step("tickets")
    report.add_tickets(
        tickets.fuzz_on_all_cores(seed, round(MUTANTS * scale)),
        tickets.fuzz_across(seed, round(ACROSS * scale) or 1),
        tickets.timings(seed, round(TIMINGS * scale) or 10),
    )
    step("parsers")
    report.add_parsers(parsers.fuzz(seed, round(EVENTS * scale)))
    with tempfile.TemporaryDirectory() as folder:
        step("malformed requests")
        report.add_requests(asyncio.run(clients.fuzz(seed, round(REQUESTS * scale), Path(folder))))
        step("a hostile server")
        report.add_upstreams(asyncio.run(upstreams.fuzz(seed, round(CALLS * scale), Path(folder))))
    step("done")
    return report


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    report = run(options.seed, options.scale, lambda text: print(text, file=sys.stderr, flush=True))
    print(report.as_markdown())
    for fault in report.faults[:50]:
        print(fault, file=sys.stderr)
    if not options.no_write:
        write(report)
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
