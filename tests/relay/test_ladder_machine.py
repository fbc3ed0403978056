"""Exchange, ladder and store, put through whatever can happen to replicas, in any order and at any moment.

Three replicas share a store. Processes are killed, frozen, thawed and drained
while rounds are under way; clients come back wherever they like, with the same
answers, with old ones, with others. The servers keep the books.
"""

import asyncio
import json
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gateway.errors import GatewayError
from gateway.relay.listener import Reply
from gateway.relay.request import ClientRequest, Principal
from gateway.telemetry.names import Outcome
from gateway.wire.jsonrpc import Raw, decode, encode
from tests.support.asking_server import AskingServer
from tests.support.ladder_replicas import (
    GRACE_SECONDS,
    HOLD_SECONDS,
    ROUND_SECONDS,
    DistantStore,
    Replica,
    new_replica,
)
from tests.support.leaping_loop import LeapingLoop

ONE = Principal(id="one", material=b"one", is_authenticated=False)
WHICH = st.integers(0, 5)
PAUSES = st.sampled_from([0.0, 0.005, 0.015, 0.06, 0.3, 2.0, 8.0])
"""From within one step of a round to longer than a dead replica is waited for."""
INSTANTS = st.sampled_from([0.0, 0.005, 0.015, 0.025, 0.035, 0.045])
"""Within a round: on its way, looked for, taken over, written down, delivered."""
WORK = st.sampled_from([0.0, 1.0, 12.0])
DOCUMENTED = {-31001, -32602, -32603}


@dataclass
class Conversation:
    """A client's side of an exchange."""

    tag: str
    upstream: str
    tool: str
    arguments: dict[str, Any]
    tickets: dict[int, tuple[str, dict[str, str], float]] = field(default_factory=dict)
    """By round: the ticket, the questions by key, and since when."""
    used: set[int] = field(default_factory=set)
    offered: dict[str, set[str]] = field(default_factory=dict)
    """What was ever answered to each question."""
    results: list[Any] = field(default_factory=list)
    sent: int = 0
    """The latest round whose questions were answered: what is still under way for an earlier one is superseded."""

    def request(self, round_: int | None = None, word: str = "yes") -> ClientRequest:
        params = {"name": Raw(encode(self.tool)), "arguments": Raw(encode(self.arguments))}
        if round_ is not None:
            token, questions, _ = self.tickets[round_]
            self.sent = max(self.sent, round_)
            answers = {}
            for key, question in questions.items():
                value = f"{question}={word}"
                self.offered.setdefault(question, set()).add(value)
                answers[key] = {"action": "accept", "content": {"value": value}}
            params |= {"requestState": Raw(encode(token)), "inputResponses": Raw(encode(answers))}
        return ClientRequest(
            id=1,
            method="tools/call",
            params=params,
            target=self.tool,
            principal=ONE,
            capabilities={"elicitation": {}},
            client_info={"name": "client", "version": "1"},
        )

    def is_spent(self, round_: int) -> bool:
        """Does the client know that this round's answers were taken?"""
        return bool(self.results) or round_ < max(self.tickets)


@dataclass
class Round:
    """A request under way."""

    conversation: Conversation
    replica: Replica
    task: Any
    number: int
    since: float
    is_owed: bool
    """Must it come to more than a refusal, as long as nothing goes wrong?"""
    until: float = 0.0


class Ladders(RuleBasedStateMachine):
    """Does it all."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = LeapingLoop()
        self.store = DistantStore(self.loop.time, is_shared=True)
        self.servers = {"steady": AskingServer(remembers=True), "plain": AskingServer(remembers=False)}
        self.names = (f"r{number}" for number in count(1))
        self.replicas: list[Replica] = []
        self.dead: list[str] = []
        self.is_calm = True
        self.conversations: list[Conversation] = []
        self.rounds: list[Round] = []
        for _ in range(3):
            self.add_replica()

    # --- the world -----------------------------------------------------------------------

    def add_replica(self) -> None:
        name = next(self.names)
        starting = self.loop.spawn(name, new_replica(name, self.loop, self.store, self.servers))
        self.replicas.append(self.loop.run_until_complete(starting))

    def go_on(self, seconds: float) -> None:
        """Let time pass, then see what came of the rounds."""
        self.loop.run_until_complete(asyncio.sleep(seconds))
        self.replicas = [replica for replica in self.replicas if not replica.is_gone]
        for round_ in list(self.rounds):
            if round_.task.cancelled():
                self.rounds.remove(round_)  # its connection was cut: its client may come again
            elif round_.task.done():
                self.rounds.remove(round_)
                self.judge(round_, round_.task.result())
            elif not self.loop.is_frozen(round_.replica.name):
                assert self.loop.now - round_.since <= ROUND_SECONDS, "no reply"

    def awake(self) -> list[Replica]:
        """Where a balancer would send somebody."""
        return [
            replica
            for replica in self.replicas
            if not replica.is_draining and not self.loop.is_frozen(replica.name)
        ]

    def send(self, conversation: Conversation, request: ClientRequest, which: int, *, is_owed: bool) -> None:
        replicas = self.awake()
        replica = replicas[which % len(replicas)]
        task = self.loop.spawn(replica.name, replica.round(conversation.upstream, request))
        round_ = Round(conversation, replica, task, conversation.sent, self.loop.now, is_owed)
        task.add_done_callback(lambda _: setattr(round_, "until", self.loop.now))
        self.rounds.append(round_)

    def a_conversation(self, which: int) -> Conversation:
        talking = [one for one in self.conversations if one.tickets]
        return talking[which % len(talking)]

    def has_tickets(self) -> bool:
        return any(one.tickets for one in self.conversations)

    # --- what clients get ----------------------------------------------------------------

    def judge(self, round_: Round, reply: Reply) -> None:
        conversation = round_.conversation
        if reply.error is not None:
            assert reply.outcome is not Outcome.INTERNAL, reply
            assert reply.error.code in DOCUMENTED, reply
            is_owed = self.is_calm and round_.is_owed and round_.number == conversation.sent
            assert not is_owed, f"refused, and nothing was wrong: {reply}"
            assert round_.number or reply.outcome is not Outcome.LOST, "lost, and there was no ticket yet"
            return
        result = decode(encode(reply.result))
        if result["resultType"] == "complete":
            self.judge_result(conversation, json.loads(result["content"][0]["text"]))
        else:
            self.note_ticket(conversation, result, round_.until)

    def judge_result(self, conversation: Conversation, told: Any) -> None:
        assert told["tag"] == conversation.tag, "another's result"
        assert len(told["answers"]) == conversation.arguments["questions"]
        for number, answer in enumerate(told["answers"]):
            given = conversation.offered.get(f"{conversation.tag}/{number}", ())
            assert answer in given, "not its own answer"
        if conversation.tool == "once":
            assert all(told == earlier for earlier in conversation.results), "two results of one call"
        conversation.results.append(told)

    def note_ticket(self, conversation: Conversation, result: Any, since: float) -> None:
        token = result["requestState"]
        questions = {
            key: asked["params"]["message"] for key, asked in result.get("inputRequests", {}).items()
        }
        assert all(question.startswith(conversation.tag + "/") for question in questions.values())
        try:
            tickets = self.replicas[0].relays[conversation.upstream]._place.tickets
            number = tickets.check(token, conversation.request()).round
        except GatewayError:
            return  # it has run out while its client, or its replica, was away
        conversation.tickets.setdefault(number, (token, questions, since))

    # --- what clients do -----------------------------------------------------------------

    @initialize(upstream=st.sampled_from(["steady", "plain"]), work=WORK)
    def first_call(self, upstream: str, work: float) -> None:
        self.call(0, upstream, "once", 2, work, pause=0.3)

    @rule(
        which=WHICH,
        upstream=st.sampled_from(["steady", "plain"]),
        tool=st.sampled_from(["once", "again"]),
        questions=st.integers(1, 3),
        work=WORK,
        pause=PAUSES,
    )
    def call(self, which: int, upstream: str, tool: str, questions: int, work: float, pause: float) -> None:
        tag = f"{upstream}-{tool}-{len(self.conversations)}"
        arguments = {"tag": tag, "questions": questions, "work": work}
        conversation = Conversation(tag, upstream, tool, arguments)
        self.conversations.append(conversation)
        self.send(conversation, conversation.request(), which, is_owed=True)
        self.go_on(pause)

    @precondition(has_tickets)
    @rule(which=WHICH, where=WHICH, pause=PAUSES)
    def answer(self, which: int, where: int, pause: float) -> None:
        """The newest questions, as they are to be answered; perhaps not for the first time."""
        conversation = self.a_conversation(which)
        newest = max(conversation.tickets)
        is_fresh = self.loop.now - conversation.tickets[newest][2] < GRACE_SECONDS
        self.send(conversation, conversation.request(newest), where, is_owed=is_fresh)
        self.go_on(pause)

    @precondition(has_tickets)
    @rule(which=WHICH, round_=WHICH, where=WHICH, pause=PAUSES)
    def answer_again(self, which: int, round_: int, where: int, pause: float) -> None:
        """Any retry, once more."""
        conversation = self.a_conversation(which)
        rounds = sorted(conversation.tickets)
        self.send(conversation, conversation.request(rounds[round_ % len(rounds)]), where, is_owed=False)
        self.go_on(pause)

    @precondition(has_tickets)
    @rule(which=WHICH, round_=WHICH, where=WHICH, pause=PAUSES)
    def answer_otherwise(self, which: int, round_: int, where: int, pause: float) -> None:
        """A ticket whose answers were taken, with other answers."""
        conversation = self.a_conversation(which)
        spent = [number for number in sorted(conversation.tickets) if conversation.is_spent(number)]
        if spent:
            request = conversation.request(spent[round_ % len(spent)], word="no")
            self.send(conversation, request, where, is_owed=False)
            self.go_on(pause)

    # --- what happens to replicas --------------------------------------------------------

    def has_company(self) -> bool:
        return len(self.awake()) > 1

    @precondition(has_company)
    @rule(which=WHICH, pause=PAUSES)
    def kill(self, which: int, pause: float) -> None:
        """No word to anybody; its clients' connections break. Another process starts in its place."""
        self._kill(self.replicas[which % len(self.replicas)])
        self.go_on(pause)

    def _kill(self, replica: Replica) -> None:
        self.is_calm = False
        self.loop.freeze(replica.name)
        self.dead.append(replica.name)
        self.replicas.remove(replica)
        self.rounds = [round_ for round_ in self.rounds if round_.replica is not replica]
        self.add_replica()

    @precondition(lambda self: self.has_tickets() and self.has_company())
    @rule(which=WHICH, where=WHICH, fault=st.sampled_from(["kill", "freeze"]), instant=INSTANTS, pause=PAUSES)
    def answer_one_that_fails(self, which: int, where: int, fault: str, instant: float, pause: float) -> None:
        """What chance would seldom bring about: it takes the answers, and is gone before it has dealt with them."""
        self.answer(which, where, pause=instant)
        replica = self.rounds[-1].replica if self.rounds else self.awake()[0]
        if fault == "kill":
            self._kill(replica)
        else:
            self.is_calm = False
            self.loop.freeze(replica.name)
        self.go_on(pause)

    @precondition(has_company)
    @rule(which=WHICH, pause=PAUSES)
    def freeze(self, which: int, pause: float) -> None:
        replicas = self.awake()
        self.is_calm = False
        self.loop.freeze(replicas[which % len(replicas)].name)
        self.go_on(pause)

    def has_frozen(self) -> bool:
        return any(self.loop.is_frozen(replica.name) for replica in self.replicas)

    @precondition(has_frozen)
    @rule(pause=PAUSES)
    def thaw(self, pause: float) -> None:
        for replica in self.replicas:
            if self.loop.is_frozen(replica.name):
                self.loop.thaw(replica.name)
                for round_ in self.rounds:
                    if round_.replica is replica:
                        round_.since = self.loop.now
        self.go_on(pause)

    @precondition(has_company)
    @rule(which=WHICH, pause=PAUSES)
    def drain(self, which: int, pause: float) -> None:
        replicas = self.awake()
        replica = replicas[which % len(replicas)]
        self.is_calm = False
        self.loop.spawn(replica.name, replica.drain())
        self.add_replica()
        self.go_on(pause)

    @rule(seconds=st.sampled_from([1.0, 20.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.go_on(seconds)

    @precondition(has_tickets)
    @rule()
    def let_holds_expire(self) -> None:
        self.go_on(HOLD_SECONDS + 10)

    # --- what must be true ---------------------------------------------------------------

    @invariant()
    def no_ask_is_answered_twice(self) -> None:
        for server in self.servers.values():
            assert all(len(answers) == 1 for answers in server.told.values()), dict(server.told)

    @invariant()
    def what_may_not_run_twice_has_not(self) -> None:
        for server in self.servers.values():
            twice = [tag for tag, runs in server.runs_of().items() if runs > 1]
            assert not [tag for tag in twice if "-once-" in tag]

    @invariant()
    def other_answers_come_too_late(self) -> None:
        for server in self.servers.values():
            for ask, answers in server.told.items():
                if "-once-" in server.asks[ask].tag:
                    assert not [answer for answer in answers if answer and answer.endswith("=no")]

    @invariant()
    def nothing_broke(self) -> None:
        broken = [error for error in self.loop.failures if not isinstance(error, GatewayError)]
        assert not broken, broken

    def teardown(self) -> None:
        """Every round ends, and nothing of any exchange is left."""
        try:
            self.thaw(0.0)
            self.go_on(ROUND_SECONDS + 1)
            assert not self.rounds
            self.go_on(HOLD_SECONDS + GRACE_SECONDS + 1)
            assert not [kept for replica in self.replicas for kept in replica.left()]
            for replica in self.replicas:
                self.loop.run_until_complete(self.loop.spawn(replica.name, replica.stop()))
                assert not self.loop.tasks_of(replica.name)
            self.nothing_broke()
            self.no_ask_is_answered_twice()
        finally:
            for name in [*self.dead, *(replica.name for replica in self.replicas)]:
                self.loop.thaw(name)
            self.loop.run_until_complete(_end_all())
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()


async def _end_all() -> None:
    """Bury the dead: their tasks are still there, and would be complained of."""
    while left := asyncio.all_tasks() - {asyncio.current_task()}:  # in ending, some start others
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


@pytest.mark.timeout(600)
def test_nothing_is_lost_crossed_or_done_twice_whatever_happens_to_replicas() -> None:
    """Ours: exchange, ladder and store together have no order of events in which an answer is given twice."""
    run_state_machine_as_test(
        Ladders,
        settings=settings(
            max_examples=100, stateful_step_count=20, suppress_health_check=list(HealthCheck), deadline=None
        ),
    )
