"""Whatever happens in whatever order: the promises of the exchange machine, played by hypothesis.

The relay keeps to three rules and no others: it starts an exchange once, feeds a
retry only to one that is held, and asks for the settle time only when told to.
Everything else may come at any time, also twice, also when it makes no sense.
"""

from typing import Any

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.eras.asks import KeyNaming
from gateway.eras.exchange import Exchange
from gateway.eras.policy import AskPolicy, Disposition, Unfit
from gateway.eras.reruns import MOST_RUNS
from gateway.eras.states import WORKING, State
from gateway.eras.vocabulary import (
    Abort,
    AnswerNotTaken,
    AnswerRefused,
    Ask,
    CancelCall,
    ClientCalled,
    ClientLeft,
    ClientRetried,
    Command,
    Complete,
    CompleteFailure,
    Event,
    Hold,
    HoldExpired,
    Reject,
    Release,
    RerunJudged,
    RoundPaused,
    SeekRerun,
    SendAnswer,
    SendCall,
    SendRefusal,
    SessionChanged,
    SettleElapsed,
    StartOver,
    StartSettling,
    UpstreamAsked,
    UpstreamBroke,
    UpstreamWithdrew,
    WorkTimedOut,
)
from gateway.errors import UpstreamLost, UpstreamUnauthorized
from gateway.wire.jsonrpc import Id
from tests.support.asking import (
    CANCEL,
    DECLINE,
    EVERYTHING,
    HINT,
    ROOTS,
    SAMPLE,
    accept,
    answered,
    ask,
    failed,
    form,
    page,
    pages_required,
    raw,
    roots,
    sampling,
)

IDS = st.sampled_from([0, 1, 2, 3, "", "0", "1", "x"])
ASKS = st.one_of(
    st.builds(form, IDS, st.sampled_from(["a", "b", "elicitation-1"])),
    st.builds(lambda one: form(one, "a", "b"), IDS),
    st.builds(page, IDS),
    st.builds(sampling, IDS),
    st.builds(roots, IDS),
    st.builds(lambda one: ask(one, "sampling/createMessage", messages=7), IDS),
)
ANSWERS = st.sampled_from(
    [
        *(accept(a="x"), accept(b="x"), accept(a=1), accept(), DECLINE, CANCEL, SAMPLE, ROOTS),
        *({"error": {"code": -1, "message": "no"}}, {}, {"action": "perhaps"}),
    ]
)
KEYS = ["a", "b", "a-2", "b-2", "elicitation-1", "elicitation-2", "sampling-1", "roots-1", "unknown"]
CAN = st.sampled_from(
    [EVERYTHING, EVERYTHING, {}, {"elicitation": {}}, {"elicitation": {"url": {}}, "roots": {}}]
)
RELAY_MOSTLY = st.sampled_from([Disposition.RELAY, Disposition.RELAY, Disposition.DECLINE])
POLICIES = st.builds(
    AskPolicy,
    elicitation=RELAY_MOSTLY,
    sampling=RELAY_MOSTLY,
    roots=st.sampled_from([*Disposition, Disposition.RELAY]),
    unfit=st.sampled_from(Unfit),
)
LAST_WORDS = (Hold, Reject, Complete, CompleteFailure, Abort)


class AnyOrder(RuleBasedStateMachine):
    """Plays the relay, both peers and all clocks against one exchange."""

    exchange: Exchange

    def __init__(self) -> None:
        super().__init__()
        self.is_client_there = False
        self.is_session_leased = True
        self.is_call_running = False
        self.is_settling = False
        self.is_seeking = False
        self.may_hold_nothing = False
        self.rounds: list[frozenset[str]] = []
        self.told: list[Ask] = []
        """What the server was told something about; it may still refuse to be told."""
        self.waiting: dict[Id, Ask] = {}
        """What the server may be told something about: asked in this session, and not told yet."""

    @initialize(
        policy=POLICIES,
        early=st.lists(ASKS, max_size=2, unique_by=lambda one: one.id),
        known_roots=st.sampled_from([None, None, ROOTS]),
        can=CAN,
        answers=st.dictionaries(st.sampled_from(KEYS), ANSWERS, max_size=2),
        may_rerun=st.booleans(),
    )
    def call(
        self,
        policy: AskPolicy,
        early: list[Ask],
        known_roots: dict[str, Any] | None,
        can: dict[str, Any],
        answers: dict[str, Any],
        may_rerun: bool,  # noqa: FBT001 - hypothesis names it
    ) -> None:
        self.exchange = Exchange(
            policy, KeyNaming(HINT), early=early, known_roots=known_roots, may_rerun=may_rerun
        )
        self.waiting = {one.id: one for one in early if one.id is not None}
        self.is_client_there = True
        self.feed(ClientCalled(can, {key: raw(answer) for key, answer in answers.items()}))

    @precondition(lambda self: self.exchange.state is State.HELD)
    @rule(data=st.data(), can=CAN)
    def retry(self, data: st.DataObject, can: dict[str, Any]) -> None:
        keys = st.sampled_from([*self.exchange.open_asks, *KEYS])
        answers = data.draw(st.dictionaries(keys, ANSWERS, max_size=4))
        before = snapshot(self.exchange)
        self.is_client_there = True
        commands = self.feed(ClientRetried(can, {key: raw(answer) for key, answer in answers.items()}))
        if any(isinstance(command, Reject) for command in commands):
            assert len(commands) == 1
            assert snapshot(self.exchange) == before, "a rejected retry changed something"

    @rule(one=ASKS)
    def asked(self, one: Ask) -> None:
        assert one.id is not None
        # The same question again is a redelivery: whoever was told something then is told nothing now.
        if one.id not in self.waiting and self.exchange.state is not State.DONE:
            self.waiting[one.id] = one
        self.feed(UpstreamAsked(one))

    @rule(ask_id=IDS)
    def withdrew(self, ask_id: Id) -> None:
        self.waiting.pop(ask_id, None)
        self.feed(UpstreamWithdrew(ask_id))
        assert ask_id not in {one.id for one in self.exchange.open_asks.values()}

    @precondition(lambda self: self.is_call_running)
    @rule(
        end=st.sampled_from(
            [answered(ok=True), answered(isError=True), failed(), pages_required("https://a", "https://b")]
        )
    )
    def ended(self, end: Event) -> None:
        self.is_call_running = False
        self.feed(end)

    @precondition(lambda self: self.is_call_running)
    @rule()
    def broke(self) -> None:
        self.is_call_running = False
        self.feed(UpstreamBroke(UpstreamLost("broke")))

    @precondition(lambda self: self.is_seeking)
    @rule(is_allowed=st.booleans())
    def judged(self, is_allowed: bool) -> None:  # noqa: FBT001 - hypothesis names it
        self.is_seeking = False
        runs, was_broken = self.exchange.runs, self.exchange.state is State.BROKEN
        self.feed(RerunJudged(is_allowed))
        assert self.exchange.runs == runs + (is_allowed and was_broken)
        assert self.exchange.runs <= MOST_RUNS

    @rule()
    def answer_not_taken(self) -> None:
        self.feed(AnswerNotTaken(UpstreamLost("not taken")))

    @precondition(lambda self: bool(self.told))
    @rule(data=st.data())
    def answer_refused(self, data: st.DataObject) -> None:
        one = self.told.pop(data.draw(st.integers(0, len(self.told) - 1)))
        if one.id is None or one.id in self.waiting:
            return  # servers do not ask under one id twice at a time
        self.waiting[one.id] = one
        self.feed(AnswerRefused(one, UpstreamUnauthorized(401)))
        if one not in self.exchange.open_asks.values():
            self.waiting.pop(one.id, None)

    @precondition(lambda self: self.is_call_running)
    @rule(early=st.lists(ASKS, max_size=2, unique_by=lambda one: one.id))
    def session_changed(self, early: list[Ask]) -> None:
        self.is_call_running = False
        self.waiting = {one.id: one for one in early if one.id is not None}
        self.told = []
        self.feed(SessionChanged(tuple(early)))

    @precondition(lambda self: self.is_settling)
    @rule()
    def settled(self) -> None:
        self.is_settling = False
        self.feed(SettleElapsed())

    @rule()
    def paused(self) -> None:
        self.may_hold_nothing = True
        self.feed(RoundPaused())
        self.may_hold_nothing = False

    @rule(late=st.sampled_from([ClientLeft(), WorkTimedOut(), HoldExpired()]))
    def time_passes_or_client_leaves(self, late: Event) -> None:
        if isinstance(late, ClientLeft):
            if not self.is_client_there:
                return
            self.is_client_there = False
        self.feed(late)

    # --- what must be true of every step ---------------------------------------------------

    def feed(self, event: Event) -> list[Command]:
        was_done = self.exchange.state is State.DONE
        was_there = self.is_client_there
        commands = self.exchange.receive(event)
        assert not (was_done and commands), "something was said after the last word"
        words = [command for command in commands if isinstance(command, LAST_WORDS)]
        assert len(words) <= int(was_there), "a word too many, or one that nobody hears"
        if words:
            self.is_client_there = False
        for command in commands:
            self.perform(command)
        if any(isinstance(command, Hold) for command in commands):
            assert isinstance(commands[-1], Hold), "the relay may end an exchange that it cannot hold"
        return commands

    def perform(self, command: Command) -> None:
        assert self.is_session_leased, "the session was let go before everything was said"
        match command:
            case SendAnswer(one) | SendRefusal(one):
                assert one.id is not None
                assert self.waiting.pop(one.id, None) is not None, f"{one.id!r} was told something twice"
                self.told.append(one)
            case SendCall():
                assert not self.is_call_running
                self.is_call_running = True
            case StartOver():
                assert not self.is_call_running
                self.is_call_running = True
                self.waiting, self.told = {}, []
            case SeekRerun():
                assert not self.is_call_running
                assert self.is_client_there, "nobody waits for another run"
                self.is_seeking = True
            case CancelCall():
                assert self.is_call_running, "there was nothing to cancel"
                self.is_call_running = False
            case StartSettling():
                self.is_settling = True
            case Hold(requests):
                assert requests or self.may_hold_nothing, "a hold without a question"
                assert len(set(requests)) == len(requests)
                self.rounds.append(frozenset(requests))
            case Release(reusable, leftover):
                self.is_session_leased = False
                assert not self.is_call_running, "the call was left running"
                assert reusable or not leftover
                left = {one.id for one in leftover}
                assert left <= self.waiting.keys()
            case _:
                pass

    @invariant()
    def a_client_waits_exactly_while_there_is_work(self) -> None:
        if not hasattr(self, "exchange"):
            return
        assert self.is_client_there == (self.exchange.state in WORKING)

    @invariant()
    def the_session_is_leased_until_the_end(self) -> None:
        if hasattr(self, "exchange"):
            assert self.is_session_leased == (self.exchange.state is not State.DONE)
            assert (self.exchange.outcome is not None) or self.is_session_leased

    @invariant()
    def nobody_waits_without_a_clock_or_a_call(self) -> None:
        if hasattr(self, "exchange") and self.exchange.is_working:
            assert self.is_call_running or self.is_settling or self.is_seeking

    @invariant()
    def questions_that_settle_are_there(self) -> None:
        if hasattr(self, "exchange") and self.exchange.state is State.SETTLING:
            assert self.exchange.open_asks
            assert self.is_settling

    @invariant()
    def the_journal_names_each_question_once(self) -> None:
        if hasattr(self, "exchange"):
            keys = [entry.key for entry in self.exchange._asked.journal]
            assert len(set(keys)) == len(keys)
            assert not set(keys) & self.exchange.open_asks.keys()
            assert self.exchange.round == len(self.rounds)

    def teardown(self) -> None:
        """However it went, time ends it: the client hears its word and the session is let go."""
        if not hasattr(self, "exchange") or self.exchange.state is State.DONE:
            return
        if self.exchange.is_working:
            self.feed(WorkTimedOut())
        if self.exchange.state is State.HELD:  # paused: it works on, and nobody listens
            self.feed(HoldExpired())
        assert not self.is_session_leased
        assert not self.is_client_there


def snapshot(exchange: Exchange) -> Any:
    return (
        exchange.state,
        exchange.round,
        dict(exchange.open_asks),
        list(exchange.journal),
        exchange.outcome,
        exchange.is_working,
        {
            name: getattr(exchange._asked, name)
            for name in ("needs", "_declared", "_shown", "_taken", "_late")
        },
    )


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = hypothesis.settings(
    max_examples=150,
    stateful_step_count=30,
    deadline=None,
    phases=set(hypothesis.Phase) - {hypothesis.Phase.explain},
)
