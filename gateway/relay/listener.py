"""One client, waiting for what it is to be sent, in order, ending with one reply. It knows no HTTP stream."""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from gateway.eras.notifications import RoundFilter
from gateway.errors import CallLost, ClientFault, GatewayError, Overloaded, StateRejected, UpstreamFault
from gateway.telemetry.names import Outcome, Rung
from gateway.wire.jsonrpc import Notification, encode_notification

_MOST_WAITING: Final = 256
"""Notifications that a slow reader may be behind; beyond it the oldest are dropped, never the reply."""
_MOST_WAITING_BYTES: Final = 4 * 1024**2
LARGEST_EVENT: Final = (1024 - 96) * 1024
"""Bytes of what a server said. An event has a ticket and more beside it, and Python clients read 1 MiB."""
_ERROR_ID_BYTES: Final = 8


class RpcError(Struct, frozen=True):
    """A JSON-RPC error as it goes out."""

    code: int
    message: str
    data: Any = None


class Reply(Struct, frozen=True):
    """The last word of a round, whoever listens: the id is put in by the edge."""

    outcome: Outcome
    result: Mapping[str, Any] | None = None
    error: RpcError | None = None
    status: int = 200
    headers: Mapping[str, str] = {}
    reason: str | None = None
    detail: str | None = None
    error_id: str | None = None
    """Of an error of ours: the client finds it in `data.errorId`, the operator in the line of the round."""

    @classmethod
    def of(cls, error: GatewayError) -> "Reply":
        """How a refusal or failure of ours looks to the client."""
        if error.error_id is None:
            error.error_id = secrets.token_hex(_ERROR_ID_BYTES)
        data = error.data
        if not isinstance(error, StateRejected):  # whose answer is the same to the byte, whatever was wrong
            data = {**(data or {}), "errorId": error.error_id}
        return cls(
            outcome=_outcome(error),
            error=RpcError(error.rpc_code, error.message, data),
            status=error.http_status,
            headers=dict(error.headers),
            reason=error.reason,
            detail=str(error),
            error_id=error.error_id,
        )


def _outcome(error: GatewayError) -> Outcome:
    match error:
        case ClientFault():
            return Outcome.REFUSED
        case CallLost():
            return Outcome.LOST
        case UpstreamFault():
            return Outcome.UPSTREAM_FAILED
        case Overloaded():
            return Outcome.SHED
        case _:
            return Outcome.INTERNAL


class Ear:
    """One client that waits: what it is to be sent, in order, ending with one reply. The edge takes with `next`."""

    __slots__ = ("_has_begun", "_leave", "_reply", "_waiter", "exchange_id", "round", "rung")

    def __init__(self, *, rung: Rung) -> None:
        self.rung = rung
        self.exchange_id: str | None = None
        self.round = 0
        self._has_begun = False
        self._reply: Reply | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._leave: Callable[[Any], None] | None = None

    def finish(self, reply: Reply) -> None:
        """The last word."""
        if self._reply is None:
            self._reply = reply
            self._wake()

    def left(self) -> None:
        """The client closed its connection."""
        if self._reply is None and self._leave is not None:
            self._leave(self)

    async def next(self, patience: float) -> bytes | Reply | None:
        """The next notification to write, or the reply, or None if neither came within `patience` seconds."""
        told = self._take()
        if told is None and self._reply is None:
            loop = asyncio.get_running_loop()
            self._waiter = waiter = loop.create_future()
            alarm = loop.call_later(patience, self._wake)
            try:
                await waiter
            finally:
                alarm.cancel()
                self._waiter = None
            told = self._take()
        if told is not None or self._reply is None:
            self._has_begun = (
                True  # what is not the last word, be it silence, can only be written to a stream
            )
            return told
        return self._reply

    def _take(self) -> bytes | None:
        """The next notification, if there is one."""
        raise NotImplementedError

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Listener(Ear):
    """What one client of a round hears; the driver gives."""

    __slots__ = ("_filter", "_heir", "_pause", "_waiting")

    def __init__(self, heard: RoundFilter, *, rung: Rung) -> None:
        super().__init__(rung=rung)
        self._filter = heard
        self._waiting: deque[bytes] = deque(maxlen=_MOST_WAITING)
        self._heir: Callable[[Listener, Exception], None] | None = None
        self._pause: Callable[[], None] | None = None

    def joined(self, leave: "Callable[[Listener], None]", pause: Callable[[], None] | None = None) -> None:
        """Someone drives the exchange, wants to know if this client leaves, and can end its round before that."""
        self._leave = leave
        self._pause = pause

    def pause(self) -> None:
        """The process that has this client's connection is about to stop: let the round end, not the call."""
        if self._reply is None and self._pause is not None:
            self._pause()

    def tell(self, notification: Notification) -> None:
        """Pass on what the upstream said, if this client is to hear it."""
        params = self._filter.admit(notification)
        if params is not None and self._reply is None:
            told = encode_notification(notification.method, params)
            if len(told) > LARGEST_EVENT:
                return  # it would cost the client its call
            self._waiting.append(told)
            while len(self._waiting) > 1 and sum(map(len, self._waiting)) > _MOST_WAITING_BYTES:
                self._waiting.popleft()
            self._wake()

    @property
    def is_streaming(self) -> bool:
        """Can it be told no whole answer any more, but events only?"""
        return self._has_begun or bool(self._waiting)

    def rest(self) -> list[bytes]:
        """All that waits to be sent now, the reply excepted."""
        waiting = list(self._waiting)
        self._waiting.clear()
        return waiting

    def entrust(self, heir: "Callable[[Listener, Exception], None]") -> None:
        """Should whoever drives the exchange be lost, `heir` cares for this client, who has noticed nothing."""
        self._heir = heir

    def orphan(self, loss: Exception, last_word: Reply) -> None:
        """Whoever drove the exchange is lost: on to the heir, or else this is the last word."""
        if self._reply is not None:
            return
        self._leave = None
        heir, self._heir = self._heir, None
        if heir is None:
            self.finish(last_word)
        else:
            heir(self, loss)

    def _take(self) -> bytes | None:
        return self._waiting.popleft() if self._waiting else None
