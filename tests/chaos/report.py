"""What a run found, as Markdown and as zeros. It judges nothing."""

import os
import platform
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Final

from gateway import __version__
from tests.chaos.judge import RUNGS
from tests.chaos.plan import RESUMABLE, UPSTREAMS
from tests.chaos.records import FaultKind
from tests.chaos.run import Outcome

BEGIN: Final = "<!-- begin: python -m tests.chaos -->"
END: Final = "<!-- end: python -m tests.chaos -->"

_DONE_TO: Final = {
    FaultKind.KILL: "gateway killed (`SIGKILL`) and started again",
    FaultKind.FREEZE: "gateway frozen (`SIGSTOP`, later `SIGCONT`)",
    FaultKind.DRAIN: "gateway drained (`SIGTERM`) and started again",
    FaultKind.REDIS: "Redis restarted (killed or stopped)",
    FaultKind.RESET: "connections to a server reset",
}


def zeros(outcome: Outcome) -> dict[str, int]:
    """What has to be zero."""
    judgement, leaks = outcome.judgement, outcome.leaks
    return {
        "lost": judgement.count("lost"),
        "wrong or crossed": judgement.count("wrong") + len(judgement.crossed),
        "answers delivered twice": len(judgement.twice),
        "silent re-runs": len(judgement.reruns),
        "refusals with a reason that is not true": sum(
            verdict.kind in {"refused", "cut"} for verdict in judgement.untrue
        ),
        "leaked sessions": len(leaks.sessions),
        "leaked sockets": len(leaks.sockets),
        "leaked processes": len(leaks.processes),
        "leaked Redis keys": len(leaks.keys),
        "errors of the gateway's own": len(outcome.own_faults),
    }


def as_markdown(outcome: Outcome) -> str:
    """The report: what was run, what was broken, what became of it."""
    return "\n\n".join(
        [_what_was_run(outcome), _faults(outcome), _became(outcome), _zeros(outcome), _left(outcome)]
    )


def put_between_marks(file: Path, text: str) -> None:
    """Replace what the last run wrote into this file; the words around it stay."""
    before, began, rest = file.read_text("utf-8").partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not began or not ended:
        raise SystemExit(f"{file} has no marks to put the report between")
    file.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", "utf-8")


def _what_was_run(outcome: Outcome) -> str:
    plan = outcome.plan
    servers = ", ".join(
        f"`{kind}` {'with' if name in RESUMABLE else 'without'} an event store"
        for name, kind in UPSTREAMS.items()
    )
    by_sdk = sum(told.task.client == "mcp" for told in outcome.records.told)
    asked = sum(told.task.questions for told in outcome.records.told)
    requests = sum(len(told.attempts) for told in outcome.records.told)
    return (
        f"Holdfast {__version__}, Python {platform.python_version()}, {os.cpu_count()} cores; seed {plan.seed}. "
        f"Three gateways, Redis {outcome.redis_version} (append-only file, `everysec`), a round-robin TCP balancer; "
        f"servers: {servers}. {plan.exchanges:,} exchanges with {asked:,} questions, {plan.at_once} at a time, "
        f"{by_sdk} of them by `mcp` {version('mcp')} and the rest by a client of bare HTTP; "
        f"{requests:,} requests in {outcome.seconds:.0f} s."
    )


def _faults(outcome: Outcome) -> str:
    times = Counter(fault.kind for fault in outcome.records.faults)
    rows = [[_DONE_TO[kind], str(times[kind])] for kind in FaultKind if kind in outcome.plan.kinds]
    return _table(["fault", "times"], rows)


def _became(outcome: Outcome) -> str:
    verdicts = outcome.judgement.verdicts
    completed = Counter(verdict.detail for verdict in verdicts if verdict.kind == "complete")
    rows = [[f"completed, {rung}", str(completed.pop(rung, 0)), ""] for rung in RUNGS]
    rows += [[f"completed, {other}", str(times), ""] for other, times in sorted(completed.items())]
    refused = Counter(verdict.detail for verdict in verdicts if verdict.kind == "refused")
    untrue = Counter(
        verdict.detail for verdict in verdicts if verdict.kind == "refused" and not verdict.is_true
    )
    for reason, times in refused.most_common():
        rows.append([f"refused, `{reason}`", str(times), _truth(untrue[reason])])
    cut = [verdict for verdict in verdicts if verdict.kind == "cut"]
    rows.append(
        [
            "connection cut before the first ticket",
            str(len(cut)),
            _truth(sum(not verdict.is_true for verdict in cut)) if cut else "",
        ]
    )
    return _table(["exchanges", "number", "the reason given is"], rows)


def _truth(untrue: int) -> str:
    return f"**not true** of {untrue}" if untrue else "true of all"


def _zeros(outcome: Outcome) -> str:
    return _table(["must be zero", "found"], [[name, str(count)] for name, count in zeros(outcome).items()])


def _left(outcome: Outcome) -> str:
    leaks = outcome.leaks
    again = len(outcome.judgement.asked_again)
    return (
        f"Not counted as leaks: {leaks.orphans} sessions whose last user was killed while no ticket named them "
        f"(idle ones and spares), {leaks.unheard} whose `initialize` was answered into a cut connection, "
        f"{leaks.bounded_keys} Redis keys with a time to live. Questions put to a user a second time: {again}."
    )


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
