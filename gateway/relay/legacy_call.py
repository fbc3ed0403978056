"""The one legacy call of an exchange on its leased session: sent, answered, cancelled, let go. It decides nothing."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gateway.eras.answers import to_legacy_answer
from gateway.eras.discovery import Introduction
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

if TYPE_CHECKING:
    import asyncio


class LegacyCall:
    """What the exchange has of its upstream."""

    __slots__ = ("_heard_by", "_is_leased", "_place", "_task", "_tell", "request_id", "session")

    def __init__(
        self,
        place: Place,
        session: Session,
        *,
        heard_by: Listener,
        tell: Callable[[Event], None],
    ) -> None:
        self.session = session
        self.request_id: str | None = None
        self._place = place
        self._heard_by = heard_by
        self._tell = tell
        self._task: asyncio.Task[None] | None = None
        self._is_leased = True
        session.listener = heard_by
        session.served_calls += 1

    @property
    def server(self) -> Introduction:
        """Who answers."""
        return self.session.server

    def start(self, request: ClientRequest) -> None:
        """Send the call; how it ends is told to `tell`."""
        self._task = self._place.background.start(self._run(request), "legacy-call")

    def start_over(self, request: ClientRequest) -> None:
        """Run the call again, on a new session; the old one is lost, or knows too much."""
        self._task = self._place.background.start(self._run_over(request), "legacy-call")

    async def answer(self, ask: Ask, result: Mapping[str, Any]) -> None:
        """Answer an ask of the call."""
        if ask.id is not None:
            await self.session.answer(ask.id, to_legacy_answer(ask, result, self.server.version))

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

    def let_go(self, release: Release) -> None:
        """Give the session back."""
        if self._is_leased:
            self._is_leased = False
            self.session.listener = None
            self.session.early_asks.extend(release.leftover)
            self._place.pool.release(self.session, reusable=release.reusable)

    async def let_go_now(self, release: Release) -> None:
        """The same, as something to be done in turn."""
        self.let_go(release)

    async def _run(self, request: ClientRequest) -> None:
        try:
            try:
                answer = await self._send(request)
            except SessionGone:
                # The server does not know the session, so it did not run the call: once more, on a new one.
                await self._change_session(request)
                answer = await self._send(request)
        except GatewayError as error:
            self._tell(UpstreamBroke(error))
        else:
            ended = UpstreamFailed(answer) if isinstance(answer, Failure) else UpstreamAnswered(answer.result)
            self._tell(ended)

    async def _run_over(self, request: ClientRequest) -> None:
        try:
            await self._change_session(request)
        except GatewayError as error:
            self._tell(UpstreamBroke(error))
        else:
            await self._run(request)

    async def _send(self, request: ClientRequest) -> Result | Failure:
        session = self.session
        if request.log_level is not None:
            await self._set_log_level(session, request.log_level)
        self.request_id = request_id = self._place.ids.next()
        params = to_legacy_params(
            request.method, request.params, version=session.server.version, progress_token=request_id
        )
        return await session.call(request_id, request.method, params)

    async def _set_log_level(self, session: Session, level: str) -> None:
        if session.log_level != level and "logging" in session.server.capabilities:
            session.log_level = level
            # An error in answer is fine: servers that refuse to set a level log regardless.
            await session.call(self._place.ids.next(), "logging/setLevel", {"level": level})

    async def _change_session(self, request: ClientRequest) -> None:
        self.let_go(Release(reusable=False))
        self.session = session = await self._place.pool.lease(request.caller(), new=True)
        self._is_leased = True
        session.listener = self._heard_by
        session.served_calls += 1
        self._tell(SessionChanged())
        early, session.early_asks = session.early_asks, []
        for ask in early:
            self._heard_by.hear_ask(ask)
