"""One initialized legacy session: the handshake, whose answer is whose, and what the server says unasked.

A session serves one exchange at a time: a question on its standing stream names
no call, so there must be only one that it can belong to. It does not know what
an exchange does with what it hears.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, Protocol

from gateway.eras.asks import ask_of
from gateway.eras.discovery import Introduction
from gateway.eras.notifications import CANCELLED, CHANGES
from gateway.eras.vocabulary import Ask
from gateway.errors import GatewayError, UpstreamLost, UpstreamSpokeNonsense, UpstreamTimedOut
from gateway.upstreams.awaited import Awaited
from gateway.upstreams.background import Background
from gateway.upstreams.courtesies import Courtesies
from gateway.upstreams.flag import Flag
from gateway.upstreams.handshake import shake_hands
from gateway.upstreams.transport import Channel, Resumable
from gateway.wire.jsonrpc import (
    Failure,
    Id,
    Message,
    Notification,
    NotJson,
    Request,
    Result,
    decode,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
)

_STANDING_STREAM_SECONDS: Final = 2.0
"""How long a call waits for the standing stream to open; a server that sends no headers has it open by then."""
_CATCH_UP_SECONDS: Final = 2.0
"""How long a server may take over the ping that ends the handshake; one that ignores pings works all the same."""
_TAKE_SECONDS: Final = 30.0
"""How long a server may take to accept what is no call. Where nobody waits, one that hangs would keep the task that
tells it, and a connection, for ever."""
_LAST_WORDS_SECONDS: Final = 0.1
"""How long a session is heard after its last call. What the server told during that on the standing stream, such as a
changed list, takes another connection than the answer, and may come after it."""
_MOST_EARLY_ASKS: Final = 32
_LONGEST_ASK_ID: Final = 1024
_NEVER_OPENED: Final = "The upstream server went away while a session was being opened; the call was not sent"
_INVALID_REQUEST: Final = -32600


class Listener(Protocol):
    """Who a session tells what it hears while leased."""

    def hear_ask(self, ask: Ask) -> None:
        """The server asked."""

    def hear_withdrawal(self, ask_id: Id) -> None:
        """The server stopped waiting for an answer."""

    def hear_notification(self, notification: Notification) -> None:
        """The server told something."""


class Session:
    """An open session. Made by `open_session`; ended by `close`."""

    __slots__ = (
        "_awaited",
        "_background",
        "_channel",
        "_courtesies",
        "_on_change",
        "_on_early_ask",
        "_on_end",
        "_opened",
        "_standing",
        "death",
        "early_asks",
        "listener",
        "log_level",
        "on_gap",
        "served_calls",
        "server",
    )

    def __init__(
        self,
        channel: Channel,
        server: Introduction,
        *,
        background: Background,
        on_early_ask: "Callable[[Session, Ask], None]",
        on_end: "Callable[[Session], None]",
        on_change: "Callable[[Session, Notification], None] | None" = None,
    ) -> None:
        self.server = server
        """How the server introduced itself."""
        self.listener: Listener | None = None
        self.early_asks: list[Ask] = []
        """Asks that came outside any exchange; they join the next one."""
        self.served_calls = 0
        self.log_level: str | None = None
        self.death = Flag()
        """Set when the session is of no more use, whoever found that out."""
        self.on_gap: Callable[[], None] | None = None
        """Told when the standing stream is open again after a time in which nobody could hear the server."""
        self._awaited: dict[Id, Awaited] = {}
        """The requests that are under way."""
        self._channel = channel
        self._background = background
        self._courtesies = Courtesies(background)
        self._on_early_ask = on_early_ask
        self._on_end = on_end
        self._on_change = on_change
        self._standing: asyncio.Task[None] | None = None
        self._opened = Flag()
        """Up from when the server can be heard on the standing stream for the first time."""

    @property
    def is_dead(self) -> bool:
        """Is it of no more use?"""
        return self.death.is_set()

    @property
    def id(self) -> str | None:
        """The server's id for this session, if it has one."""
        return self._channel.session_id

    @property
    def last_event_id(self) -> str | None:
        """Where a later reader of the running call's stream would go on."""
        return self._channel.last_event_id

    @property
    def may_be_read_on(self) -> bool:
        """May the stream of a call, to judge by the server's answers, be read on by another process?"""
        return isinstance(self._channel, Resumable) and self._channel.may_remember

    def call(
        self, request_id: Id, method: str, params: Mapping[str, Any]
    ) -> Coroutine[Any, Any, Result | Failure]:
        """Send one request and wait for its answer; all else that comes meanwhile goes to the listener.

        Raises:
            UpstreamFault: there will be no answer.
        """
        # No coroutine of its own, and the body in no frame: both would last as long as a hold.
        answer = Awaited(self, request_id)
        body = encode_request(request_id, method, params)
        return self._read(self._channel.request(request_id, body, answer.deliver), answer)

    async def call_on(self, request_id: Id, last_event_id: str) -> Result | Failure:
        """Wait for the answer to a call that another process sent. The errors are those of `call`."""
        if not isinstance(self._channel, Resumable):
            raise UpstreamLost("this transport has no memory of what it sent")
        answer = Awaited(self, request_id)
        return await self._read(self._channel.resume(last_event_id, answer.deliver), answer)

    async def _read(self, reading: Awaitable[None], answer: Awaited) -> Result | Failure:
        self._awaited[answer.request_id] = answer
        try:
            await answer.read(reading)
        except UpstreamLost:
            self.death.set()
            raise
        finally:
            del self._awaited[answer.request_id]
        if answer.message is None:
            self.death.set()
            raise UpstreamLost("the stream ended without an answer")
        return answer.message

    def authorize(self, authorization: str) -> None:
        """The caller has a new credential, which the server is to see from now on."""
        self._channel.authorize(authorization)

    async def answer(self, ask_id: Id, result: Mapping[str, Any]) -> None:
        """Answer an ask; returns when the server has taken the answer."""
        await self._tell(encode_result(ask_id, result))

    async def refuse(self, ask_id: Id, code: int, message: str) -> None:
        """Answer an ask with an error."""
        await self._tell(encode_error(ask_id, code, message))

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Tell the server something."""
        await self._tell(encode_notification(method, params))

    async def _tell(self, body: bytes) -> None:
        try:
            async with asyncio.timeout(_TAKE_SECONDS):
                await self._channel.send(body)
        except TimeoutError:
            raise UpstreamTimedOut("it did not take what it was told") from None

    def hear(self, message: Message) -> None:
        """Something came that is not the answer to the running call, on whichever stream.

        Raises:
            UpstreamSpokeNonsense: it is nested so deep that it could be carried, but not taken apart.
        """
        try:
            self._hear(message)
        except NotJson as error:
            raise UpstreamSpokeNonsense(str(error)) from error

    def _hear(self, message: Message) -> None:
        match message:
            case Request(method="ping"):
                self._courtesies.pong(message, self._tell)
            case Request():
                self._hear_request(message)
            case Notification(method=method) if method == CANCELLED:
                self._hear_withdrawal(message)
            case Notification(method=method) if method in CHANGES:
                if self._on_change is not None:
                    self._on_change(self, message)
            case Notification():
                if self.listener is not None:
                    self.listener.hear_notification(message)
            case Result(id=id_) | Failure(id=id_):
                if id_ is not None and (awaited := self._awaited.get(id_)) is not None:
                    awaited.overhear(message)

    def _hear_request(self, request: Request) -> None:
        ask = ask_of(request)
        if ask is None:
            self._courtesies.refuse(request, self._tell)
        elif isinstance(request.id, str) and len(request.id) > _LONGEST_ASK_ID:
            why = "The id is too long"  # it would be kept
            self._courtesies.refuse(request, self._tell, _INVALID_REQUEST, why)
        elif self.listener is not None:
            self.listener.hear_ask(ask)
        elif len(self.early_asks) >= _MOST_EARLY_ASKS:
            self._courtesies.refuse(request, self._tell, -32000, "Too many questions")
        else:
            self._on_early_ask(self, ask)

    def _hear_withdrawal(self, notification: Notification) -> None:
        raw = notification.params.get("requestId")
        ask_id = None if raw is None else decode(raw)
        if isinstance(ask_id, bool) or not isinstance(ask_id, int | str):
            return
        pending = [ask for ask in self.early_asks if ask.id != ask_id]
        is_missed = len(pending) < len(self.early_asks)
        self.early_asks = pending
        if self.listener is not None:
            self.listener.hear_withdrawal(ask_id)
        elif is_missed:
            # It wanted to know before the first call, and nobody was there to ask. A new session asks again.
            self.death.set()
            self._on_end(self)

    @property
    def is_standing(self) -> bool:
        """Is there a standing stream, or one being opened?"""
        return self._standing is not None and not self._standing.done()

    async def stand(self) -> None:
        """Open the standing stream, and wait until the server can be heard on it."""
        self._opened = Flag()
        self._standing = self._background.start(self._listen(), "standing-stream")
        try:
            async with asyncio.timeout(_STANDING_STREAM_SECONDS):
                await self._opened.wait()
        except TimeoutError:
            return  # no headers before the first event: the stream is open all the same

    async def catch_up(self, request_id: Id) -> None:
        """Wait until the server has dealt with all it was told: what it asks because of it has been heard then.

        For channels of one stream, where answers keep their place among the questions. A server that asks for
        `roots/list` at `initialized`, as the filesystem server does, needs the answer before the first call.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CATCH_UP_SECONDS):
                await self.call(request_id, "ping", {})

    async def _listen(self) -> None:
        try:
            await self._channel.listen(self._hear_unasked, self._note_opening)
        except GatewayError:
            self.death.set()
            self._on_end(self)
        finally:
            self._opened.set()

    def _hear_unasked(self, message: Message) -> bool:
        self.hear(message)
        return False

    def _note_opening(self) -> None:
        was_open = self._opened.is_set()
        self._opened.set()
        if was_open and self.on_gap is not None:
            self.on_gap()

    async def abandon(self) -> None:
        """Let go of the session here; there it lives on, for somebody else."""
        self.death.set()
        await self._end_listening()

    async def close(self) -> None:
        """End the session here and there."""
        if self.served_calls and self.is_standing and not (self.is_dead or self._channel.has_one_stream):
            await asyncio.sleep(_LAST_WORDS_SECONDS)
        self.death.set()
        await self._end_listening()
        await self._channel.close()

    async def _end_listening(self) -> None:
        await self._background.close()
        self._standing = None  # how it ended knows where it was, and so this session: the two would stay


async def open_session(
    channel: Channel,
    *,
    request_id: Id,
    client_info: Mapping[str, Any] | None,
    capabilities: Mapping[str, Any],
    on_early_ask: Callable[[Session, Ask], None],
    on_end: Callable[[Session], None],
    on_change: Callable[[Session, Notification], None] | None = None,
) -> Session:
    """Initialize a session on `channel`: handshake, standing stream, `initialized` (taken by the server)."""
    background = Background()
    try:
        server = await shake_hands(channel, request_id, client_info, capabilities)
        channel.speak(server.version)
        session = Session(
            channel,
            server,
            background=background,
            on_early_ask=on_early_ask,
            on_end=on_end,
            on_change=on_change,
        )
        # First: what a server asks in answer to `initialized` (roots, mostly) is dropped while nobody listens.
        await session.stand()
        # Awaited: Python 1.12 refuses a call that overtakes it.
        await session.notify("notifications/initialized")
        if not session.is_standing:
            await session.stand()  # it has no such stream, or wanted to hear `initialized` before
        if channel.has_one_stream:
            await session.catch_up(f"{request_id}-ready")
    except BaseException as error:
        await background.close()
        await channel.close()
        if isinstance(error, UpstreamLost):
            raise type(error)(str(error), detail=_NEVER_OPENED) from error
        raise
    return session
