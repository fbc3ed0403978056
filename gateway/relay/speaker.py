"""What one exchange tells the legacy server beside its call: answers, refusals, a cancellation, the goodbye.

In order, each after the one before was taken. It decides nothing; what goes wrong is fed to the machine.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from gateway.eras import vocabulary as words
from gateway.eras.vocabulary import Ask, Event, Kind
from gateway.errors import UpstreamUnauthorized
from gateway.relay.legacy_call import LegacyCall
from gateway.relay.outbox import Outbox
from gateway.relay.place import Place
from gateway.relay.request import Principal
from gateway.telemetry.names import AskDisposition, AskKind


class Speaker:
    """Speaks for one exchange, once: whoever it feeds makes another one for the next thing that is to be said."""

    __slots__ = ("_call", "_feed", "_may_speak", "_outbox", "_place")

    def __init__(
        self,
        place: Place,
        call: LegacyCall,
        outbox: Outbox,
        feed: Callable[[Event], None],
        may_speak: Callable[[], Awaitable[bool]],
    ) -> None:
        self._place = place
        self._call = call
        self._outbox = outbox
        self._feed = feed
        self._may_speak = may_speak

    def answer(self, ask: Ask, result: Mapping[str, Any], principal: Principal, *, from_client: bool) -> None:
        """Give the server what the client answered, or what is answered without it."""
        count_ask(self._place, ask, AskDisposition.ANSWERED if from_client else AskDisposition.SETTLED)
        if from_client and ask.kind is Kind.ROOTS and principal.is_authenticated:
            self._place.roots.remember(principal.id, result)
        self._deliver(ask, lambda: self._call.answer(ask, result))

    def refuse(self, refusal: words.SendRefusal) -> None:
        """Answer the server's question with an error."""
        count_ask(self._place, refusal.ask, AskDisposition.REFUSED)
        self._deliver(refusal.ask, lambda: self._call.refuse(refusal.ask, refusal.code, refusal.message))

    def cancel(self, reason: str) -> None:
        """Tell the server that nobody waits for the call any more."""
        self._say(lambda: self._call.cancel(reason))

    def set_log_level(self, level: str) -> None:
        """Ask for the messages that this round's client wants to see."""
        self._say(lambda: self._call.set_log_level(level))

    def let_go(self, release: words.Release) -> None:
        """Part from the session, after all that is still to be said."""
        self._say(lambda: self._call.let_go_now(release))

    def _deliver(self, ask: Ask, tell: Callable[[], Awaitable[None]]) -> None:
        async def told() -> None:
            try:
                await tell()
            except UpstreamUnauthorized as error:
                self._feed(words.AnswerRefused(ask, error))

        self._say(told)

    def _say(self, tell: Callable[[], Awaitable[None]]) -> None:
        self._outbox.put(tell, lambda error: self._feed(words.AnswerNotTaken(error.bare())), self._may_speak)


def count_ask(place: Place, ask: Ask, disposition: AskDisposition) -> None:
    """Count what became of a question."""
    place.metrics.ask(place.name, AskKind(ask.kind.value), disposition)
