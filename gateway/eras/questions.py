"""What the legacy server has asked in one exchange, and who answers it: policy, an answer sent ahead, or the client.

It keeps the books and their bounds: which asks are open, which of them the client
was shown, how each was answered. It knows no call and no state: when the client
is asked, and what an answer changes, is the exchange's to decide.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from gateway.eras.answers import is_accepted, is_usable, refusal_in, sift
from gateway.eras.asks import KeyNaming, fingerprint, input_request
from gateway.eras.capabilities import merged
from gateway.eras.policy import TOO_MANY, AskPolicy, Undeclared, settle_without_client, withdrawn
from gateway.eras.vocabulary import Ask, Command, Kind, SendAnswer, SendRefusal
from gateway.errors import InvalidParams
from gateway.wire.jsonrpc import Id, Params

MOST_OPEN: Final = 64
"""Nobody answers more at once; what a server asks beyond it is refused."""

MOST_OPEN_BYTES: Final = 16 * 1024**2
"""Pictures for a model to look at are large, but one hold must not take all memory."""

MOST_HEARD: Final = 1000
"""Asks in one exchange, however they were answered. A server that asks on and on is broken."""


class Entry(Struct, frozen=True):
    """One line of the journal: a question and the client's answer to it."""

    key: str
    kind: Kind
    fingerprint: str
    answer: Params

    def __repr__(self) -> str:
        return f"Entry(key={self.key!r}, kind={self.kind!r})"  # an answer is the user's, not the log's


class Questions:
    """The asks of one exchange."""

    __slots__ = (
        "_ahead",
        "_declared",
        "_heard",
        "_known_roots",
        "_late",
        "_marks",
        "_naming",
        "_of_call",
        "_policy",
        "_remembered",
        "_shown",
        "_taken",
        "journal",
        "needs",
        "open",
    )

    def __init__(
        self, policy: AskPolicy, naming: KeyNaming, known_roots: Mapping[str, Any] | None = None
    ) -> None:
        self.open: dict[str, Ask] = {}
        """By key: to be relayed, and neither answered nor withdrawn yet."""
        self.journal: list[Entry] = []
        """What this run of the call has been told, in order."""
        self.needs: dict[str, Any] = {}
        """The capabilities for want of which something was refused."""
        self._policy = policy
        self._naming = naming
        self._known_roots = known_roots
        self._declared: Mapping[str, Any] = {}
        self._ahead: dict[str, Params] = {}
        self._marks: dict[Id, str] = {}
        self._heard = 0
        self._of_call = 0
        self._taken: set[str] = set()
        self._shown: tuple[str, ...] = ()
        self._late: dict[str, Ask] = {}
        """Shown to the client, and given up by the server: the answer can still serve another run of the call."""
        self._remembered: list[Entry] = []
        """Answers from an earlier run, not asked for yet in this one."""

    # --- the client's side -----------------------------------------------------

    def meet(self, capabilities: Mapping[str, Any], answers_ahead: Mapping[str, Params]) -> None:
        """The client of the first round can do this, and gave these answers before it was asked."""
        self._declared = capabilities
        if answers_ahead:
            self._ahead = {key: _own(answer) for key, answer in answers_ahead.items()}

    def meet_again(self, capabilities: Mapping[str, Any]) -> list[Command]:
        """A later round's client may be able to do less: it is not asked what it cannot do."""
        self._declared = capabilities
        commands: list[Command] = []
        for key, ask in list(self.open.items()):
            told = self._tell_without_client(ask)
            if told is not None:
                del self.open[key]
                commands += told
        return commands

    def show(self) -> dict[str, dict[str, Any]]:
        """All that is open, as `inputRequests`."""
        self._shown = tuple(self.open)
        return {key: input_request(ask, self._declared) for key, ask in self.open.items()}

    def read(self, given: Mapping[str, Params]) -> dict[str, Params]:
        """The answers to what is open and was shown: nothing else can the client have answered.

        Raises:
            InvalidParams: one is malformed, or does not fit and policy calls that an error.
        """
        shown = {key: ask for key, ask in self.open.items() if key in self._shown}
        return sift(shown, given, self._policy.unfit)

    def read_late(self, given: Mapping[str, Params]) -> dict[str, Params]:
        """The answers to what the server no longer waits for. The errors are those of `read`."""
        return sift(self._late, given, self._policy.unfit)

    def vet(self, given: Mapping[str, Params]) -> InvalidParams | None:
        """What is wrong with these answers, before anything is written down or changed because of them."""
        try:
            self.read(given)
            self.read_late(given)
        except InvalidParams as error:
            return error.bare()
        return None

    def is_page_refused(self, answers: Mapping[str, Params]) -> bool:
        """Does one of these say no to a page without which the call cannot be made?"""
        return any(self.open[key].id is None and not is_accepted(answers[key]) for key in answers)

    def deliver(self, key: str, answer: Params) -> list[Command]:
        """The client's answer to an open ask. It is told to the server, once, and written down."""
        ask = self.open.pop(key)
        own = _own(answer)
        self.journal.append(Entry(key, ask.kind, fingerprint(ask), own))
        if ask.id is None:
            return []
        refusal = refusal_in(own)
        return [SendAnswer(ask, own, from_client=True) if refusal is None else SendRefusal(ask, *refusal)]

    def reopen(self, ask: Ask) -> bool:
        """An answer of the client's did not reach the server: it is open again. False: it was not the client's."""
        mark = fingerprint(ask)
        for place in reversed(range(len(self.journal))):
            entry = self.journal[place]
            if entry.kind is ask.kind and entry.fingerprint == mark and entry.key in self._shown:
                del self.journal[place]
                self.open[entry.key] = ask
                return True
        return False

    @property
    def all_answers(self) -> list[Entry]:
        """The journal, and what an earlier run was told and this one has not asked yet."""
        return [*self.journal, *self._remembered]

    @property
    def has_news(self) -> bool:
        """Is something open that the client was not told of yet?"""
        return not self.open.keys() <= set(self._shown)

    # --- the upstream's side -----------------------------------------------------

    def hear(self, ask: Ask) -> bool:
        """Note that this was asked. False: it is the same question delivered again, and needs nothing.

        A server must not use an id twice. One that does, for something else, when
        the first question is answered, is understood all the same.
        """
        if ask.id is None:
            return True
        mark = fingerprint(ask)
        if self._marks.get(ask.id) == mark or any(known.id == ask.id for known in self.open.values()):
            return False
        self._marks[ask.id] = mark
        self._heard += 1
        return True

    @property
    def are_endless(self) -> bool:
        """Has the server asked more than any call can need?"""
        return self._heard > MOST_HEARD

    def take(self, ask: Ask) -> list[Command]:
        """Answer the ask without the client if that is right; otherwise it is open."""
        told = self._tell_without_client(ask)
        if told is not None:
            return told
        if not self._has_room(ask):
            return _addressed(SendRefusal(ask, TOO_MANY, "Too many questions at once"))
        key = self._naming.name(ask, position=self._of_call, taken=self._taken)
        self._of_call += ask.kind is not Kind.ROOTS
        self._taken.add(key)
        self.open[key] = ask
        if ask.id is None:
            return []  # a page that the call failed for want of just now: no earlier answer has opened it
        remembered = self._recall(ask)
        if remembered is not None:
            return self.deliver(key, remembered)
        ahead = self._ahead.pop(key, None)
        return self.deliver(key, ahead) if ahead is not None and is_usable(ask, ahead) else []

    def withdraw(self, ask_id: Id) -> None:
        """The server no longer wants to know."""
        self._late |= {key: ask for key, ask in self._seen() if ask.id == ask_id}
        self.open = {key: ask for key, ask in self.open.items() if ask.id != ask_id}

    def lose(self) -> None:
        """The server is gone, and with it everybody who waited for an answer."""
        self._late |= dict(self._seen())
        self.open = {}

    def restore(self, open_asks: Mapping[str, Ask], journal: Sequence[Entry]) -> None:
        """Go on where another process was."""
        self.open = dict(open_asks)
        self.journal = list(journal)
        self._shown = tuple(open_asks)
        self._taken = {*open_asks, *(entry.key for entry in journal)}
        self._of_call = sum(entry.kind is not Kind.ROOTS for entry in journal)
        self._of_call += sum(ask.kind is not Kind.ROOTS for ask in open_asks.values())
        self._marks = {ask.id: fingerprint(ask) for ask in open_asks.values() if ask.id is not None}

    def remember(self, entries: Sequence[Entry]) -> None:
        """Another run of the call was told this: the same question in this run gets the same answer."""
        self._remembered = list(entries)

    def start_over(self, late: Mapping[str, Params]) -> None:
        """The call is run again: what was answered stays answered, everything else is as at the beginning."""
        told = [
            Entry(key, self._late[key].kind, fingerprint(self._late[key]), _own(answer))
            for key, answer in late.items()
        ]
        self.remember([*self.all_answers, *told])
        self.journal, self.needs = [], {}
        self.open, self._late, self._marks = {}, {}, {}
        self._taken, self._shown = set(), ()
        self._heard = self._of_call = 0

    def _recall(self, ask: Ask) -> Params | None:
        """The answer that this question had before, once: asked twice, it is matched in order."""
        if not self._remembered:
            return None
        mark = fingerprint(ask)
        for place, entry in enumerate(self._remembered):
            if entry.kind is ask.kind and entry.fingerprint == mark:
                del self._remembered[place]
                return entry.answer
        return None

    def _seen(self) -> list[tuple[str, Ask]]:
        return [(key, ask) for key, ask in self.open.items() if key in self._shown]

    def change_session(self) -> None:
        """What was asked in the old session cannot be answered in the new one, where ids start again.

        What was answered there is known, should it be asked again.
        """
        self.open = {key: ask for key, ask in self.open.items() if ask.id is None}
        self.remember(self.all_answers)
        self.journal, self.needs, self._marks = [], {}, {}
        self._taken -= {entry.key for entry in self._remembered}

    def forget(self) -> tuple[Ask, ...]:
        """The exchange has ended, and its books are closed; returns what the server still waits for."""
        self.journal, self._remembered, self._late, self._ahead, self._marks = [], [], {}, {}, {}
        if not self.open:
            return ()
        waiting = tuple(ask for ask in self.open.values() if ask.id is not None)
        self.open = {}
        return waiting

    def close(self, reason: str, *, keeping: Kind | None = None) -> list[Command]:
        """Tell the server that nobody will answer, for all that is open but asks of the kind to keep."""
        if not self.open:
            return []
        self._late |= {key: ask for key, ask in self._seen() if ask.kind is not keeping}
        closed = [ask for ask in self.open.values() if ask.kind is not keeping and ask.id is not None]
        self.open = {key: ask for key, ask in self.open.items() if ask.kind is keeping}
        return [withdrawn(ask, reason) for ask in closed]

    def _tell_without_client(self, ask: Ask) -> list[Command] | None:
        """What the ask is told without the client; None if the client must be asked."""
        match settle_without_client(ask, self._policy, self._declared, self._known_roots):
            case None:
                return None
            case Undeclared(refusal, needs):
                self.needs = merged(self.needs, needs)
                return _addressed(refusal)
            case settled:
                return _addressed(settled)

    def _has_room(self, ask: Ask) -> bool:
        used = sum(_size(known) for known in self.open.values())
        return not self.open or (len(self.open) < MOST_OPEN and used + _size(ask) <= MOST_OPEN_BYTES)


def _addressed(command: SendAnswer | SendRefusal) -> list[Command]:
    """A question that came as an error has no id, and so is told nothing."""
    return [] if command.ask.id is None else [command]


def _own(answer: Params) -> Params:
    """Without the rest of the request that it came in: journals live long, and requests can be large."""
    return {name: value.copy() for name, value in answer.items()}


def _size(ask: Ask) -> int:
    return sum(memoryview(value).nbytes for value in ask.params.values())
