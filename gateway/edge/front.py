"""The public listener's one handler: which endpoint a path names, and how many rounds are in progress.

aiohttp's low-level server, not its Application: the paths are few, exact and
known at start, and what routing, middlewares and match objects cost is a tenth
of a plain call.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from aiohttp import hdrs, web

from gateway.edge.connections import Connections, Request
from gateway.settings.model import Limits
from gateway.telemetry.names import DoorRefusal

Handle: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_CUT_SECONDS: Final = 1.0
LONGEST_LINE: Final = 32 * 1024
"""Bytes of the request line or of one header. Tokens with many groups and URIs in `Mcp-Name` pass 8 KiB, which is
aiohttp's own limit; servers of the SDKs take 16 KiB (Node.js) or 64 KiB (uvicorn), and clients rely on it."""
_LINGER_SECONDS: Final = 2.0
"""How long the rest of a body is read that nobody wants, so that its sender gets to read the refusal."""


def with_slash(path: str) -> tuple[str, Handle]:
    """The path with a slash at its end, as many clients have it, because servers send them on from there.

    They are sent on here, too, and not served: a proxy before us may have rules for the one path only. As seen from
    where they are: what that proxy calls it is not known.
    """
    location = f"../{path.rpartition('/')[2]}"

    async def send_on(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=307, headers={hdrs.LOCATION: location})

    return f"{path}/", send_on


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
        self._is_parting = False
        self._server: web.Server | None = None

    @property
    def in_progress(self) -> int:
        """How many requests are being answered."""
        return self._in_progress

    def part(self) -> None:
        """Let each response from now on be the last on its connection: the next one finds another process."""
        self._is_parting = True

    def hang_up(self) -> None:
        """Close the connections on which nothing is being answered."""
        if self._server is not None:
            for connection in self._server.connections:
                if connection._current_request is None:  # noqa: SLF001 - the library closes all or none
                    connection.close()

    def runner(self) -> web.ServerRunner:
        """What serves the listener."""
        self._server = Connections(
            self._handle,
            most=self._limits.connections,
            turned_away=self._turned_away,
            request_factory=self._request,
            access_log=None,  # one line per round is written by the endpoint itself
            handler_cancellation=True,  # a client that closes its response cancels the request
            auto_decompress=False,  # a compressed body is refused, not inflated
            keepalive_timeout=self._limits.idle,
            lingering_time=_LINGER_SECONDS,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
        )
        return web.ServerRunner(self._server, shutdown_timeout=_CUT_SECONDS)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        handle = self._endpoints.get(request.raw_path.partition("?")[0])
        if handle is None:
            self._turned_away(DoorRefusal.NO_SUCH_PATH)
            return web.Response(status=404, text="Not found\n")
        self._in_progress += 1
        try:
            response = await handle(request)
            if self._is_parting:
                response.force_close()
            return response
        finally:
            self._in_progress -= 1

    def _request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        loop = asyncio.get_running_loop()
        return Request(message, payload, protocol, writer, task, loop, client_max_size=self._limits.body)
