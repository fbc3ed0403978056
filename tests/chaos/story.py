"""What is known of one exchange, in order of time: for whoever has to find out why it went wrong. Pure."""

import re
from typing import Final

from tests.chaos.records import Records, Told, process_of
from tests.chaos.run import Outcome

_MOST: Final = 8
_SHOWN: Final = ("ts", "process", "round", "rung", "outcome", "reason", "detail", "duration_ms")


def stories(outcome: Outcome) -> str:
    """Of everything that should not have happened; of the first few, if it is much."""
    records, judgement = outcome.records, outcome.judgement
    told = {one.task.name: one for one in records.told}
    wrong = [f"{verdict.kind} {verdict.detail}: {verdict.why}" for verdict in judgement.untrue]
    names = [verdict.name for verdict in judgement.untrue]
    for text in judgement.twice + judgement.reruns + judgement.crossed:
        wrong.append(text)
        names += re.findall(r"chaos-\d+-\d+\.", text)
    wrong += outcome.leaks.sessions + outcome.leaks.sockets + outcome.leaks.processes + outcome.leaks.keys
    wrong += outcome.own_faults
    parts = wrong[: 4 * _MOST] + [story(told[name], records) for name in names[:_MOST] if name in told]
    return "\n".join(parts)


def story(told: Told, records: Records) -> str:
    """A few lines."""
    task = told.task
    id_ = records.exchange_ids.get(task.name)
    lines = []
    for attempt in told.attempts:
        where = f"round {attempt.round} at {process_of(records.passages, attempt)}"
        lines.append((attempt.began, attempt.ended, f"client {where}: {attempt.outcome}"))
    lines += [(since, since, f"ticket of {owner}") for since, owner in records.owners.get(task.name, [])]
    lines += [
        (fault.began, fault.ended, f"{fault.kind} of {fault.target} {fault.detail}")
        for fault in records.faults
        if fault.began <= told.ended and fault.ended >= told.began - 5
    ]
    rounds = [
        "    log " + " ".join(f"{key}={line[key]}" for key in _SHOWN if key in line)
        for line in records.rounds
        if id_ is not None and line.get("exchange") == id_
    ]
    server = records.servers[task.upstream]
    events = [f"    server {event}" for event in server["events"] if f":{task.name}" in event]
    sessions = {entry["session"] for entry in server["http"] if task.name in str(entry.get("body"))} - {None}
    http = [
        f"    http {entry['session'][:8]} {entry['verb']} {entry['lastEventId'] or ''} {str(entry.get('body'))[:110]}"
        for entry in server["http"]
        if entry["session"] in sessions
    ]
    head = f"{task.name} {task.upstream} {task.tool} x{task.questions} by {task.client}, {id_}: {told.ending}"
    shown = [f"{began:7.2f} - {ended:7.2f} {text}" for began, ended, text in sorted(lines)]
    return "\n".join([head, f"    {told.text or told.error}", *shown, *rounds, *events, *http])
