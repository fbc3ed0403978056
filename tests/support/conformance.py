"""Runs the official conformance suite against an endpoint, and reads what it found. It judges nothing."""

import asyncio
import contextlib
import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.support.peers import CONFORMANCE, NODE, PeerFailed

REVISION = "2026-07-28"
_SUITE_SECONDS = 150.0
"""It takes five on an idle machine."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that the suite looked at."""

    scenario: str
    id: str
    status: str
    """SUCCESS, FAILURE, WARNING, INFO or SKIPPED."""
    message: str

    @property
    def is_about_tasks(self) -> bool:
        return self.scenario.startswith("tasks-")


@dataclass(frozen=True, slots=True)
class Report:
    """One run."""

    checks: tuple[Check, ...]
    summary: tuple[str, ...]
    """The suite's own last lines."""
    exit_code: int


def scenarios() -> frozenset[str]:
    """What this revision's frozen list has a server go through, tasks excepted."""
    frozen = yaml.safe_load((CONFORMANCE.parents[1] / "requirements" / f"{REVISION}.yaml").read_text("utf-8"))
    unscored = [entry["scenario"] for entry in frozen["not_scored"] if entry["leg"] == "server"]
    return frozenset(name for name in [*frozen["server"], *unscored] if not name.startswith("tasks-"))


async def run_suite(url: str, directory: Path) -> Report:
    """All scenarios of the revision, one after the other; `directory` must be empty."""
    if not CONFORMANCE.exists():
        raise PeerFailed("the conformance suite is missing: run `bash tests/run` once, it installs the peers")
    process = await asyncio.create_subprocess_exec(
        str(NODE),
        str(CONFORMANCE),
        *("server", "--url", url, "--requirements", REVISION, "-o", str(directory)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), _SUITE_SECONDS)
    except TimeoutError:
        raise PeerFailed(f"the conformance suite was not done after {_SUITE_SECONDS} s") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    words = out.decode("utf-8", "replace")
    _, found, summary = words.partition("=== SUMMARY ===\n")
    if not found or process.returncode is None:
        raise PeerFailed(f"the conformance suite did not come to an end:\n{words[-4000:]}")
    return Report(tuple(_checks(directory)), tuple(summary.strip().splitlines()), process.returncode)


def _checks(directory: Path) -> list[Check]:
    checks = []
    for path in sorted(directory.glob("server-*/checks.json")):
        # server-<scenario>-<when>: 2026-11-18T07-18-08-578Z
        scenario = path.parent.name.removeprefix("server-").rsplit("-", 6)[0]
        for check in json.loads(path.read_text("utf-8")):
            note = check.get("errorMessage") or (check.get("details") or {}).get("note") or ""
            checks.append(Check(scenario, check["id"], check["status"], note))
    return checks
