"""Compares what clients, gateways and servers wrote down. Pure: it starts nothing and asks nobody.

An exchange is right when the result names it and carries its own answers, in order. A refusal is true when
something was done to the very process or connection that had the exchange. Everything else is lost.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from tests.chaos.plan import RESUMABLE
from tests.chaos.records import Ending, Fault, FaultKind, Json, Records, Told, process_of

RUNGS: Final = ("live", "routed", "reattached", "replayed")
_HARM: Final = (FaultKind.KILL, FaultKind.FREEZE, FaultKind.DRAIN)
_LOST_CALL: Final = -31001
_AFTERMATH: Final = 10.0
"""Seconds after a fault in which it is still a reason: a heart must be missed, a retry must come."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one exchange."""

    name: str
    kind: str
    """complete | refused | cut | lost | wrong"""
    detail: str
    """The rung, or the reason."""
    is_true: bool = True
    why: str = ""


@dataclass(slots=True)
class Judgement:
    """What became of all."""

    verdicts: list[Verdict] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    reruns: list[str] = field(default_factory=list)
    crossed: list[str] = field(default_factory=list)
    asked_again: list[str] = field(default_factory=list)
    """Questions that were put to a user twice."""

    def count(self, kind: str) -> int:
        return sum(verdict.kind == kind for verdict in self.verdicts)

    @property
    def untrue(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if not verdict.is_true]


class Judge:
    """Has read everything once; answers for each exchange."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._starts: Counter[str] = Counter()
        self._done: set[str] = set()
        self._received: Counter[tuple[str, str, str]] = Counter()
        for server in records.servers.values():
            for event in server["events"]:
                match event.split(":"):
                    case ["chain", "start", name]:
                        self._starts[name] += 1
                    case ["chain", "done", name]:
                        self._done.add(name)
                    case ["chain", "answer", name, number, value]:
                        self._received[name, number, value] += 1
        self._rungs: dict[str, set[str]] = {}
        self._lines: dict[str, Json] = {}
        for line in records.rounds:
            if line.get("exchange") is not None:
                self._rungs.setdefault(line["exchange"], set()).add(line["rung"])
            if line.get("error_id") is not None:
                self._lines[line["error_id"]] = line

    def judge(self) -> Judgement:
        found = Judgement([self._verdict(told) for told in self._records.told])
        self._find_doubles(found)
        known = {told.task.name: told.task for told in self._records.told}
        for name, number, value in self._received:
            task = known.get(name)
            is_ended = value == "cancelled"  # how a gateway ends a call that it gives up
            if task is None or (task.answers[int(number) - 1] != value and not is_ended):
                found.crossed.append(f"{name} was given {value} for question {number}")
        for told in self._records.told:
            if not told.task.is_repeatable and self._starts[told.task.name] > 1:
                found.reruns.append(f"{told.task.name} ran {self._starts[told.task.name]} times")
            again = [number for number, times in Counter(told.asked).items() if times > 1]
            found.asked_again += [f"{told.task.name} question {number}" for number in again]
        return found

    # --- one exchange ------------------------------------------------------------------

    def _verdict(self, told: Told) -> Verdict:
        name = told.task.name
        match told.ending:
            case Ending.COMPLETE:
                return self._completed(told)
            case Ending.REFUSED:
                return self._refused(told)
            case Ending.CUT:
                hit = self._harm_to({process_of(self._records.passages, told.attempts[-1])}, told)
                return Verdict(name, "cut", "before the first ticket", bool(hit), _words(hit))
            case _:
                last = told.attempts[-1]
                return Verdict(
                    name, "lost", told.ending, is_true=False, why=f"round {last.round}: {last.outcome}"
                )

    def _completed(self, told: Told) -> Verdict:
        task = told.task
        try:
            said = json.loads(told.text or "")
        except ValueError:
            said = told.text
        if said != {"id": task.name, "answers": list(task.answers)}:
            return Verdict(task.name, "wrong", "result", is_true=False, why=str(told.text)[:300])
        return Verdict(task.name, "complete", self._rung(told))

    def _rung(self, told: Told) -> str:
        seen = self._rungs.get(self._records.exchange_ids.get(told.task.name, ""), set())
        return next((rung for rung in reversed(RUNGS) if rung in seen), "not logged")

    def _refused(self, told: Told) -> Verdict:
        error = told.error or {}
        data = error.get("data") or {}
        line = self._lines.get(data.get("errorId", ""), {})
        reason = data.get("reason") or line.get("reason") or f"code {error.get('code')}"
        is_true, why = self._is_true(told, str(reason), error)
        return Verdict(told.task.name, "refused", str(reason), is_true, f"{why}; {line.get('detail', '')}")

    def _is_true(self, told: Told, reason: str, error: Json) -> tuple[bool, str]:
        task = told.task
        owners = {process for _, process in self._records.owners.get(task.name, [])}
        harm = self._harm_to(owners, told)
        cuts = self._cuts(told)
        data = error.get("data") or {}
        if error.get("code") == _LOST_CALL:
            if self._starts[task.name] and not data.get("sideEffectsPossible"):
                return False, "it says that it had no side effects"
            if data.get("canStartAgain") is not True:
                return False, "it does not say that it can be started again"
            if reason == "outcome_lost":
                return bool(harm) and task.name in self._done, f"it had ended; {_words(harm)}"
            if task.is_repeatable:
                return False, f"the tool may be run again, after {_words(harm + cuts)}"
            if task.upstream in RESUMABLE and not cuts:
                return False, f"the server remembers its streams, after {_words(harm)}"
            return bool(harm or cuts), _words(harm + cuts)
        match reason:
            case "upstream_lost":
                return bool(cuts), _words(cuts)
            case "upstream_unreachable":
                return bool(cuts) and not self._starts[task.name], _words(cuts)
            case _:
                return False, f"no such refusal is documented: {error}"

    def _harm_to(self, processes: set[str | None] | set[str], told: Told) -> list[Fault]:
        return [
            fault
            for fault in self._records.faults
            if fault.kind in _HARM and fault.target in processes and _overlaps(fault, told)
        ]

    def _cuts(self, told: Told) -> list[Fault]:
        task = told.task
        return [
            fault
            for fault in self._records.faults
            if fault.kind is FaultKind.RESET
            and fault.target == task.upstream
            and (task.name in fault.exchanges or fault.has_strangers)
            and _overlaps(fault, told)
        ]

    # --- all together --------------------------------------------------------------------

    def _find_doubles(self, found: Judgement) -> None:
        repeatable = {
            answer for told in self._records.told if told.task.is_repeatable for answer in told.task.answers
        }
        by_ask: Counter[tuple[str, str, str]] = Counter()
        by_value: Counter[str] = Counter()
        for upstream, server in self._records.servers.items():
            for entry in server["http"]:
                body = entry.get("body")
                if isinstance(body, dict) and "result" in body and "method" not in body:
                    value = ((body["result"] or {}).get("content") or {}).get("answer")
                    by_ask[upstream, str(entry["session"]), json.dumps(body["id"])] += 1
                    if value is not None:
                        by_value[value] += 1
        found.twice += [
            f"ask {ask} of {self._exchange_in(ask[0], ask[1])} was answered {times} times"
            for ask, times in by_ask.items()
            if times > 1
        ]
        found.twice += [
            f"{value} was delivered {times} times"
            for value, times in by_value.items()
            if times > 1 and value not in repeatable
        ]

    def _exchange_in(self, upstream: str, session: str) -> str:
        """Whose calls a session has had."""
        said = " ".join(
            str(entry.get("body"))
            for entry in self._records.servers[upstream]["http"]
            if entry["session"] == session
        )
        return ", ".join(told.task.name for told in self._records.told if f"'{told.task.name}'" in said)


def _overlaps(fault: Fault, told: Told) -> bool:
    return fault.began <= told.ended and fault.ended + _AFTERMATH >= told.began


def _words(faults: list[Fault]) -> str:
    return ", ".join(f"{fault.kind} of {fault.target} at {fault.began:.1f}" for fault in faults) or "nothing"
