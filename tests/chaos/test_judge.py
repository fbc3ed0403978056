"""The judge of a chaos run: it must see what is wrong, or its zeros mean nothing."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.judge import Judge, Judgement
from tests.chaos.plan import Plan
from tests.chaos.records import Attempt, Ending, Fault, FaultKind, Json, Passage, Records, Task, Told
from tests.chaos.wires import _EXCHANGE

TASK = Task(
    name="chaos-1-1.",
    upstream="py-plain",
    tool="ask_chain",
    questions=2,
    at_once=False,
    client="lean",
    answers=("one", "two"),
    thinking=(0.0, 0.0),
)
HOLD_LOST: Json = {
    "code": -31001,
    "message": "gone",
    "data": {"reason": "hold_lost", "sideEffectsPossible": True, "canStartAgain": True},
}
KILL = Fault(FaultKind.KILL, "a.1", 2.0, 3.0)


def told(task: Task = TASK, **changes: Any) -> Told:
    text = json.dumps({"id": task.name, "answers": list(task.answers)})
    first = Attempt(1.0, 0, ended=4.0, port=1000, outcome="answered")
    return replace(Told(task, attempts=[first], asked=[1, 2], ending=Ending.COMPLETE, text=text), **changes)


def served(*answers: str, session: str = "s", starts: int = 1, done: bool = True) -> Json:
    """What a server notes that was given these answers."""
    events = [f"chain:start:{TASK.name}"] * starts
    events += [f"chain:answer:{TASK.name}:{n}:{answer}" for n, answer in enumerate(answers, 1)]
    events += [f"chain:done:{TASK.name}"] * done
    http = [posted(n, answer, session) for n, answer in enumerate(answers)]
    return {"events": events, "http": http}


def posted(ask: int, answer: str, session: str = "s") -> Json:
    body = {"id": ask, "result": {"action": "accept", "content": {"answer": answer}}}
    return {"verb": "POST", "session": session, "body": body}


def judged(
    one: Told, server: Json | None = None, *faults: Fault, rounds: list[Json] | None = None
) -> Judgement:
    records = Records(
        told=[one],
        faults=list(faults),
        passages=[Passage(1000, "a.1", 1.0)],
        servers={one.task.upstream: server or served("one", "two")},
        rounds=rounds or [],
        exchange_ids={one.task.name: "hf-1"},
        owners={one.task.name: [(1.0, "a.1")]},
    )
    return Judge(records).judge()


def test_a_right_result_is_complete_on_the_furthest_rung_that_it_needed() -> None:
    """Ours: the gateways' own lines tell the rung."""
    rounds: list[Json] = [
        {"exchange": "hf-1", "rung": rung} for rung in ("first", "routed", "reattached", "live")
    ]
    [verdict] = judged(told(), rounds=rounds).verdicts
    assert (verdict.kind, verdict.detail, verdict.is_true) == ("complete", "reattached", True)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"id": TASK.name, "answers": ["two", "one"]}),
        json.dumps({"id": "chaos-1-2.", "answers": ["one", "two"]}),
        json.dumps({"id": TASK.name, "answers": ["one"]}),
        "not JSON",
    ],
)
def test_any_other_result_is_wrong(text: str) -> None:
    """Ours: answers in another order, another exchange's result, an answer too few."""
    [verdict] = judged(told(text=text)).verdicts
    assert (verdict.kind, verdict.is_true) == ("wrong", False)


def test_an_answer_that_the_user_did_not_give_is_crossed() -> None:
    """Ours: each answer is unique, so a server knows whose it got."""
    assert judged(told(), served("one", "another")).crossed
    assert not judged(told(), served("one", "cancelled")).crossed, "so a gateway ends what it gives up"


def test_an_answer_that_came_twice_is_found_on_the_wire() -> None:
    """Ours: the SDKs drop the second in silence, so HTTP is looked at."""
    server = served("one", "two")
    server["http"].append(posted(1, "two"))
    assert judged(told(), server).twice
    server["http"][-1] = posted(0, "two", "another session")
    assert judged(told(), server).twice, "in another run of a call that must not run again"
    again = replace(TASK, tool="ask_chain_again")
    assert not judged(told(again), server).twice, "which this one may"
    server["http"][-1] = posted(1, "cancel")
    assert judged(told(again), server).twice, "one ask, two answers"


def test_a_call_that_ran_twice_and_must_not_is_a_silent_rerun() -> None:
    """Ours: the server counts."""
    assert judged(told(), served("one", "two", starts=2)).reruns
    again = replace(TASK, tool="ask_chain_again")
    assert not judged(told(again), served("one", "two", starts=2)).reruns


@pytest.mark.parametrize("ending", [Ending.HUNG, Ending.GAVE_UP])
def test_what_never_ended_is_lost(ending: Ending) -> None:
    """Ours: a hang is a loss."""
    [verdict] = judged(told(ending=ending), None, KILL).verdicts
    assert (verdict.kind, verdict.is_true) == ("lost", False)


def refused(error: Json, *faults: Fault, task: Task = TASK) -> bool:
    one = told(task, ending=Ending.REFUSED, text=None, error=error)
    [verdict] = judged(one, served("one", done=False), *faults).verdicts
    assert verdict.kind == "refused"
    return verdict.is_true


def test_a_refusal_is_true_when_its_owner_was_harmed_in_time() -> None:
    """Ours: a reason needs a fault."""
    assert refused(HOLD_LOST, KILL)
    assert not refused(HOLD_LOST)
    assert not refused(HOLD_LOST, replace(KILL, target="b.1"))
    assert not refused(HOLD_LOST, replace(KILL, began=10.0, ended=11.0))


def test_a_refusal_is_not_true_where_the_call_could_have_been_brought_back() -> None:
    """Ours: by its server's memory, or by running it again."""
    assert not refused(HOLD_LOST, KILL, task=replace(TASK, upstream="ts-memory"))
    assert not refused(HOLD_LOST, KILL, task=replace(TASK, tool="ask_chain_again"))


def test_a_refusal_must_not_deny_what_the_server_saw() -> None:
    """Ours: the call ran, so it may have had side effects."""
    data = {**HOLD_LOST["data"], "sideEffectsPossible": False}
    assert not refused({**HOLD_LOST, "data": data}, KILL)
    data = {**HOLD_LOST["data"], "canStartAgain": False}
    assert not refused({**HOLD_LOST, "data": data}, KILL)


def test_a_lost_upstream_needs_a_cut_of_this_very_connection() -> None:
    """Ours: the wires note whose bytes were on what they cut."""
    error = {"code": -32603, "message": "closed", "data": {"reason": "upstream_lost"}}
    cut = Fault(FaultKind.RESET, TASK.upstream, 2.0, 2.0, exchanges=frozenset({TASK.name}))
    assert refused(error, cut)
    assert not refused(error, replace(cut, exchanges=frozenset({"chaos-1-2."})))
    assert not refused(error, replace(cut, target="ts-memory"))


def test_an_error_that_is_not_documented_is_never_true() -> None:
    """Ours: an invalid ticket, say, that the gateway itself gave out."""
    assert not refused({"code": -32602, "message": "?", "data": {"reason": "invalid_request_state"}}, KILL)


def test_a_connection_may_break_before_the_first_ticket_only_with_its_gateway() -> None:
    """Ours: nothing was promised yet, but something must have happened."""
    one = told(ending=Ending.CUT, text=None)
    [verdict] = judged(one, served(done=False), KILL).verdicts
    assert (verdict.kind, verdict.is_true) == ("cut", True)
    [verdict] = judged(one, served(done=False)).verdicts
    assert not verdict.is_true


def test_a_plan_is_the_same_for_the_same_seed_and_no_answer_is_given_twice() -> None:
    """Ours: a run can be repeated, as far as the machine's own timing lets it."""
    tasks = Plan(200, 3).tasks()
    assert tasks == Plan(200, 3).tasks()
    answers = [answer for task in tasks for answer in task.answers]
    assert len(set(answers)) == len(answers)
    assert all(_EXCHANGE.findall(task.name.encode()) == [task.name.encode()] for task in tasks)
    strokes = Plan(1, 3).faults()
    assert {next(strokes).kind for _ in FaultKind} == set(FaultKind), "each kind once before any comes again"
