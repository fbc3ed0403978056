"""The admin listener: liveness, readiness, metrics, version. It knows nothing about MCP, and nothing secret.

It stands on a port of its own, so that a probe does not wait behind traffic and
the numbers are not offered to clients.
"""

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

import msgspec
from aiohttp import web
from pydantic import SecretStr

from gateway.edge.connections import SERVER, Connections
from gateway.settings.model import Limits
from gateway.telemetry.metrics import Metrics

Checks: TypeAlias = Mapping[str, bool | str]
"""Named facts. `False` means "send no traffic here"; a string is told along and decides nothing, since an
upstream that is down must not take the gateway out of rotation: it could no longer explain itself."""

_PROBES: Final = frozenset({"/livez", "/readyz"})
_LINGER_SECONDS: Final = 1.0
"""How long somebody may still send or read when the process ends; the library would wait for a minute."""
_Handler: TypeAlias = Callable[[web.Request], Awaitable[web.Response]]


def admin_app(
    *, metrics: Metrics, checks: Callable[[], Checks], version: str, token: SecretStr | None = None
) -> web.Application:
    """The routes of the admin listener. `checks` is asked at each probe and scrape, and must not wait.

    With a token, everything but the two probes asks for it: a kubelet has none to show.
    """

    def is_ready() -> bool:
        return _passed(checks())

    async def livez(_request: web.Request) -> web.Response:
        # That this runs at all is the whole proof: the loop turns.
        return _json({"status": "ok"})

    async def readyz(_request: web.Request) -> web.Response:
        found = checks()
        if _passed(found):
            return _json({"status": "ready", "checks": found})
        return _json({"status": "not ready", "checks": found}, status=503)

    async def scrape(request: web.Request) -> web.Response:
        body, content_type = metrics.exposition(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type, "Cache-Control": "no-store"})

    async def build(_request: web.Request) -> web.Response:
        return _json({"name": "holdfast", "version": version})

    metrics.watch_ready(is_ready)
    routes: dict[str, _Handler] = {"/livez": livez, "/readyz": readyz, "/metrics": scrape, "/version": build}
    app = web.Application()
    app.on_response_prepare.append(_sign)
    for path, handler in routes.items():
        is_open = token is None or path in _PROBES
        app.router.add_get(path, handler if is_open else _behind(token, handler))
    return app


async def _sign(_request: web.Request, response: web.StreamResponse) -> None:
    """Say no more: the library would name itself, its version and Python's."""
    response.headers["Server"] = SERVER


class AdminRunner(web.AppRunner):
    """Serves the routes over connections that are bounded, and that speak to bad HTTP as the public ones do."""

    __slots__ = ("_limits",)

    def __init__(self, app: web.Application, limits: Limits) -> None:
        # A line per probe would bury the lines that matter.
        super().__init__(
            app,
            access_log=None,
            keepalive_timeout=limits.idle,
            lingering_time=_LINGER_SECONDS,
            shutdown_timeout=_LINGER_SECONDS,
        )
        self._limits = limits

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return Connections(
            made.request_handler,
            request_factory=made.request_factory,
            most=self._limits.connections,
            turned_away=lambda _: None,  # what is counted is the public door's
            **made._kwargs,  # noqa: SLF001 - the library builds its own kind of server and no other
        )


def _behind(token: SecretStr | None, handler: _Handler) -> _Handler:
    wanted = hashlib.sha256(b"Bearer " + (token or SecretStr("")).get_secret_value().encode()).digest()

    async def guarded(request: web.Request) -> web.Response:
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        # Both are hashed first, so that not even the length of the token can be measured.
        if not hmac.compare_digest(hashlib.sha256(given).digest(), wanted):
            return web.Response(
                status=401, headers={"WWW-Authenticate": "Bearer", "Cache-Control": "no-store"}
            )
        return await handler(request)

    return guarded


def _passed(checks: Checks) -> bool:
    return all(check is not False for check in checks.values())


def _json(value: Mapping[str, object], *, status: int = 200) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(value),
        status=status,
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )
