"""Drives one exchange: feeds its machine what happens, performs what the machine wants.

All deciding is in `eras.exchange`; here is the order in which things are done.
It knows no HTTP and no sealing.
"""

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias, assert_never

from gateway.eras import vocabulary as words
from gateway.eras.exchange import Exchange
from gateway.eras.notifications import PROGRESS, is_of_call
from gateway.eras.states import State
from gateway.eras.vocabulary import Ask, Command, Event, Hold
from gateway.errors import CallLost, GatewayError, Overloaded, StateRejected
from gateway.relay import holding
from gateway.relay.audience import Audience
from gateway.relay.clocks import RoundAlarms, WorkClock
from gateway.relay.legacy_call import LegacyCall
from gateway.relay.listener import Listener, Reply
from gateway.relay.machines import new_exchange
from gateway.relay.outbox import Outbox
from gateway.relay.passport import Passport
from gateway.relay.place import Place
from gateway.relay.replies import ending_reply, input_required, own_fault, too_late
from gateway.relay.request import ClientRequest
from gateway.relay.speaker import Speaker, count_ask
from gateway.telemetry.names import AskDisposition, HoldEnd
from gateway.upstreams.session import Session
from gateway.wire.jsonrpc import Id, Notification, Params

Answers: TypeAlias = Mapping[str, Params]


class Driver:
    """One exchange at work. Made with its session leased; lets go of it by itself."""

    __slots__ = (
        "_alarms",
        "_audience",
        "_call",
        "_consumed",
        "_exchange",
        "_last_reply",
        "_outbox",
        "_place",
        "_request",
        "_work_clock",
        "exchange_id",
        "passport",
    )

    def __init__(
        self,
        place: Place,
        exchange_id: str,
        request: ClientRequest,
        session: Session,
        exchange: Exchange | None = None,
    ) -> None:
        self.exchange_id = exchange_id
        self._place = place
        self._request = request
        self._exchange = exchange if exchange is not None else new_exchange(place, request, session)
        self._call = LegacyCall(place, session, heard_by=self)
        self._outbox: Outbox | None = None
        self._audience = Audience()
        self._consumed: tuple[int, str] | None = None
        """The round whose answers were taken last, and their digest: the same retry again is recognised."""
        self._last_reply: Reply | None = None
        self._work_clock = WorkClock(place.settings.call_timeout)
        self._alarms = RoundAlarms()
        self.passport = Passport()
        place.drivers.add(self)

    # --- found again after its process was gone --------------------------------------

    def pick_up(self, request_id: str, last_event_id: str) -> bool:
        """Go on with a call that another process sent. False: there is no room for one more hold."""
        self.passport.is_out = True
        if not self._enter_hold():
            return False
        self._call.pick_up(request_id, last_event_id, self)
        return True

    def begin_again(self, listener: Listener, consumed: tuple[int, str]) -> None:
        """Run a lost call again; the journal answers what it can."""
        self._consumed = consumed
        self.passport.is_out = True
        self._place.ledger.know(self.exchange_id, self)
        self.begin(listener, {})

    def disown(self) -> None:
        """Another replica has it by now: let go of everything here without a word to the server."""
        self._forget(HoldEnd.EVICTED)
        self._call.abandon()
        self._audience.finish(Reply.of(CallLost("taken_over")))

    def _forget(self, end: HoldEnd) -> None:
        self._alarms.stop()
        self._work_clock.run(self._time_out, working=False)
        holding.forget(self._place, self, end)

    @property
    def is_stranded(self) -> bool:
        """Did the call end while the client was away?"""
        return self._exchange.state is State.HELD and self._exchange.outcome is not None

    def refuses(self, listener: Listener, round_: int, answers: Answers) -> bool:
        """Tell a client at once that its answers are malformed, before they count as taken anywhere."""
        if self._exchange.state is not State.HELD or round_ != self._exchange.round:
            return False
        error = self._exchange.vet(answers)
        if error is not None:
            listener.exchange_id, listener.round = self.exchange_id, round_
            listener.finish(Reply.of(error))
        return error is not None

    def allow_rerun(self, *, allowed: bool) -> None:
        """Policy has spoken."""
        self._exchange.may_rerun = allowed

    # --- the client's side ---------------------------------------------------------

    def begin(self, listener: Listener, answers: Answers) -> None:
        """The first round."""
        self._admit(listener)
        self._feed(words.ClientCalled(self._request.capabilities, answers))

    def resume(
        self, listener: Listener, request: ClientRequest, round_: int, answers: Answers, digest: str
    ) -> None:
        """A later round, with a ticket of round `round_`. Each round's answers are taken once.

        Raises:
            StateRejected: the ticket is of an earlier round, and this is not the same retry again.
        """
        if request.principal.id != self._request.principal.id:
            raise StateRejected("the hold is another principal's")
        listener.exchange_id = self.exchange_id
        listener.round = round_
        is_consumed = self._consumed is not None and self._consumed[0] >= round_
        if self._exchange.state is State.HELD and round_ == self._exchange.round:
            self._take_answers(listener, request, answers, (round_, digest))
        elif self._consumed == (round_, digest):
            self._join(listener)
        elif self._exchange.state is State.DONE and not is_consumed:
            self._join(listener)  # it ended while the client was away
        else:
            raise StateRejected("ticket of an earlier round")

    def _take_answers(
        self, listener: Listener, request: ClientRequest, answers: Answers, consumed: tuple[int, str]
    ) -> None:
        if self._exchange.open_asks:
            self.passport.is_in_doubt = False  # the server has asked on since
        commands = self._exchange.receive(words.ClientRetried(request.capabilities, answers))
        match commands:
            case [words.Reject(error)]:
                listener.finish(Reply.of(error))
            case _:
                self._consumed = consumed
                if request.principal.authorization is not None:
                    self._place.pool.authorize(self._call.session, request.principal.authorization)
                self._request = request
                self._end_hold(HoldEnd.ANSWERED)
                self._admit(listener)
                if (level := request.log_level) is not None:
                    self._speaker().set_log_level(level)
                self._perform_all(commands)

    def _join(self, listener: Listener) -> None:
        """The same retry again: the client lost our answer, or could not wait for it."""
        match self._exchange.state:
            case State.DONE:
                listener.finish(self._last_reply or Reply.of(StateRejected("ended without a last word")))
            case State.HELD:
                listener.finish(self._ask_client(self._exchange.questions()))
            case _:
                self._admit(listener)

    def _admit(self, listener: Listener) -> None:
        listener.exchange_id = self.exchange_id
        listener.joined(self._leave, self.pause)
        self._audience.admit(listener)
        if self._place.settings.slice:
            self._alarms.slice(self._place.settings.slice, self._end_slice)

    def _leave(self, listener: Listener) -> None:
        if self._audience.leave(listener):
            self._feed(words.ClientLeft())

    # --- rounds that end before the call does ------------------------------------------

    def pause(self) -> None:
        """End the running round, if there is one and room for a hold, with a ticket and no question; not the call."""
        if holding.has_room(self._place, self, self._exchange):
            self._feed(words.RoundPaused())

    def _end_slice(self) -> None:
        if self._exchange.round < holding.MOST_SLICED:
            self.pause()

    @property
    def is_at_work(self) -> bool:
        """Does somebody wait here for what the server will say?"""
        return bool(self._audience)

    @property
    def is_away(self) -> bool:
        """Is the client away, with a ticket?"""
        return self._exchange.state is State.HELD and not self._audience

    @property
    def is_hopeless(self) -> bool:
        """Is there nothing that the client could still get, but the reason?"""
        return isinstance(self._exchange.outcome, words.Abort)

    @property
    def can_move(self) -> bool:
        """Can another process go on where this one stops, with nothing but a ticket?"""
        return self.passport.would_lead(self._exchange, self._call)

    @property
    def request(self) -> ClientRequest:
        """What its client asked for, last time it was here."""
        return self._request

    async def hand_over(self) -> bool:
        """Let whichever process is given the ticket have the exchange. False: it has to stay."""
        leads_to_call = self.passport.leads_to_call
        if not leads_to_call and (self.is_stranded or not self.passport.allows_rerun(self._exchange)):
            return False  # one that has its result already is not run again for it
        if not await self._place.directory.hand_over(self.exchange_id, self._exchange.round):
            return False
        self._forget(HoldEnd.HANDED_OVER)
        if leads_to_call:
            self._call.abandon()
        else:
            self._feed(words.HoldExpired())  # it will be run again: what runs here has no purpose any more
        return True

    def give_up(self) -> None:
        """End a hold before its time, because the gateway stops."""
        self._expire(HoldEnd.DRAINED)

    # --- the upstream's side (legacy_call.Hearer) ------------------------------------

    def hear(self, event: Event) -> None:
        """The call ended, or goes on in another session."""
        if isinstance(event, words.UpstreamAnswered) and not self._audience.can_read(len(event.result)):
            self._end_slice()  # as JSON its client can read it: in the next round
        self._feed(event)

    def hear_ask(self, ask: Ask) -> None:
        """The server asked."""
        self._feed(words.UpstreamAsked(ask))

    def hear_withdrawal(self, ask_id: Id) -> None:
        """The server stopped waiting for an answer."""
        self._feed(words.UpstreamWithdrew(ask_id))

    def hear_notification(self, notification: Notification) -> None:
        """Progress and logs go to whoever listens now; while held nobody does."""
        if is_of_call(notification, self._call.request_id):
            if notification.method == PROGRESS:
                self._work_clock.start_anew(self._time_out)
            self._audience.tell(notification)

    # --- the machine -------------------------------------------------------------------

    def _feed(self, event: Event) -> None:
        self._perform_all(self._exchange.receive(event))

    def _perform_all(self, commands: list[Command]) -> None:
        for command in commands:
            try:
                self._perform(command)
            except Exception as error:  # noqa: BLE001 - our bug must keep neither a client waiting nor a session
                self._last_reply = own_fault(error)
                self._audience.finish(self._last_reply)
        self._work_clock.run(self._time_out, working=self._exchange.is_working)
        if self._exchange.state is State.HELD:
            holding.weigh(self._place, self, self._exchange)

    def _perform(self, command: Command) -> None:
        match command:
            # First what every call needs: most need no more.
            case words.SendCall():
                self._call.start(self._request, self)
            case words.Complete() | words.CompleteFailure() | words.Abort():
                self._last_reply = self._last_word(command)
                self._audience.finish(self._last_reply)
            case words.Release():
                self._release(command)
            case words.StartOver():
                self._call.start_over(self._request, self)
            case words.SeekRerun():
                self._place.background.start(holding.seek_rerun(self._place, self, self._feed), "seek-rerun")
            case words.SendAnswer(ask, result, from_client):
                self._speaker().answer(ask, result, self._request.principal, from_client=from_client)
            case words.SendRefusal():
                self._speaker().refuse(command)
            case words.CancelCall(reason):
                self._speaker().cancel(reason)
            case words.StartSettling():
                self._alarms.settle(self._place.settings.settle, lambda: self._feed(words.SettleElapsed()))
            case Hold():
                self._hold(command)
            case words.Reject(error):
                self._go_back(error)
            case _:
                assert_never(command)

    def _go_back(self, error: GatewayError) -> None:
        """The round comes to nothing, and its ticket is as good as before."""
        self._consumed = None
        if not self._enter_hold():
            self._feed(words.HoldExpired())
        self._audience.finish(Reply.of(error))

    def _speaker(self) -> Speaker:
        if self._outbox is None:
            self._outbox = Outbox(self._place.background)
        # Not kept: the two would keep each other alive.
        return Speaker(
            self._place, self._call, self._outbox, self._feed, partial(holding.may_speak, self._place, self)
        )

    def _time_out(self) -> None:
        self._feed(words.WorkTimedOut())

    # --- replies -----------------------------------------------------------------------

    def _last_word(self, ending: words.Complete | words.CompleteFailure | words.Abort) -> Reply:
        if isinstance(ending, words.Abort):
            self._place.metrics.upstream_error(self._place.name, ending.error.reason)
            is_unheard = bool(self._exchange.round) and self._call.session.id is None
            ending = too_late(ending, is_in_doubt=self.passport.is_in_doubt, is_unheard=is_unheard)
        return ending_reply(ending, self._request, self._call.server, self._place.settings.caching)

    def _ask_client(self, hold: Hold) -> Reply:
        ticket = self.passport.write(self._place, self.exchange_id, self._exchange, self._request, self._call)
        asked = holding.readable(hold, self._audience, self._exchange.round)
        return input_required(asked, ticket, self._call.server)

    def _hold(self, hold: Hold) -> None:
        if not self._enter_hold():
            self._audience.finish(Reply.of(Overloaded(f"{self._place.ledger.held} calls are held")))
            self._feed(words.HoldExpired())
            return
        for ask in self._exchange.open_asks.values():
            count_ask(self._place, ask, AskDisposition.RELAYED)
        if self._place.directory.is_shared:
            self._place.background.start(self._announce(hold), "announce")
        else:
            self._audience.finish(self._ask_client(hold))

    async def _announce(self, hold: Hold) -> None:
        """The others must know who has it before a client can come to them with its ticket."""
        if not await self._place.directory.note_held(self.exchange_id, self._exchange.round):
            self.disown()
            return
        reply = self._ask_client(hold)
        if self._place.is_leaving:
            await self.hand_over()  # first: the client may be back, elsewhere, in a moment
        self._audience.finish(reply)

    def _enter_hold(self) -> bool:
        if not holding.open_hold(self._place, self, self._exchange, partial(self._expire, HoldEnd.EXPIRED)):
            return False
        self._alarms.stop()
        return True

    # --- ends ---------------------------------------------------------------------------

    def _expire(self, end: HoldEnd) -> None:
        self._end_hold(end)
        self._feed(words.HoldExpired())

    def _end_hold(self, end: HoldEnd) -> None:
        holding.end_hold(self._place, self.exchange_id, end)

    def _release(self, release: words.Release) -> None:
        self._alarms.stop()
        self._place.drivers.discard(self)
        outcome = self._exchange.outcome
        if self._exchange.round and outcome is not None:
            self._last_reply = self._last_reply or self._last_word(outcome)
            self._request = self._request.spent()
            holding.keep(self._place, self.exchange_id, outcome, self._last_reply)
        if self._place.directory.is_sure and (self._outbox is None or self._outbox.is_empty):
            self._call.let_go(release)
        else:
            self._speaker().let_go(release)
