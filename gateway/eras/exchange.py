r"""One client request carried out as one legacy call, however many rounds that takes.

                 ClientCalled                       UpstreamAnswered / Failed / Broke
  IDLE -----------------------------> CALLING -----------------------------------> DONE
    \                                  ^  |  UpstreamAsked                          ^
     \ (asks were open on the          |  v                                         |
      \ session before the call)       | SETTLING --- SettleElapsed ---> HELD ------+
       \                               |                                  |  HoldExpired
        +--> GATED --- SettleElapsed --+<------------ ClientRetried ------+

Theory of operation. Everything that decides about an exchange is in this file;
it knows neither time nor sockets nor tickets.

* An ask is *open* from the moment it must be relayed until it is answered or
  withdrawn. SETTLING gives asks that are sent together time to arrive together.
* HELD means: the client has our questions, nobody is connected, the legacy call
  goes on. What ends the call then is kept as the *outcome* for the retry.
* GATED: the server asked before any call (roots right after `initialized`).
  Its answer decides what the call may do, so the call waits for it.
* Error -32042 holds like any ask, but the retry sends the call anew.
* Whatever happens in whatever order, the client of a round hears exactly one
  last word, and every ask is answered at most once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, assert_never

from gateway.eras import answers as reading
from gateway.eras import asks as questions
from gateway.eras.asks import KeyNaming
from gateway.eras.capabilities import merged
from gateway.eras.policy import AskPolicy, Undeclared, Unfit, settle_without_client, withdrawn
from gateway.eras.vocabulary import (
    Abort,
    Ask,
    CancelCall,
    ClientCalled,
    ClientLeft,
    ClientRetried,
    Command,
    Complete,
    CompleteFailure,
    Ending,
    Event,
    Hold,
    HoldExpired,
    Kind,
    Reject,
    Release,
    SendAnswer,
    SendCall,
    SettleElapsed,
    StartSettling,
    UpstreamAnswered,
    UpstreamAsked,
    UpstreamBroke,
    UpstreamFailed,
    UpstreamWithdrew,
    WorkTimedOut,
)
from gateway.errors import CallLost, CapabilityMissing, InvalidParams, UpstreamFault, UpstreamTimedOut
from gateway.wire.jsonrpc import Failure, Id, Params, Raw, decode

MAX_ROUNDS: Final = 64
"""Clients give up after 10 rounds; a call that asks on and on must not hold a session for ever."""


class State(Enum):
    """Where an exchange stands."""

    IDLE = auto()
    GATED = auto()
    CALLING = auto()
    SETTLING = auto()
    HELD = auto()
    DONE = auto()


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal: a question and the client's answer to it."""

    key: str
    kind: Kind
    fingerprint: str
    answer: Params


class Exchange:
    """Feed it events in the order they happened; perform the commands it returns, in order."""

    __slots__ = (
        "_answers_early",
        "_asked",
        "_call_sent",
        "_capabilities",
        "_early",
        "_known_roots",
        "_naming",
        "_needs",
        "_outcome",
        "_policy",
        "_resend",
        "_shown",
        "journal",
        "open_asks",
        "round",
        "state",
    )

    def __init__(
        self,
        policy: AskPolicy,
        naming: KeyNaming,
        *,
        early: Sequence[Ask] = (),
        known_roots: Mapping[str, Any] | None = None,
    ) -> None:
        self.state = State.IDLE
        self.round = 0
        """How often the client has been sent away with questions; the ticket of that round carries it."""
        self.journal: list[Entry] = []
        self.open_asks: dict[str, Ask] = {}
        self._policy = policy
        self._naming = naming
        self._early = tuple(early)
        self._known_roots = known_roots
        self._capabilities: Mapping[str, Any] = {}
        self._answers_early: dict[str, Params] = {}
        self._asked: set[str] = set()
        self._shown: frozenset[str] = frozenset()
        self._needs: dict[str, Any] = {}
        self._call_sent = False
        self._resend = False
        self._outcome: Ending | None = None

    @property
    def is_working(self) -> bool:
        """Does the work clock run? It stands still while a human thinks."""
        return self.state in (State.GATED, State.CALLING, State.SETTLING)

    @property
    def outcome(self) -> Ending | None:
        """How the exchange ended, as the client hears it."""
        return self._outcome

    def receive(self, event: Event) -> list[Command]:
        """What must be done now that this has happened."""
        if self.state is State.DONE:
            return []  # a late word of either side: the last word has been said
        match event:
            case ClientCalled():
                return self._start(event)
            case ClientRetried():
                return self._resume(event)
            case UpstreamAsked(ask):
                return self._take(ask)
            case UpstreamWithdrew(ask_id):
                return self._withdraw(ask_id)
            case UpstreamAnswered(result):
                return self._end_call(self._judge(result))
            case UpstreamFailed(failure):
                return self._fail(failure)
            case UpstreamBroke(error):
                return self._end_call(Abort(error), session_is_sound=False)
            case SettleElapsed():
                return self._settled()
            case ClientLeft():
                return self._abandon("The client closed the connection", None) if self.is_working else []
            case WorkTimedOut():
                return self._abandon("Timed out", Abort(UpstreamTimedOut())) if self.is_working else []
            case HoldExpired():
                return self._expire() if self.state is State.HELD else []
            case _:
                assert_never(event)

    def questions(self) -> Hold:
        """What the client is being asked in the present round, for a client that lost our answer."""
        return Hold(
            {key: questions.input_request(ask, self._capabilities) for key, ask in self.open_asks.items()}
        )

    # --- the client's side -----------------------------------------------------

    def _start(self, event: ClientCalled) -> list[Command]:
        self._expect(State.IDLE)
        self._capabilities = event.capabilities
        self._answers_early = dict(event.answers)
        self.state = State.GATED
        commands = [command for ask in self._early for command in self._dispose(ask)]
        if self.open_asks:
            return [*commands, *self._hold()]
        return [*commands, *self._send_call()]

    def _resume(self, event: ClientRetried) -> list[Command]:
        self._expect(State.HELD)
        try:
            given = self._readable(event.answers)
        except InvalidParams as error:
            return [Reject(error)]
        self._capabilities = event.capabilities
        declined = [key for key in given if self._resend and not reading.is_accepted(given[key])]
        commands = [command for key, answer in given.items() for command in self._deliver(key, answer)]
        if self._outcome is not None:
            return [*commands, *self._finish(self._outcome)]
        if declined:
            failure = Failure(None, -32603, "The user did not open the page that the server asked for", None)
            return [*commands, *self._finish(CompleteFailure(failure))]
        return [*commands, *self._after_answers(was_answered=bool(given))]

    def _readable(self, given: Mapping[str, Params]) -> dict[str, Params]:
        """The answers to open asks that may be delivered; unknown keys are ignored (basic/patterns/mrtr)."""
        readable = {}
        for key, ask in self.open_asks.items():
            answer = given.get(key)
            if answer is None:
                continue
            if reading.check(ask, answer) is reading.Fit.UNFIT:
                if self._policy.unfit is Unfit.ERROR:
                    raise InvalidParams(detail=f"the answer to {key!r} does not fit its requestedSchema")
                if self._policy.unfit is Unfit.REASK:
                    continue
            readable[key] = answer
        return readable

    def _deliver(self, key: str, answer: Params) -> list[Command]:
        ask = self.open_asks.pop(key)
        self.journal.append(Entry(key, ask.kind, questions.fingerprint(ask), answer))
        return [] if ask.id is None else [SendAnswer(ask, answer, from_client=True)]

    def _after_answers(self, *, was_answered: bool) -> list[Command]:
        if not self._call_sent or self._resend:
            if self.open_asks:
                return self._hold()
            if self._resend:
                return self._send_call()
            self.state = State.GATED  # give the server a moment to take the early answers in
            return [StartSettling()]
        if not self.open_asks:
            self.state = State.CALLING
            return []
        if was_answered or self.open_asks.keys() - self._shown:
            self.state = State.SETTLING
            return [StartSettling()]
        return self._hold()

    # --- the upstream's side -----------------------------------------------------

    def _take(self, ask: Ask) -> list[Command]:
        if any(known.id == ask.id and known.id is not None for known in self.open_asks.values()):
            return []  # redelivered: it is the same question
        before = len(self.open_asks)
        commands = self._dispose(ask)
        if self.state is State.CALLING and len(self.open_asks) > before:
            self.state = State.SETTLING
            commands.append(StartSettling())
        return commands

    def _dispose(self, ask: Ask) -> list[Command]:
        """Answer the ask without the client if that is right; otherwise it is open."""
        match settle_without_client(ask, self._policy, self._capabilities, self._known_roots):
            case None:
                return self._open(ask)
            case Undeclared(refusal, needs):
                self._needs = merged(self._needs, needs)
                return [] if ask.id is None else [refusal]
            case settled:
                return [] if ask.id is None else [settled]

    def _open(self, ask: Ask) -> list[Command]:
        key = self._naming.name(ask, position=len(self._asked), taken=self._asked)
        self._asked.add(key)
        self.open_asks[key] = ask
        sent_ahead = self._answers_early.pop(key, None)
        if sent_ahead is not None and _is_usable(ask, sent_ahead):
            return self._deliver(key, sent_ahead)
        return []

    def _withdraw(self, ask_id: Id) -> list[Command]:
        self.open_asks = {key: ask for key, ask in self.open_asks.items() if ask.id != ask_id}
        if self.state is State.SETTLING and not self.open_asks:
            self.state = State.CALLING
        return []

    def _fail(self, failure: Failure) -> list[Command]:
        if failure.code == questions.URL_ELICITATION_REQUIRED and self.state is not State.HELD:
            urls = questions.asks_of_url_failure(failure)
            if urls:
                return self._hold_for_urls(urls, failure)
        if self._needs:
            return self._end_call(Abort(CapabilityMissing(self._needs)))
        return self._end_call(CompleteFailure(failure))

    def _hold_for_urls(self, urls: Sequence[Ask], failure: Failure) -> list[Command]:
        self._resend = True
        self._call_sent = False
        answered = len(self.journal)
        for ask in urls:
            self._dispose(ask)  # an ask without an id is told nothing
        if self._needs:
            return self._end_call(Abort(CapabilityMissing(self._needs)))
        if self.open_asks:
            return self._hold()
        return self._send_call() if len(self.journal) > answered else self._end_call(CompleteFailure(failure))

    def _judge(self, result: Raw) -> Ending:
        """A tool that failed after we had to refuse its question failed for want of that capability."""
        if self._needs:
            value = decode(result)
            if isinstance(value, dict) and value.get("isError") is True:
                return Abort(CapabilityMissing(self._needs))
        return Complete(result)

    # --- transitions -------------------------------------------------------------

    def _send_call(self) -> list[Command]:
        self.state = State.CALLING
        self._call_sent = True
        self._resend = False
        return [SendCall()]

    def _settled(self) -> list[Command]:
        if self.state is State.SETTLING or (self.state is State.GATED and self.open_asks):
            return self._hold()
        return self._send_call() if self.state is State.GATED else []

    def _hold(self) -> list[Command]:
        if self.round >= MAX_ROUNDS:
            return self._abandon(
                "Asked too often", Abort(UpstreamFault(f"asked in more than {MAX_ROUNDS} rounds"))
            )
        self.state = State.HELD
        self.round += 1
        self._shown = frozenset(self.open_asks)
        return [self.questions()]

    def _end_call(self, ending: Ending, *, session_is_sound: bool = True) -> list[Command]:
        self._call_sent = False
        if not session_is_sound:
            self.open_asks = {}
        if self.state is State.HELD:
            self._outcome = ending  # nobody listens: it waits for the retry
            return []
        return self._finish(ending, session_is_sound=session_is_sound)

    def _finish(self, ending: Ending, *, session_is_sound: bool = True) -> list[Command]:
        self._outcome = ending
        sound = session_is_sound and not (
            isinstance(ending, Abort) and isinstance(ending.error, UpstreamFault)
        )
        return [ending, *self._let_go(sound=sound)]

    def _let_go(self, *, sound: bool) -> list[Command]:
        """Leave the session behind. Roots are the session's business, any other open ask was the call's."""
        self.state = State.DONE
        still_open = [ask for ask in self.open_asks.values() if ask.id is not None]
        self.open_asks = {}
        leftover = tuple(ask for ask in still_open if sound and ask.kind is Kind.ROOTS)
        dropped = [withdrawn(ask, "The call has ended") for ask in still_open if ask not in leftover]
        return [*dropped, Release(reusable=sound and not dropped, leftover=leftover)]

    def _abandon(self, reason: str, ending: Ending | None) -> list[Command]:
        """Nobody waits any more: tell the upstream so, question by question, then the call itself."""
        self._outcome = ending or Abort(CallLost("cancelled", reason))
        commands: list[Command] = [] if ending is None else [ending]
        if not self._call_sent:
            return [*commands, *self._let_go(sound=True)]
        commands += [withdrawn(ask, reason) for ask in self.open_asks.values() if ask.id is not None]
        self.open_asks = {}
        self.state = State.DONE
        return [*commands, CancelCall(reason), Release(reusable=False)]

    def _expire(self) -> list[Command]:
        if self._outcome is not None:
            return self._let_go(sound=not isinstance(self._outcome, Abort))
        commands = self._abandon("Nobody answered in time", None)
        self._outcome = Abort(CallLost("hold_expired"))
        return commands

    def _expect(self, state: State) -> None:
        # A wrong order is our bug, never the peer's: the relay decides what may happen when.
        if self.state is not state:
            raise AssertionError(f"{self.state.name}, expected {state.name}")


def _is_usable(ask: Ask, answer: Params) -> bool:
    """May an answer that was sent ahead of its question be used? If not, the question is simply asked."""
    try:
        return reading.check(ask, answer) is reading.Fit.FITS
    except InvalidParams:
        return False
