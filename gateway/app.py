"""The composition root: settings in, a running gateway out. The one place where the parts are put together.

The way of a request, each arrow one call:

    edge.front    which upstream does the path name
    edge.mcp  ->  edge.classify      whose request is it, may it go on        (pure)
              ->  edge.principals    who is calling
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
import gc
import secrets
import signal
import time
from typing import Final

from aiohttp import web

from gateway import __version__
from gateway.edge.admin import admin_app
from gateway.edge.front import Front
from gateway.edge.mcp import Endpoint
from gateway.edge.principals import Doorkeeper
from gateway.relay.courier import Bounds, Courier
from gateway.relay.place import Shared
from gateway.relay.relay import Relay
from gateway.sealing.box import Box
from gateway.sealing.envelope import Envelope
from gateway.sealing.keyring import Keyring
from gateway.settings.load import sealing_secrets
from gateway.settings.model import Settings
from gateway.settings.units import Address
from gateway.stores.opening import open_store
from gateway.telemetry.logs import configure, get_logger
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import LogEvent

_BACKLOG: Final = 4096
_CUT_SECONDS: Final = 2.0
"""What a second signal leaves for farewells."""


class Gateway:
    """A gateway and its listeners, from `start` to `stop`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._log = get_logger()
        self._runners: list[web.BaseRunner] = []
        self._is_ready = False
        self._address: Address | None = None
        self.admin_address: Address | None = None
        self._metrics = Metrics(version=__version__, upstreams=settings.upstreams)
        keyring = self._keyring()
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
        )
        self._relays = {name: Relay(name, upstream, shared) for name, upstream in settings.upstreams.items()}

        self._endpoints = self._public_endpoints()
        self._front = Front(
            {path: endpoint.handle for path, endpoint in self._endpoints.items()},
            settings.limits,
            self._metrics.turned_away,
        )

    # --- life --------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the listeners. Upstreams need not be there yet, nor the store."""
        await self._store.start()
        if self._courier is not None:
            await self._courier.start()
        for relay in self._relays.values():
            await relay.start()
        self._address = await self._listen(self._front.runner(), self._settings.listen)
        if self._settings.admin is not None:
            admin = admin_app(metrics=self._metrics, checks=self._checks, version=__version__)
            self.admin_address = await self._listen(
                web.AppRunner(admin, access_log=None), self._settings.admin
            )
        self._is_ready = True
        for name in self._relays:
            self._log.info(LogEvent.LISTENING, upstream=name, url=self.url(name))

    async def drain(self) -> None:
        """Say no to readiness probes, go on serving for `lame_duck`, then let rounds in progress end."""
        self._is_ready = False
        self._log.info(LogEvent.DRAINING, rounds=self._front.in_progress)
        await asyncio.sleep(self._settings.lame_duck)
        for endpoint in self._endpoints.values():
            endpoint.drain()
        for relay in self._relays.values():
            relay.end_subscriptions()  # these would never end by themselves
        try:
            async with asyncio.timeout(self._settings.drain):
                await self._front.quiet()
        except TimeoutError:
            return

    async def stop(self) -> None:
        """Close the listeners, then every hold and session."""
        self._is_ready = False
        for relay in self._relays.values():
            relay.end_subscriptions()
        for runner in self._runners:
            await runner.cleanup()
        for relay in self._relays.values():
            await relay.stop()
        if self._courier is not None:
            await self._courier.close()
        await self._store.close()
        self._log.info(LogEvent.STOPPED)

    def url(self, upstream: str) -> str:
        """Where modern clients reach this upstream."""
        if self._address is None:
            raise AssertionError("not started")
        return f"http://{self._address}{self._settings.path_of(upstream)}"

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

    def _public_endpoints(self) -> dict[str, Endpoint]:
        secret = secrets.token_bytes(
            32
        )  # keeps principals apart in this process; tickets have keys of their own
        return {
            self._settings.path_of(name): Endpoint(
                relay,
                doorkeeper=Doorkeeper(self._settings.upstreams[name].auth.mode, secret),
                limits=self._settings.limits,
                listen_host=self._settings.listen.host,
                metrics=self._metrics,
                rate=self._settings.upstreams[name].rate,
                passes_legacy=self._settings.upstreams[name].legacy_clients == "pass",
            )
            for name, relay in self._relays.items()
        }

    async def _listen(self, runner: web.BaseRunner, address: Address) -> Address:
        await runner.setup()
        self._runners.append(runner)
        await web.TCPSite(runner, address.host, address.port, backlog=_BACKLOG).start()
        return Address(address.host, runner.addresses[0][1])

    def _checks(self) -> dict[str, bool | str]:
        # Without the store this process still serves what it has: told, but no reason to send nobody here.
        store = "available" if self._store.is_available() else "unavailable"
        return {"accepting": self._is_ready, "keys": True, "store": store}


def _unix_seconds() -> float:
    return time.time()  # noqa: TID251 - this is the clock that others take


# --- the process -------------------------------------------------------------------------


def serve(settings: Settings) -> int:
    """Run until SIGTERM or SIGINT; a second signal cuts the rest short. Returns the exit code."""
    configure(settings.log.level, settings.log.format)
    try:
        import uvloop  # noqa: PLC0415 - optional, and slow to import for commands that do not serve
    except ImportError:
        return asyncio.run(_serve(settings))
    return uvloop.run(_serve(settings))


async def _serve(settings: Settings) -> int:
    signals: asyncio.Queue[int] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.put_nowait, number)
    gateway = Gateway(settings)
    try:
        await gateway.start()
    except BaseException:
        await gateway.stop()
        raise
    _calm_the_collector()
    await signals.get()
    ending = loop.create_task(_end(gateway))
    second = loop.create_task(signals.get())
    await asyncio.wait([ending, second], return_when=asyncio.FIRST_COMPLETED)
    second.cancel()
    if ending.done():
        ending.result()
        return 0
    ending.cancel()
    try:
        async with asyncio.timeout(_CUT_SECONDS):
            await asyncio.gather(ending, return_exceptions=True)
            await gateway.stop()
    except TimeoutError:
        pass  # whoever does not take our farewell is not waited for
    return 2


async def _end(gateway: Gateway) -> None:
    await gateway.drain()
    await gateway.stop()


def _calm_the_collector() -> None:
    """Ten thousand holds are many objects that stay: do not walk them all over and over, calls would wait."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)
