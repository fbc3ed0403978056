"""One client request carried out as one legacy call, however many rounds that takes. `states` has the picture.

Theory of operation. Everything that decides about an exchange is in this file;
it knows neither time nor sockets nor tickets.

* An ask is *open* from the moment it must be relayed until it is answered or
  withdrawn. SETTLING gives asks that are sent together time to arrive together.
* HELD means: the client has our questions, nobody is connected, the legacy call
  goes on. What ends the call then is kept as the *outcome* for the retry.
* GATED: the server asked before any call (roots right after `initialized`).
  Its answer decides what the call may do, so the call waits for it.
* Error -32042 holds like any ask, but the retry sends the call anew.
* A round may end while the call goes on (`RoundPaused`): the client is sent away
  with no question, and finds the call again with its ticket, wherever that is.
* A call that was lost, or that stopped waiting for a slow human, may be run again
  if policy allows (BROKEN: it is being asked): the journal answers what it can.
* Whatever happens in whatever order, the client of a round hears exactly one
  last word, and every ask is answered at most once.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, assert_never

from gateway import errors
from gateway.eras import vocabulary as events
from gateway.eras.asks import KeyNaming, asks_of_url_failure
from gateway.eras.endings import PAGE_NOT_OPENED, begun, judged, lacking
from gateway.eras.policy import AskPolicy
from gateway.eras.questions import MOST_HEARD, MOST_OPEN, Entry, Questions
from gateway.eras.reruns import MOST_RUNS, Past, is_lost_on_its_way, is_worth_another_run
from gateway.eras.states import WORKING, State
from gateway.eras.vocabulary import Abort, Ask, Command, CompleteFailure, Ending, Event, Hold, Reject, Release
from gateway.wire.jsonrpc import Failure, Params

MAX_ROUNDS: Final = 64
"""Clients give up after 10 rounds; a call that asks on and on must not hold a session for ever."""

_ENDED: Final = "The call has ended"


class Exchange:
    """Feed it events in the order they happened; perform the commands it returns, in order."""

    __slots__ = (
        "_asked",
        "_early",
        "_has_run",
        "_is_running",
        "_is_sound",
        "_resend",
        "may_rerun",
        "outcome",
        "round",
        "runs",
        "state",
    )

    def __init__(
        self,
        policy: AskPolicy,
        naming: KeyNaming,
        *,
        early: Sequence[Ask] = (),
        known_roots: Mapping[str, Any] | None = None,
        may_rerun: bool = False,
        past: Past | None = None,
    ) -> None:
        self.state = State.IDLE
        self.round = 0
        """How often the client has been sent away with questions; the ticket of that round carries it."""
        self.runs = 1
        """How often the call was sent for this exchange, by whichever process."""
        self._asked = Questions(policy, naming, known_roots)
        self.may_rerun = may_rerun
        """Would a second run of the call do no harm? Policy says; it is asked for only when it matters."""
        if past is not None:
            self.round, self.runs = past.round, past.runs
            self._asked.remember(past.journal)
        self._early = tuple(early)
        self._is_running = False
        """Does the server work on the call?"""
        self._has_run = False
        self._is_sound = True
        """May another exchange use the session after this one?"""
        self._resend = False
        self.outcome: Ending | None = None
        """How the exchange ended, as the client hears it, or will hear when it is back."""

    @classmethod
    def restored(
        cls, policy: AskPolicy, naming: KeyNaming, past: Past, *, may_rerun: bool, declared: Mapping[str, Any]
    ) -> "Exchange":
        """An exchange that another process held, and whose call still runs.

        Its server may ask again before the client's round is taken: what the client `declared` is known till then.
        """
        exchange = cls(policy, naming, may_rerun=may_rerun)
        exchange._asked.meet(declared, {})
        exchange.round, exchange.runs = past.round, past.runs
        exchange._asked.restore(past.open_asks, past.journal)
        exchange.state = State.HELD
        exchange._is_running = exchange._has_run = True
        return exchange

    @property
    def is_working(self) -> bool:
        """Does the work clock run? It stands still while a human thinks, but not while nobody was asked anything."""
        return self.state in WORKING or (self.state is State.HELD and self._is_running and not self.open_asks)

    @property
    def open_asks(self) -> Mapping[str, Ask]:
        """What the server still waits for, by key."""
        return self._asked.open

    @property
    def journal(self) -> Sequence[Entry]:
        """What the client has answered so far, in whichever run of the call."""
        return self._asked.all_answers

    def questions(self) -> Hold:
        """What the client is being asked in the present round, for a client that lost our answer."""
        return Hold(self._asked.show())

    def vet(self, answers: Mapping[str, Params]) -> errors.InvalidParams | None:
        """What is wrong with these answers, before anything is written down or changed because of them."""
        return self._asked.vet(answers)

    def receive(self, event: Event) -> list[Command]:
        """What must be done now that this has happened."""
        if self.state is State.DONE:
            return []  # a late word of either side: the last word has been said
        match event:
            case events.UpstreamAnswered():  # how nearly all calls end, most without anything in between
                return self._hear_upstream(event)
            case events.ClientCalled():
                return self._start(event)
            case events.ClientRetried():
                return self._resume(event)
            case events.ClientLeft():
                is_listening = self.state in WORKING
                return self._abandon("The client left", self._lost("cancelled")) if is_listening else []
            case events.SettleElapsed() | events.HoldExpired() | events.WorkTimedOut() | events.RoundPaused():
                return self._hear_clock(event)
            case events.RerunJudged(is_allowed):
                return self._go_over(is_allowed=is_allowed) if self.state is State.BROKEN else []
            case _:
                return self._hear_upstream(event) if self.state is not State.BROKEN else []

    def _hear_upstream(self, event: events.UpstreamEvent) -> list[Command]:
        match event:
            case events.UpstreamAnswered(result):
                return self._end_call(judged(result, self._asked.needs))
            case events.UpstreamAsked(ask):
                return self._take(ask)
            case events.UpstreamWithdrew(ask_id):
                self._asked.withdraw(ask_id)
                return self._unsettle()
            case events.UpstreamFailed(failure):
                return self._fail(failure)
            case events.UpstreamBroke(error):
                self._is_sound = False
                self._asked.lose()
                return self._lose(error)
            case events.AnswerNotTaken(error):
                # Before the call it does no harm: the call itself will find out what is wrong.
                why = "The server did not take an answer"
                return self._break_off(why, begun(error)) if self._is_running else []
            case events.AnswerRefused(ask, error):
                return self._take_back(ask, error)
            case events.SessionChanged(early):
                return self._change_session(early)
            case _:
                assert_never(event)

    def _hear_clock(self, event: events.ClockEvent) -> list[Command]:
        match event:
            case events.SettleElapsed():
                return self._settled()
            case events.WorkTimedOut() if self.state is State.BROKEN:
                return self._go_over(is_allowed=False)
            case events.WorkTimedOut(error):
                return self._break_off("Timed out", error) if self.is_working else []
            case events.HoldExpired():
                return self._expire() if self.state is State.HELD else []
            case events.RoundPaused():
                can_pause = self._is_running and self.state in WORKING and self.round < MAX_ROUNDS
                return self._hold() if can_pause else []

    # --- the client's side -----------------------------------------------------

    def _start(self, event: events.ClientCalled) -> list[Command]:
        self._expect(State.IDLE)
        self._asked.meet(event.capabilities, event.answers)
        self.state = State.GATED
        return self._meet_session(self._early)

    def _resume(self, event: events.ClientRetried) -> list[Command]:
        self._expect(State.HELD)
        try:
            given = self._asked.read(event.answers)
            late = self._asked.read_late(event.answers)
        except errors.InvalidParams as error:
            return [Reject(error.bare())]
        self.state = State.SETTLING  # somebody listens again
        if self.may_rerun and is_worth_another_run(self.outcome, was_late=bool(late)):
            self._asked.meet_again(event.capabilities)
            return self._run_again(late)
        is_page_refused = self._asked.is_page_refused(given)
        commands = [command for key in given for command in self._asked.deliver(key, given[key])]
        commands += self._asked.meet_again(event.capabilities)
        if self.outcome is not None:
            return [*commands, *self._hear_outcome(self.outcome)]
        if is_page_refused:
            return [*commands, *self._finish(PAGE_NOT_OPENED)]
        if self._resend and self._asked.needs:
            return [*commands, *self._finish(lacking(self._asked.needs))]
        if given or self._asked.has_news or not self.open_asks:
            return [*commands, *self._go_on()]
        return [*commands, *self._hold()]

    def _run_again(self, late: Mapping[str, Params]) -> list[Command]:
        if self.runs >= MOST_RUNS:
            return self._finish(self._lost("asks_differ"))
        self.runs += 1
        self._asked.start_over(late)
        self.outcome, self._is_sound = None, True
        self._send_call()
        return [events.StartOver()]

    def _hear_outcome(self, outcome: Ending) -> list[Command]:
        """The call ended while nobody listened; the client that is back may still have something to do."""
        if isinstance(outcome, CompleteFailure) and (urls := asks_of_url_failure(outcome.failure)):
            self.outcome = None
            return self._hold_for_urls(urls, outcome.failure)
        return self._finish(outcome)

    # --- the upstream's side -----------------------------------------------------

    def _take(self, ask: Ask) -> list[Command]:
        if not self._asked.hear(ask):
            return []
        if self._asked.are_endless:
            return self._break_off("Asked too often", errors.UpstreamFault(f"over {MOST_HEARD} asks"))
        commands = self._asked.take(ask)
        if self.state is State.CALLING and self.open_asks:
            self.state = State.SETTLING
            commands.append(events.StartSettling())
        return commands

    def _take_back(self, ask: Ask, error: errors.GatewayError) -> list[Command]:
        """The caller's credentials were not good enough for the answer: as if this round had not come."""
        if not self._asked.reopen(ask):
            return self._hear_upstream(events.AnswerNotTaken(error))
        was, self.state = self.state, State.HELD
        return [] if was is State.HELD else [Reject(error)]

    def _fail(self, failure: Failure) -> list[Command]:
        urls = asks_of_url_failure(failure)
        if urls and self.state is not State.HELD:
            return self._hold_for_urls(urls, failure)
        if self._asked.needs and not urls:
            return self._end_call(lacking(self._asked.needs))
        return self._end_call(CompleteFailure(failure))

    def _hold_for_urls(self, urls: Sequence[Ask], failure: Failure) -> list[Command]:
        self._resend = True
        self._is_running = False
        self._asked.needs = {}  # the call says itself what it failed of
        commands = self._close_asks_of_call()
        for ask in urls[:MOST_OPEN]:
            self._asked.take(ask)  # an ask without an id is told nothing
        if self._asked.needs:
            return [*commands, *self._end_call(lacking(self._asked.needs))]
        if any(ask.id is None for ask in self.open_asks.values()):
            return [*commands, *self._hold()]
        return [*commands, *self._end_call(CompleteFailure(failure))]  # policy declined them all

    def _lose(self, error: errors.GatewayError) -> list[Command]:
        was_running, self._is_running = self._is_running, False
        if not (was_running and self.state in WORKING and is_lost_on_its_way(error, self.runs)):
            return self._end_call(Abort(error))
        self.state, self.outcome = State.BROKEN, Abort(error)
        return [events.SeekRerun()]

    def _go_over(self, *, is_allowed: bool) -> list[Command]:
        """Policy has spoken, or took too long: the client still listens."""
        return self._run_again({}) if is_allowed else self._finish(self.outcome or self._lost("hold_lost"))

    def _change_session(self, early: Sequence[Ask]) -> list[Command]:
        """The new session was told nothing yet, and what is asked first there may decide what the call can do."""
        self._asked.change_session()
        self._is_running = False
        if self.state is not State.HELD:
            self.state = State.GATED
        return self._meet_session(early)

    # --- transitions -------------------------------------------------------------

    def _meet_session(self, early: Sequence[Ask]) -> list[Command]:
        if not early:
            return self._send_call()
        commands: list[Command] = []
        for ask in early:
            commands += self.receive(events.UpstreamAsked(ask))
        # In a pause the client is away: the call is sent when it is back.
        return [*commands, *self._go_on()] if self.state is State.GATED else commands

    def _send_call(self) -> list[Command]:
        if self.state is not State.HELD:
            self.state = State.CALLING
        self._is_running = self._has_run = True
        self._resend = False
        return [events.SendCall()]

    def _go_on(self) -> list[Command]:
        """Some asks are settled, others may be open: what next?"""
        if self._is_running:
            self.state = State.SETTLING if self.open_asks else State.CALLING
            return [events.StartSettling()] if self.open_asks else []
        if self.open_asks:
            return self._hold()
        if self._resend:
            return self._send_call()
        self.state = State.GATED  # give the server a moment to take the early answers in
        return [events.StartSettling()]

    def _unsettle(self) -> list[Command]:
        if self.state is State.SETTLING and not self.open_asks:
            self.state = State.CALLING
        return []

    def _settled(self) -> list[Command]:
        if self.state is State.SETTLING or (self.state is State.GATED and self.open_asks):
            return self._hold()
        return self._send_call() if self.state is State.GATED else []

    def _hold(self) -> list[Command]:
        if self.round >= MAX_ROUNDS:
            return self._break_off("Asked too often", errors.UpstreamFault(f"over {MAX_ROUNDS} rounds"))
        self.state = State.HELD
        self.round += 1
        return [self.questions()]

    def _end_call(self, ending: Ending) -> list[Command]:
        self._is_running = False
        if self.state is not State.HELD:
            return self._finish(ending)
        self.outcome = self.outcome or ending  # nobody listens: it waits for the retry
        return self._close_asks_of_call()

    def _close_asks_of_call(self) -> list[Command]:
        """Roots are the session's business, any other open ask was the call's, which has ended."""
        closed = self._asked.close(_ENDED, keeping=events.Kind.ROOTS)
        self._is_sound = self._is_sound and not closed
        return closed

    def _finish(self, ending: Ending) -> list[Command]:
        self.outcome = ending
        return [ending, *self._let_go()]

    def _let_go(self) -> list[Command]:
        """Leave the session behind; to whoever gets it next, if it is as good as before."""
        self.state = State.DONE
        commands = self._close_asks_of_call()
        if not self._is_sound:
            commands += self._asked.close(_ENDED)
        return [*commands, Release(reusable=self._is_sound, leftover=self._asked.forget())]

    def _break_off(self, reason: str, error: errors.GatewayError) -> list[Command]:
        """The call has failed, though the server does not know it yet."""
        ending = Abort(error)
        if self.state is not State.HELD:
            return [ending, *self._abandon(reason, ending)]
        self.outcome = self.outcome or ending
        return self._stop(reason)

    def _abandon(self, reason: str, ending: Ending) -> list[Command]:
        self.outcome = ending
        return [*self._stop(reason), *self._let_go()]

    def _stop(self, reason: str) -> list[Command]:
        """Nobody waits any more: tell the upstream so, question by question, then the call itself."""
        was_running, self._is_running = self._is_running, False
        self._is_sound = self._is_sound and not was_running
        return [*self._asked.close(reason), events.CancelCall(reason)] if was_running else []

    def _expire(self) -> list[Command]:
        if self.outcome is not None:
            return self._let_go()
        return self._abandon("Nobody answered in time", self._lost("hold_expired"))

    def _lost(self, cause: str) -> Abort:
        return Abort(errors.CallLost(cause, side_effects_possible=self._has_run))

    def _expect(self, state: State) -> None:
        # A wrong order is our bug, never the peer's: the relay decides what may happen when.
        if self.state is not state:
            raise AssertionError(f"{self.state.name}, expected {state.name}")
