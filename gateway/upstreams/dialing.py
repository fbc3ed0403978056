"""How one upstream is reached: which transport it speaks is found out once, and again when that stops being true.

    command                      a process per session (stdio)
    url, transport given         that one
    url, auto                    Streamable HTTP; HTTP+SSE if `initialize` is refused with 400, 404 or 405 and a
                                 GET brings an `endpoint` event, or if the POST itself brought one. What worked
                                 is tried first from then on.

Nothing is probed: the handshake that has to be made anyway is the question.
"""

import os
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, TypeAlias

from gateway.errors import (
    UpstreamFault,
    UpstreamLost,
    UpstreamRefused,
    UpstreamSpokeNonsense,
    UpstreamUnauthorized,
)
from gateway.settings.certificates import client_context
from gateway.settings.upstream import Upstream
from gateway.telemetry.logs import get_logger
from gateway.telemetry.names import LogEvent
from gateway.telemetry.redact import Blackout
from gateway.upstreams.era_probe import Era, ask_process
from gateway.upstreams.guard import Guard
from gateway.upstreams.http1 import Http1
from gateway.upstreams.http_client import new_client
from gateway.upstreams.http_sse import HttpSse
from gateway.upstreams.last_words import Allowance
from gateway.upstreams.pool import Caller
from gateway.upstreams.process import environment
from gateway.upstreams.recall import Recall
from gateway.upstreams.session import Session
from gateway.upstreams.spares import Spares
from gateway.upstreams.stdio import Stdio
from gateway.upstreams.streamable_http import StreamableHttp
from gateway.upstreams.transport import Channel, SpeaksHttpSse

Transport: TypeAlias = Literal["streamable-http", "sse", "stdio"]
Greet: TypeAlias = Callable[[Channel], Awaitable[Session]]
"""Opens a session on a channel, or raises and closes the channel."""

_NOT_HERE: Final = frozenset({400, 404, 405})
"""How a server of HTTP+SSE may refuse the other handshake (2025-11-25, basic/transports, "Backwards Compatibility").
400: it takes its messages at the address of its stream, and misses the session in the query, as Kotlin's do."""
_OTHER: Final[dict[Transport, Transport]] = {"streamable-http": "sse", "sse": "streamable-http"}


class Dialer:
    """Opens sessions with one upstream, from `start` to `close`."""

    def __init__(self, name: str, settings: Upstream, *, version: str, max_event_bytes: int) -> None:
        self._settings = settings
        self._version = version
        self._max_event_bytes = max_event_bytes
        self._log = get_logger().bind(upstream=name)
        self._http: Http1 | None = None
        self._guard = Guard()
        self._allowance = Allowance(time.monotonic)
        self._env = {name: value.get_secret_value() for name, value in settings.env.items()}
        self._blackout = Blackout(self._env.values())
        self._found: Transport | None = None
        self._recall = Recall()
        self._tls = client_context(settings.tls) if settings.tls.is_set else None
        self._own_headers = own_headers(settings)
        sessions = settings.sessions
        self._spares = Spares(
            self._start_process, number=min(sessions.warm, sessions.max), idle=sessions.idle
        )

    @property
    def transport(self) -> Transport | None:
        """What the upstream speaks, as configured or found; None: not known yet."""
        match self._settings.transport:
            case "auto":
                return "stdio" if self._settings.command else self._found
            case fixed:
                return fixed

    async def start(self) -> None:
        """Get ready; the upstream need not be there yet."""
        self._http = new_client(
            connect_timeout=self._settings.connect_timeout, version=self._version, tls=self._tls
        )

    async def close(self) -> None:
        """Let go of connections. Sessions were closed before."""
        if self._http is not None:
            await self._http.close()
        await self._spares.close()
        await self._guard.close()

    async def dial(self, caller: Caller, greet: Greet) -> Session:
        """Open a session for a caller.

        Raises:
            UpstreamFault: the upstream cannot be reached, or speaks none of this.
        """
        if self._settings.transport != "auto" or self._settings.command:
            return await greet(await self._channel(self.transport or "stdio", caller))
        first = self._found or "streamable-http"
        try:
            session = await greet(await self._channel(first, caller))
        except (UpstreamRefused, UpstreamSpokeNonsense) as refusal:
            if not _speaks_otherwise(refusal, first):
                raise
            return await self._dial_otherwise(_OTHER[first], caller, greet, refusal)
        self._remember(first)
        return session

    async def redial(self, caller: Caller, session_id: str, version: str) -> Channel:
        """A channel into a session that another process opened.

        Raises:
            UpstreamLost: what this upstream speaks has no such thing.
        """
        if self.transport not in (None, "streamable-http"):
            raise UpstreamLost("sessions of this transport end with their connection")
        channel = self._streamable_http(caller)
        channel.adopt(session_id, version)
        return channel

    async def connect(self, authorization: str | None) -> Channel:
        """A channel on which nothing has been said yet, for a client that makes its handshake itself."""
        return await self._channel(self.transport or "streamable-http", _bare(authorization))

    async def ask_process(self) -> tuple[Era | None, dict[str, Any]]:
        """The era of a server that is a command, None if it cannot be started; and how a modern one describes itself.

        A process that answered is used: every client of both eras asks the one that it goes on with. One that
        was thrown off its track by the question is not.
        """
        try:
            channel = await self._start_process()
        except UpstreamFault:
            return None, {}
        try:
            era, described, is_usable = await ask_process(channel, version=self._version)
        except BaseException:
            await channel.close()
            raise
        if not (is_usable and self._spares.give(channel)):
            await channel.close()
        return era, described

    async def _dial_otherwise(
        self, transport: Transport, caller: Caller, greet: Greet, refusal: UpstreamFault
    ) -> Session:
        try:
            session = await greet(await self._channel(transport, caller))
        except UpstreamUnauthorized:
            raise
        except UpstreamFault:
            self._found = None
            raise _neither(refusal) from None
        self._remember(transport)
        return session

    async def _channel(self, transport: Transport, caller: Caller) -> Channel:
        if transport == "stdio":
            return await self._spares.take()
        if transport == "streamable-http":
            return self._streamable_http(caller)
        http, url, headers = self._way(caller)
        channel = HttpSse(http, url, headers=headers, max_event_bytes=self._max_event_bytes, log=self._log)
        await channel.open()
        return channel

    def _streamable_http(self, caller: Caller) -> StreamableHttp:
        http, url, headers = self._way(caller)
        channel = StreamableHttp(
            http, url, headers=headers, max_event_bytes=self._max_event_bytes, recall=self._recall
        )
        channel.ending = self._settings.sessions.end
        return channel

    def _way(self, caller: Caller) -> tuple[Http1, str, dict[str, str]]:
        if self._http is None or self._settings.url is None:
            raise AssertionError("not started, or without a URL")
        headers = {} if caller.authorization is None else {"Authorization": caller.authorization}
        return self._http, self._settings.url, {**headers, **self._own_headers}

    async def _start_process(self) -> Stdio:
        channel = Stdio(
            max_line_bytes=self._max_event_bytes,
            log=self._log,
            allowance=self._allowance,
            blackout=self._blackout,
        )
        await channel.open(
            self._settings.command,
            env=environment(os.environ, self._env),
            cwd=self._settings.cwd,
            guard=self._guard,
        )
        return channel

    def _remember(self, transport: Transport) -> None:
        if self._found != transport:
            self._found = transport
            self._log.info(LogEvent.TRANSPORT_FOUND, transport=transport)


def own_headers(settings: Upstream) -> dict[str, str]:
    """What the upstream is shown for every caller."""
    return {name: value.get_secret_value() for name, value in settings.auth.upstream_headers.items()}


def _bare(authorization: str | None) -> Caller:
    """Somebody of whom nothing is known but the credential."""
    return Caller("", authorization is not None, "{}", "{}", authorization)


def _neither(refusal: UpstreamFault) -> UpstreamFault:
    """Neither way works: the one that was meant to says why."""
    if isinstance(refusal, UpstreamRefused) and refusal.status in _NOT_HERE:
        status = refusal.status
        return UpstreamRefused(status, f"HTTP {status} to either transport: is the path of the url right?")
    return refusal


def _speaks_otherwise(refusal: UpstreamFault, tried: Transport) -> bool:
    """Does this refusal mean that the server may speak the other transport?"""
    match refusal:
        case UpstreamRefused(status=status):
            return status in _NOT_HERE or tried == "sse"
        case SpeaksHttpSse():
            return True
        case _:
            return tried == "sse"  # a GET that brought no event stream: the server was changed
