"""One client that listens: first the acknowledgement, then changes, at the end one reply. It knows no session."""

from collections.abc import Callable, Iterable
from typing import Final

from gateway.eras.subscriptions import ACKNOWLEDGED, Change, Heard, Hearing, Interest, acknowledgement
from gateway.relay.clocks import Alarm
from gateway.relay.listener import Ear, Reply
from gateway.telemetry.names import Rung
from gateway.wire.jsonrpc import Id, encode_notification

GATHER_SECONDS: Final = 0.05
"""A server tells all sessions of a caller of the same change. What comes within this time is told once."""


class Subscription(Ear):
    """What the edge takes from.

    What was not taken yet is kept once for each list and resource, however
    often it changed: a client that reads slowly costs no more than it was promised.
    """

    __slots__ = ("_acknowledgement", "_changes", "_gathering", "_hearing", "_is_ripe", "id", "wanted")

    def __init__(self, subscription: Id, wanted: Interest, leave: "Callable[[Subscription], None]") -> None:
        super().__init__(rung=Rung.FIRST)
        self.id = subscription
        self.wanted = wanted
        self._leave = leave
        self._acknowledgement: bytes | None = None
        self._hearing: Hearing | None = None
        self._changes: dict[tuple[str, str | None], Heard] = {}
        self._gathering = Alarm(self._ripen)
        self._is_ripe = False

    @property
    def is_acknowledged(self) -> bool:
        """Was it promised anything yet?"""
        return self._hearing is not None

    def promise(self, promised: Interest) -> None:
        """Acknowledge: from now on it hears of this, and of nothing else."""
        self._hearing = Hearing(self.id, promised)
        self._acknowledgement = encode_notification(ACKNOWLEDGED, acknowledgement(self.id, promised))
        self._wake()

    def tell(self, change: Change) -> None:
        """Something changed. What changes before the promise is what the client reads after it."""
        if self._hearing is not None:
            self._gather(self._hearing.admit(change))

    def tell_everything(self) -> None:
        """Nobody could hear the server for a while: all of it may have changed."""
        if self._hearing is not None:
            self._gather(self._hearing.everything())

    def finish(self, reply: Reply) -> None:
        """The last word; what is gathered comes before it."""
        self._gathering.stop()
        self._is_ripe = True
        super().finish(reply)

    def left(self) -> None:
        """The client closed its connection."""
        self._gathering.stop()
        super().left()

    def _gather(self, heard: Iterable[Heard]) -> None:
        if self._reply is not None:
            return
        for told in heard:
            self._changes[told.method, told.uri] = told
        if self._changes and not self._is_ripe and not self._gathering.is_set:
            self._gathering.set(GATHER_SECONDS)

    def _ripen(self) -> None:
        self._is_ripe = True
        self._wake()

    def _take(self) -> bytes | None:
        if self._acknowledgement is not None:
            first, self._acknowledgement = self._acknowledgement, None
            return first
        if self._is_ripe and self._changes:
            told = self._changes.pop(next(iter(self._changes)))
            return encode_notification(told.method, told.params)
        self._is_ripe = False
        return None
