"""Matches answers to requests where everything that a server says comes on one stream. It knows no transport.

Answers go to the request that waits for them. All else goes to whoever listens;
what comes before anybody does (a server may ask in the moment it is initialized)
is kept until then.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.errors import GatewayError
from gateway.upstreams.backlog import Backlog
from gateway.upstreams.transport import Deliver, SessionGone
from gateway.wire.jsonrpc import Failure, Id, Message, Result

_MOST_KEPT: Final = 256
"""Messages kept for the first listener; beyond it the oldest go."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    deliver: Deliver
    answered: asyncio.Future[None]


class OneStream:
    """The receiving half of a channel: fed by its transport with `hear` until `end`."""

    __slots__ = ("_deliver", "_ended", "_ending", "_kept", "_waiting", "has_overheard")

    def __init__(self) -> None:
        self.has_overheard = False
        """Has an answer come to something that nobody waits for here? Some servers tell everyone everything."""
        self._waiting: dict[Id, _Waiting] = {}
        self._deliver: Deliver | None = None
        self._kept = Backlog(_MOST_KEPT)
        self._ending: GatewayError | None = None
        self._ended = asyncio.Event()

    # --- what the transport tells -------------------------------------------------

    def hear(self, message: Message) -> None:
        """A message has come."""
        try:
            if isinstance(message, Result | Failure):
                self._hear_answer(message)
            elif self._deliver is None:
                self._kept.put(message)
            else:
                self._deliver(message)
        except GatewayError as error:
            self.spoil(error)

    def spoil(self, error: GatewayError) -> None:
        """Something came that nobody can read, and it may have been the answer: who waits, waits in vain."""
        for waiting in self._waiting.values():
            if not waiting.answered.done():
                waiting.answered.set_exception(error)

    def end(self, error: GatewayError) -> None:
        """Nothing more will come; `error` says why. The first reason stays."""
        if self._ending is None:
            self._ending = error
            self._ended.set()
            self.spoil(error)

    # --- what the channel offers --------------------------------------------------

    @property
    def has_listener(self) -> bool:
        """Has anybody come to hear what answers nothing?"""
        return self._deliver is not None

    @property
    def has_ended(self) -> bool:
        """Will nothing more come?"""
        return self._ending is not None

    def check(self) -> None:
        """Raise if the stream has ended, so that nothing is sent that nobody would answer.

        Raises:
            SessionGone: it has.
        """
        if self._ending is not None:
            raise SessionGone(str(self._ending))

    def expect(self, request_id: Id, deliver: Deliver) -> "asyncio.Future[None]":
        """Done when the answer to this request has been delivered. To be called before the request is sent.

        Raises:
            SessionGone: the stream has ended already.
        """
        self.check()
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = _Waiting(deliver, answered)
        return answered

    def forget(self, request_id: Id) -> None:
        """Nobody waits for this answer any more."""
        waiting = self._waiting.pop(request_id)
        if waiting.answered.done() and not waiting.answered.cancelled():
            waiting.answered.exception()  # seen: it need not be reported as lost

    async def listen(self, deliver: Deliver, opened: Callable[[], None]) -> None:
        """Deliver what comes unasked, from the first on, until the stream ends; then raise why."""
        self._deliver = deliver
        while self._kept:
            self.hear(self._kept.take())
        opened()
        await self._ended.wait()
        if self._ending is not None:
            raise self._ending

    def _hear_answer(self, answer: Result | Failure) -> None:
        waiting = self._waiting_for(answer)
        if waiting is None:
            self.has_overheard = True
        elif waiting.deliver(answer) and not waiting.answered.done():
            waiting.answered.set_result(None)

    def _waiting_for(self, answer: Result | Failure) -> _Waiting | None:
        if answer.id is not None:
            return self._waiting.get(answer.id)
        # An error about a message whose id the server could not read: it can only be the one that is open.
        return next(iter(self._waiting.values())) if len(self._waiting) == 1 else None
