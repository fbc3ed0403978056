"""Opens sessions with one legacy server, and goes on with those that another process opened. It leases none.

What a server says in a session outside all calls is told to those who keep
something of it: that it asks, that it is not what it was, that it is gone.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from gateway.eras.discovery import Introduction
from gateway.eras.vocabulary import Ask
from gateway.errors import (
    GatewayError,
    UpstreamChanged,
    UpstreamLost,
    UpstreamRefused,
    UpstreamSpokeNonsense,
    UpstreamTimedOut,
    UpstreamUnauthorized,
    UpstreamUnreachable,
)
from gateway.relay.era import PATIENCE_SECONDS, PROCESS_PATIENCE_SECONDS, UpstreamEra
from gateway.relay.introductions import Acquaintance, Introductions
from gateway.relay.place import Shared, policy_of
from gateway.settings.upstream import Upstream
from gateway.telemetry.logs import get_logger
from gateway.telemetry.names import HandshakeOutcome, LogEvent
from gateway.upstreams.background import Background
from gateway.upstreams.dialing import Dialer
from gateway.upstreams.flag import Flag
from gateway.upstreams.pool import Caller
from gateway.upstreams.session import Session, open_session
from gateway.upstreams.transport import Channel
from gateway.wire.jsonrpc import Notification, decode


@dataclass(frozen=True, slots=True)
class Hearers:
    """Who is told what a server says outside calls."""

    early_ask: Callable[[Session, Ask, Caller, Flag], None]
    """It asked; the flag is for an answer that was given at once."""
    change: Callable[[Caller, Notification], None]
    gap: Callable[[], None]
    end: Callable[[Session], None]


class Greeter:
    """Makes the sessions of one upstream."""

    def __init__(
        self,
        name: str,
        settings: Upstream,
        shared: Shared,
        dialer: Dialer,
        era: UpstreamEra,
        introductions: Introductions,
        hearers: Hearers,
    ) -> None:
        self._name = name
        self._settings = settings
        self._policy = policy_of(settings)
        self._ids = shared.ids
        self._metrics = shared.metrics
        self._dialer = dialer
        self._era = era
        self._introductions = introductions
        self._hearers = hearers
        self._log = get_logger().bind(upstream=name)

    async def settle_era(self, authorization: str | None) -> None:
        """Find out what the server is, if that is not known, and can be known in time."""
        patience = PROCESS_PATIENCE_SECONDS if self._settings.command else PATIENCE_SECONDS
        await self._era.settle(authorization, patience)

    async def open(self, caller: Caller) -> Session:
        """A session for this caller, ready for its first call.

        Raises:
            UpstreamChanged: it is a modern server by now, and there are no sessions with those.
            UpstreamFault: none could be opened.
        """
        answered = Flag()

        async def greet(channel: Channel) -> Session:
            return await open_session(
                channel,
                request_id=self._ids.next(),
                client_info=decode(caller.client_info.encode()),
                capabilities=self._policy.advertised(decode(caller.capabilities.encode())),
                on_early_ask=lambda session, ask: self._hearers.early_ask(session, ask, caller, answered),
                on_end=self._hearers.end,
                on_change=lambda _, notification: self._hearers.change(caller, notification),
            )

        await self._check_era(caller)
        try:
            async with asyncio.timeout(self._settings.call_timeout):
                session = await self._dialer.dial(caller, greet)
        except TimeoutError:
            self._metrics.handshake(self._name, HandshakeOutcome.TIMED_OUT)
            raise UpstreamTimedOut("initialize") from None
        except GatewayError as error:
            self._metrics.handshake(self._name, outcome_of(error))
            self._log.warning(LogEvent.HANDSHAKE_FAILED, reason=error.reason, detail=str(error))
            self._era.doubt()
            if isinstance(error, UpstreamRefused | UpstreamSpokeNonsense):
                await self._check_era(caller)
            raise
        self._metrics.handshake(self._name, HandshakeOutcome.OK)
        session.on_gap = self._hearers.gap
        self._introductions.note(caller, Acquaintance(session.server, session.is_standing))
        if answered.is_set():
            await self._let_settle(session)
        return session

    async def reopen(self, caller: Caller, session_id: str, version: str) -> Session:
        """Speak in a session of this id and revision that another process opened."""
        channel = await self._dialer.redial(caller, session_id, version)
        known = self._introductions.latest or Introduction(version, {}, None, None)
        return Session(
            channel,
            replace(known, version=version),
            background=Background(),
            on_early_ask=lambda session, ask: self._hearers.early_ask(session, ask, caller, Flag()),
            on_end=self._hearers.end,
            on_change=lambda _, notification: self._hearers.change(caller, notification),
        )

    async def _check_era(self, caller: Caller) -> None:
        await self.settle_era(caller.authorization)
        if self._era.is_modern:
            raise UpstreamChanged("it is a modern server")

    async def _let_settle(self, session: Session) -> None:
        """The server asked at `initialized` and was told: that may decide what the first call can do."""
        try:
            await asyncio.sleep(self._settings.settle)
        except BaseException:
            await session.close()
            raise


def outcome_of(error: GatewayError) -> HandshakeOutcome:
    """How operators see a handshake that ended with this error."""
    match error:
        case UpstreamUnreachable():
            return HandshakeOutcome.UNREACHABLE
        case UpstreamTimedOut():
            return HandshakeOutcome.TIMED_OUT
        case UpstreamUnauthorized():
            return HandshakeOutcome.UNAUTHORIZED
        case UpstreamSpokeNonsense():
            return HandshakeOutcome.PROTOCOL
        case UpstreamLost():
            return HandshakeOutcome.LOST
        case _:
            return HandshakeOutcome.REFUSED
