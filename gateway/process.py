"""The process around a gateway: signals, the event loop, open files, the garbage collector. It knows no request."""

import asyncio
import gc
import resource
import signal
from typing import Final

from gateway.app import Gateway
from gateway.reload import Reread
from gateway.settings.model import Settings
from gateway.telemetry.logs import configure, get_logger
from gateway.telemetry.names import LogEvent

_CUT_SECONDS: Final = 2.0
"""What a second signal leaves for farewells."""
_FILES_PER_HOLD: Final = 3
"""The pipes of a server's process; over HTTP two connections, the call's own and the session's GET stream."""
_OTHER_FILES: Final = 4_096
"""Clients, sessions that are idle or at work, listeners, the store."""


def serve(settings: Settings, reread: Reread | None = None) -> int:
    """Run until SIGTERM or SIGINT; a second signal cuts the rest short. Returns the exit code.

    On SIGHUP `reread` gives the configuration as it is by then.
    """
    configure(settings.log.level, settings.log.format)
    _open_enough_files(settings)
    try:
        import uvloop  # noqa: PLC0415 - optional, and slow to import for commands that do not serve
    except ImportError:
        return asyncio.run(_serve(settings, reread))
    return uvloop.run(_serve(settings, reread))


async def _serve(settings: Settings, reread: Reread | None) -> int:
    signals: asyncio.Queue[int] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.put_nowait, number)
    gateway = Gateway(settings, reread)
    loop.add_signal_handler(signal.SIGHUP, gateway.renew)
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


def _open_enough_files(settings: Settings) -> None:
    """Raise the soft limit to what the configured holds can need: 1,024, the usual one, is over at 500 of them.

    The hard limit is the operator's word; where it is too low for the configuration they are told so.
    """
    held = sum(upstream.holds.max for upstream in settings.upstreams.values())
    wanted = held * _FILES_PER_HOLD + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        except (OSError, ValueError):  # a system may allow less than it says
            allowed = soft
    if allowed < wanted and soft != resource.RLIM_INFINITY:
        get_logger().warning(
            LogEvent.FEW_OPEN_FILES,
            limit=max(soft, allowed),
            wanted=wanted,
            detail="holds.max allows more held calls than this process may have connections for: "
            "raise the hard limit of open files (ulimit -Hn), or lower holds.max",
        )


def _calm_the_collector() -> None:
    """Ten thousand holds are many objects that stay: do not walk them all over and over, calls would wait.

    Nor many of them at once: each is walked once when it is no longer new, and a million of them take half a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 5, 1_000)
