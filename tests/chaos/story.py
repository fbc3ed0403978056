"""What is known of one exchange, in order of time: for whoever has to find out why it went wrong. Pure."""

from tests.chaos.records import Records, Told


def story(told: Told, records: Records) -> str:
    """A few lines."""
    task = told.task
    process_of = {passage.port: passage.process for passage in records.passages}
    id_ = records.exchange_ids.get(task.name)
    lines = [
        (attempt.began, f"{attempt.began:7.2f}-{attempt.ended:7.2f} client round {attempt.round} at "
         f"{process_of.get(attempt.port)}: {attempt.outcome}")
        for attempt in told.attempts
    ]
    lines += [
        (since, f"{since:7.2f}         ticket of {owner}") for since, owner in records.owners.get(task.name, [])
    ]
    lines += [
        (fault.began, f"{fault.began:7.2f}-{fault.ended:7.2f} {fault.kind} of {fault.target} {fault.detail}")
        for fault in records.faults
        if fault.began <= told.ended and fault.ended >= told.began - 5
    ]
    rounds = [
        "        log " + " ".join(f"{key}={line.get(key)}" for key in
        ("ts", "process", "round", "rung", "outcome", "reason", "detail", "duration_ms"))
        for line in records.rounds
        if id_ is not None and line.get("exchange") == id_
    ]
    events = [
        f"        server {event}" for event in records.servers[task.upstream]["events"] if f":{task.name}" in event
    ]
    head = f"{task.name} {task.upstream} {task.tool} x{task.questions} at_once={task.at_once} {task.client} {id_} -> {told.ending} {told.text or told.error}"
    return "\n".join([head, *(text for _, text in sorted(lines)), *rounds, *events])
