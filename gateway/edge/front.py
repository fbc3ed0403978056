"""The public listener's one handler: which endpoint a path names, and how many rounds are in progress.

aiohttp's low-level server, not its Application: the paths are few, exact and
known at start, and what routing, middlewares and match objects cost is a tenth
of a plain call.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from aiohttp import web

from gateway.edge.connections import Connections, Request
from gateway.settings.model import Limits
from gateway.telemetry.names import DoorRefusal

Handle: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_CUT_SECONDS: Final = 1.0
_LINGER_SECONDS: Final = 2.0
"""How long the rest of a body is read that nobody wants, so that its sender gets to read the refusal."""


class Front:
    """Gives each request to the endpoint of its path."""

    def __init__(
        self,
        endpoints: Mapping[str, Handle],
        limits: Limits,
        turned_away: Callable[[DoorRefusal], None] = lambda _: None,
    ) -> None:
        self._endpoints = dict(endpoints)
        self._limits = limits
        self._turned_away = turned_away
        self._in_progress = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def in_progress(self) -> int:
        """How many requests are being answered."""
        return self._in_progress

    async def quiet(self) -> None:
        """Return when no request is being answered."""
        await self._idle.wait()

    def runner(self) -> web.ServerRunner:
        """What serves the listener."""
        server = Connections(
            self._handle,
            most=self._limits.connections,
            turned_away=self._turned_away,
            request_factory=self._request,
            access_log=None,  # one line per round is written by the endpoint itself
            handler_cancellation=True,  # a client that closes its response cancels the request
            auto_decompress=False,  # a compressed body is refused, not inflated
            keepalive_timeout=self._limits.idle,
            lingering_time=_LINGER_SECONDS,
        )
        return web.ServerRunner(server, shutdown_timeout=_CUT_SECONDS)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        handle = self._endpoints.get(request.raw_path.partition("?")[0])
        if handle is None:
            self._turned_away(DoorRefusal.NO_SUCH_PATH)
            return web.Response(status=404, text="Not found\n")
        if self._in_progress == 0:
            self._idle.clear()
        self._in_progress += 1
        try:
            return await handle(request)
        finally:
            self._in_progress -= 1
            if self._in_progress == 0:
                self._idle.set()

    def _request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        loop = asyncio.get_running_loop()
        return Request(message, payload, protocol, writer, task, loop, client_max_size=self._limits.body)
