"""The composition root: settings in, a running gateway out. The one place where the parts are put together.

The way of a request, each arrow one call:

    edge.front    which upstream does the path name
    edge.mcp  ->  edge.classify      whose request is it, may it go on        (pure)
              ->  edge.doors         who is calling
              ->  relay.relay        discover | fetch | call | retry | listen
                    ->  relay.tickets  ->  sealing.box    is this ticket ours, theirs, in time
                    ->  holds.ledger                      which exchange does it name
                    ->  upstreams.pool                    a legacy session of this caller's own
                    ->  relay.driver                      feeds events, performs commands
                          ->  eras.exchange               decides                             (pure)
                          ->  upstreams.session           asks, answers, notifications
              ->  edge.reply         JSON or SSE, one last word
              ->  edge.passthrough  ->  relay.passthrough     legacy clients, modern upstreams: as they are
"""

import asyncio
import contextlib
import os
import secrets
import socket
import ssl
import time
from collections.abc import Callable
from typing import Final

from aiohttp import web

from gateway import __version__, descriptors
from gateway.edge.admin import AdminRunner, admin_app
from gateway.edge.challenges import Addresses
from gateway.edge.doorway import Doorway, doorway
from gateway.edge.front import Front, Handle, with_slash
from gateway.edge.mcp import Endpoint
from gateway.edge.metadata import Metadata
from gateway.relay.courier import Bounds, Courier
from gateway.relay.place import Shared
from gateway.relay.relay import Relay
from gateway.reload import Renewal, Reread
from gateway.sealing.box import Box
from gateway.sealing.envelope import Envelope
from gateway.sealing.keyring import Keyring
from gateway.settings.certificates import renew as renew_certificate
from gateway.settings.certificates import server_context
from gateway.settings.load import sealing_secrets
from gateway.settings.model import Settings
from gateway.settings.units import Address
from gateway.stores.opening import open_store
from gateway.telemetry.logs import get_logger
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import LogEvent
from gateway.upstreams.background import Background
from gateway.wire.headers import WELL_KNOWN

_BACKLOG: Final = 4096
_AT_ONCE: Final = 16
"""Connections that asyncio accepts in one go. It tries no fewer, and complains of each, when it has no descriptor left
for any (3.11); as many as the backlog would keep it from everything else, with thousands of lines a second."""
_EVERYWHERE: Final = "::"
"""All addresses of this machine, of both families, as other servers take it."""
_LOOK_SECONDS: Final = 0.05
"""How often a gateway that stops looks what is left."""


class Gateway:
    """A gateway and its listeners, from `start` to `stop`."""

    def __init__(self, settings: Settings, reread: Reread | None = None) -> None:
        self._settings = settings
        self._log = get_logger()
        self._runners: list[web.BaseRunner] = []
        self._site: web.BaseSite | None = None
        self._is_ready = False
        self._address: Address | None = None
        self.admin_address: Address | None = None
        self._metrics = Metrics(version=__version__, upstreams=settings.upstreams)
        keyring = self._keyring()
        self._tls = server_context(settings.tls) if settings.tls.is_on else None
        self._renewal = Renewal(settings, keyring, reread, self._renew_certificate)
        replica = secrets.token_hex(4)
        self._store = open_store(settings.store, now=time.monotonic)
        self._metrics.watch_store(self._store.is_available)
        self._courier = self._new_courier(keyring, replica) if self._store.is_shared else None
        shared = Shared(
            box=Box(keyring, secrets.token_bytes),
            envelope=Envelope(keyring, secrets.token_bytes),
            ticket_seconds=settings.sealing.ttl,
            max_event_bytes=settings.limits.event,
            metrics=self._metrics,
            replica=replica,
            version=__version__,
            now=_unix_seconds,
            store=self._store,
            courier=self._courier,
            lease=None if self._courier is None else self._courier.lease,
        )
        self._relays = {name: Relay(name, upstream, shared) for name, upstream in settings.upstreams.items()}

        self._background = Background()
        # Pinned: who somebody is must not change while the ring is turned.
        self._doorways_by_name = self._doorways(keyring.first.principal)
        self._endpoints = self._public_endpoints()
        most = descriptors.for_clients(settings.limits.connections)
        limits = settings.limits.model_copy(update={"connections": most})
        self._front = Front(self._paths(), limits, self._metrics.turned_away)

    # --- life --------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the listeners. Upstreams need not be there yet, nor the store."""
        await self._store.start()
        if self._courier is not None:
            await self._courier.start()
        for relay in self._relays.values():
            await relay.start()
        for way in self._doorways_by_name.values():
            if way.jwks is not None:
                self._background.start(way.jwks.keep_fresh(), "jwks")
        self._background.start(self._renewal.watch(), "watch-keys")
        self._address, self._site = await self._listen(self._front.runner(), self._settings.listen, self._tls)
        if self._settings.admin is not None:
            admin = admin_app(
                metrics=self._metrics,
                checks=self._checks,
                version=__version__,
                token=self._settings.admin_token,
            )
            runner = AdminRunner(admin, self._settings.limits)
            self.admin_address, _ = await self._listen(runner, self._settings.admin)
        self._is_ready = True
        for name in self._relays:
            self._log.info(LogEvent.LISTENING, upstream=name, url=self.url(name))

    @property
    def is_quiet(self) -> bool:
        """Is no request being answered?"""
        return not self._front.in_progress

    async def drain(self) -> None:
        """Say no to readiness probes, go on serving for `lame_duck`, then let everything end, or go elsewhere."""
        self._is_ready = False
        self._log.info(
            LogEvent.DRAINING,
            rounds=self._front.in_progress,
            waiting=sum(relay.farewell.waiting() for relay in self._relays.values()),
            most_seconds=self._settings.lame_duck + self._settings.drain,
        )
        self._front.part()
        await asyncio.sleep(self._settings.lame_duck)
        for endpoint in self._endpoints.values():
            endpoint.drain()
        for relay in self._relays.values():
            relay.end_subscriptions()  # these would never end by themselves
        if self._store.is_shared and self._site is not None:
            # Whoever comes now is another's client; who has a call here is carried to it by the others.
            await self._site.stop()
            self._front.hang_up()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.drain):
                await self._empty()
        farewells = [relay.farewell for relay in self._relays.values()]
        self._log.info(
            LogEvent.DRAINED,
            rounds=self._front.in_progress,
            handed_over=sum(farewell.moved for farewell in farewells),
            cancelled=sum(farewell.waiting() for farewell in farewells),
        )

    async def _empty(self) -> None:
        """Hand over what others can finish, wait for the rest."""
        clock = asyncio.get_running_loop().time
        late = clock() + self._settings.drain / 2
        while True:
            for relay in self._relays.values():
                await relay.farewell.go_round(is_late=clock() > late)
            if self._courier is not None:
                await self._courier.pause()
            if not self._front.in_progress and not any(
                relay.farewell.waiting() for relay in self._relays.values()
            ):
                return
            await asyncio.sleep(_LOOK_SECONDS)

    async def stop(self) -> None:
        """Close the listeners, then every hold and session."""
        self._is_ready = False
        for relay in self._relays.values():
            relay.end_subscriptions()
            relay.farewell.cut_short()
        for runner in self._runners:
            await runner.cleanup()
        for relay in self._relays.values():
            await relay.stop()
        await self._background.close()
        if self._courier is not None:
            await self._courier.close()
        await self._store.close()
        self._log.info(LogEvent.STOPPED)

    def url(self, upstream: str) -> str:
        """Where modern clients reach this upstream."""
        if self._address is None:
            raise AssertionError("not started")
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://{self._address}{self._settings.path_of(upstream)}"

    def renew(self) -> None:
        """Read keys and certificates again."""
        self._renewal.renew()

    def _renew_certificate(self) -> None:
        if self._tls is not None:
            renew_certificate(self._tls, self._settings.tls)

    def _new_courier(self, keyring: Keyring, replica: str) -> Courier:
        bounds = Bounds(heartbeat=self._settings.replica_heartbeat)
        envelope = Envelope(keyring, secrets.token_bytes)
        return Courier(self._store, envelope, replica=replica, metrics=self._metrics, bounds=bounds)

    # --- parts ---------------------------------------------------------------------------

    def _keyring(self) -> Keyring:
        keys = sealing_secrets(self._settings)
        if keys:
            return Keyring.from_secrets(keys)
        self._log.warning(
            LogEvent.EPHEMERAL_KEY,
            detail="no sealing key is configured, so one was made for this process: a restart, or a second "
            "replica, refuses every requestState that this process gave out (`holdfast keygen` makes a key)",
        )
        return Keyring.ephemeral(secrets.token_bytes)

    def _doorways(self, naming: Callable[[bytes], str]) -> dict[str, Doorway]:
        scheme = "https" if self._settings.tls.is_on else "http"
        return {
            name: doorway(
                upstream.auth,
                Addresses(self._settings.path_of(name), self._settings.public_url, scheme),
                name=naming,
                now=_unix_seconds,
            )
            for name, upstream in self._settings.upstreams.items()
        }

    def _paths(self) -> dict[str, Handle]:
        """Everything that the public listener serves; an endpoint's own path is its own, whatever else wants it."""
        paths: dict[str, Handle] = {}
        for name, relay in self._relays.items():
            metadata = Metadata(self._doorways_by_name[name], relay.passthrough.resource_metadata)
            if metadata.is_served:
                for path in self._doorways_by_name[name].addresses.metadata_paths():
                    paths.setdefault(path, metadata.handle)
                if len(self._relays) == 1:
                    paths.setdefault(WELL_KNOWN, metadata.handle)
        own = {path: endpoint.handle for path, endpoint in self._endpoints.items()}
        return {**paths, **dict(map(with_slash, own)), **own}

    def _public_endpoints(self) -> dict[str, Endpoint]:
        return {
            self._settings.path_of(name): Endpoint(
                relay,
                doorway=self._doorways_by_name[name],
                limits=self._settings.limits,
                listen_host=self._settings.listen.host,
                metrics=self._metrics,
                rate=self._settings.upstreams[name].rate,
                passes_legacy=self._settings.upstreams[name].legacy_clients == "pass",
            )
            for name, relay in self._relays.items()
        }

    async def _listen(
        self, runner: web.BaseRunner, address: Address, tls: ssl.SSLContext | None = None
    ) -> tuple[Address, web.BaseSite]:
        await runner.setup()
        self._runners.append(runner)
        try:
            site = _site(runner, address, tls)
            await site.start()
        except OSError as error:
            why = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
            raise OSError(f"cannot listen on {address}: {why}") from error
        for listener in site._server.sockets:  # type: ignore[union-attr]  # noqa: SLF001 - the library does not show them
            with socket.socket(fileno=os.dup(listener.fileno())) as same:
                same.listen(_BACKLOG)  # whom the system lets wait is another matter
        return Address(address.host, runner.addresses[0][1]), site

    def _checks(self) -> dict[str, bool | str]:
        # Without the store this process still serves what it has: told, but no reason to send nobody here.
        store = "available" if self._store.is_available() else "unavailable"
        return {"accepting": self._is_ready, "keys": True, "store": store}


def _site(runner: web.BaseRunner, address: Address, tls: ssl.SSLContext | None) -> web.BaseSite:
    if address.host != _EVERYWHERE:
        return web.TCPSite(runner, address.host, address.port, backlog=_AT_ONCE, ssl_context=tls)
    # Left to itself, asyncio would keep IPv4 out.
    both = socket.create_server((address.host, address.port), family=socket.AF_INET6, dualstack_ipv6=True)
    return web.SockSite(runner, both, backlog=_AT_ONCE, ssl_context=tls)


def _unix_seconds() -> float:
    return time.time()  # noqa: TID251 - this is the clock that others take
