"""The one legacy call of an exchange on its leased session: sent, answered, cancelled, let go. It decides nothing."""

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping
from typing import Any, Final, Protocol

from gateway.eras.answers import Inexpressible, to_legacy_answer
from gateway.eras.discovery import Introduction
from gateway.eras.failures import INTERNAL_ERROR
from gateway.eras.pages import without_unsafe_pages
from gateway.eras.requests import to_legacy_params
from gateway.eras.vocabulary import (
    Ask,
    Event,
    Release,
    SessionChanged,
    UpstreamAnswered,
    UpstreamBroke,
    UpstreamFailed,
)
from gateway.errors import GatewayError
from gateway.relay.place import Place
from gateway.relay.request import ClientRequest
from gateway.upstreams.session import Listener, Session
from gateway.upstreams.transport import SessionGone
from gateway.wire.jsonrpc import Failure, Result

_LEVEL_SECONDS: Final = 2.0
"""How long a call waits for the server to take its log level."""


class Hearer(Listener, Protocol):
    """Who hears all that the server says during the call, and what becomes of it."""

    def hear(self, event: Event) -> None:
        """The call ended, or goes on in another session."""


class LegacyCall:
    """What the exchange has of its upstream.

    Whoever hears is not kept here: it has this object, and the two would keep each other alive.
    """

    __slots__ = ("_is_leased", "_is_renewed", "_place", "_task", "request_id", "session")

    def __init__(self, place: Place, session: Session, *, heard_by: Hearer) -> None:
        self.session = session
        self.request_id: str | None = None
        self._place = place
        self._task: asyncio.Task[None] | None = None
        self._is_leased = True
        self._is_renewed = False
        """Did the server lose the session before the call ran? Of a session lost twice in a row the client is told."""
        session.listener = heard_by
        session.served_calls += 1

    @property
    def server(self) -> Introduction:
        """Who answers."""
        return self.session.server

    def start(self, request: ClientRequest, heard_by: Hearer) -> None:
        """Send the call to the server."""
        self._task = self._place.background.start(self._run(request, heard_by), "legacy-call")

    def pick_up(self, request_id: str, last_event_id: str, heard_by: Hearer) -> None:
        """Read on the stream of a call that another process sent."""
        self.request_id = request_id
        reading = self._read_on(request_id, last_event_id, heard_by)
        self._task = self._place.background.start(reading, "legacy-call")

    def start_over(self, request: ClientRequest, heard_by: Hearer) -> None:
        """Run the call again, on a new session; the old one is lost, or knows too much."""
        self._task = self._place.background.start(self._run_over(request, heard_by), "legacy-call")

    async def answer(self, ask: Ask, result: Mapping[str, Any]) -> None:
        """Answer an ask of the call."""
        if ask.id is None:
            return
        try:
            legacy = to_legacy_answer(ask, result, self.server.version)
        except Inexpressible as problem:
            await self.session.refuse(ask.id, INTERNAL_ERROR, str(problem))
        else:
            await self.session.answer(ask.id, legacy)

    async def refuse(self, ask: Ask, code: int, message: str) -> None:
        """Answer an ask of the call with an error."""
        if ask.id is not None:
            await self.session.refuse(ask.id, code, message)

    async def cancel(self, reason: str) -> None:
        """Tell the server, then stop reading: some servers never end the stream of a cancelled call."""
        try:
            if self.request_id is not None:
                params = {"requestId": self.request_id, "reason": reason}
                await self.session.notify("notifications/cancelled", params)
        finally:
            if self._task is not None:
                self._task.cancel()
            self._task = None  # how it ends knows where it was, and so this call: the two would stay

    async def set_log_level(self, level: str) -> None:
        """Have the server log from this level on, if it can be told. What comes is filtered again in any case.

        A refusal of any kind is fine, and so is no answer: servers that cannot
        be told log regardless, and the call does not depend on it.
        """
        session = self.session
        if session.log_level == level or "logging" not in session.server.capabilities:
            return
        session.log_level = level
        with contextlib.suppress(GatewayError, TimeoutError):
            async with asyncio.timeout(_LEVEL_SECONDS):
                await session.call(self._place.ids.next(), "logging/setLevel", {"level": level})

    def abandon(self) -> None:
        """Stop reading, and forget the session without ending it: it is another process's now."""
        if self._task is not None:
            self._task.cancel()
        self._task = None
        if self._is_leased:
            self._is_leased = False
            self.session.listener = None
            self._place.pool.disown(self.session)

    def let_go(self, release: Release) -> None:
        """Give the session back."""
        if self._is_leased:
            self._is_leased = False
            self.session.listener = None
            self.session.early_asks.extend(release.leftover)
            self._place.pool.release(self.session, reusable=release.reusable)

    async def let_go_now(self, release: Release) -> None:
        """The same, as a task for the outbox: after everything that is still to be said."""
        self.let_go(release)

    async def _run(self, request: ClientRequest, heard_by: Hearer) -> None:
        try:
            try:
                answer = await self._send(request)
            except SessionGone:
                if self._is_renewed:
                    raise
                # The server does not know the session, so it did not run the call: once more, on a new one.
                self._is_renewed = True
                self._place.doubt()
                await self._change_session(request, heard_by)
                return
        except GatewayError as error:
            heard_by.hear(UpstreamBroke(error.bare()))
        else:
            self._is_renewed = False
            heard_by.hear(_ended(answer))

    async def _read_on(self, request_id: str, last_event_id: str, heard_by: Hearer) -> None:
        try:
            answer = await self.session.call_on(request_id, last_event_id)
        except GatewayError as error:
            heard_by.hear(UpstreamBroke(error.bare()))
        else:
            heard_by.hear(_ended(answer))

    async def _run_over(self, request: ClientRequest, heard_by: Hearer) -> None:
        try:
            await self._change_session(request, heard_by)
        except GatewayError as error:
            heard_by.hear(UpstreamBroke(error.bare()))

    def _send(self, request: ClientRequest) -> Awaitable[Result | Failure]:
        if request.log_level is not None:
            return self._send_after_level(request, request.log_level)
        return self._send_now(request)  # with no coroutine of its own: it would last as long as a hold

    async def _send_after_level(self, request: ClientRequest, level: str) -> Result | Failure:
        await self.set_log_level(level)
        if self.session.is_dead:
            raise SessionGone("lost before the call was sent")
        return await self._send_now(request)

    def _send_now(self, request: ClientRequest) -> Awaitable[Result | Failure]:
        session = self.session
        self.request_id = request_id = self._place.ids.next()
        params = to_legacy_params(
            request.method, request.params, version=session.server.version, progress_token=request_id
        )
        return session.call(request_id, request.method, params)

    async def _change_session(self, request: ClientRequest, heard_by: Hearer) -> None:
        """Lease another; whoever hears of it sends the call there, when what was asked in it is settled."""
        self.let_go(Release(reusable=False))
        self.session = session = await self._place.pool.lease(request.caller(), new=True)
        self._is_leased = True
        session.listener = heard_by
        session.served_calls += 1
        early, session.early_asks = session.early_asks, []
        heard_by.hear(SessionChanged(tuple(early)))


def _ended(answer: Result | Failure) -> Event:
    return (
        UpstreamFailed(without_unsafe_pages(answer))
        if isinstance(answer, Failure)
        else UpstreamAnswered(answer.result)
    )
