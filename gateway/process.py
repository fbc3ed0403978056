"""The process around a gateway: signals, the event loop, the garbage collector. It knows no request."""

import asyncio
import gc
import importlib
import signal
from typing import Final

from gateway import descriptors
from gateway.app import Gateway
from gateway.reload import Reread
from gateway.settings.model import Settings
from gateway.telemetry.logs import configure, get_logger
from gateway.telemetry.names import LogEvent

_CUT_SECONDS: Final = 2.0
"""What a second signal leaves for farewells."""
_WANTED_LATER: Final = "jsonschema_rs"
"""What the first filled-in form needs. Loaded when clients are served already, but not only then: an answer must not
fail because a file cannot be opened any more."""
_SWEEP_SECONDS: Final = 600.0
"""How often all objects are searched for circles, which `_calm_the_collector` leaves alone. Libraries leave some
behind: asyncio's own loop two kilobytes with each connection."""
_LOOK_SECONDS, _MOST_LOOKS = 0.1, 600
"""How often, and how many times, it looks for a moment in which nothing is being answered."""


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
    await asyncio.to_thread(importlib.import_module, _WANTED_LATER)
    _calm_the_collector()
    sweeping = loop.create_task(_sweep(gateway))
    await signals.get()
    sweeping.cancel()
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


async def _sweep(gateway: Gateway) -> None:
    """Find what keeps itself alive in circles, now and then: with ten thousand holds it takes half a second."""
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        for _ in range(_MOST_LOOKS):
            if gateway.is_quiet:
                break
            await asyncio.sleep(_LOOK_SECONDS)
        gc.collect()


def _open_enough_files(settings: Settings) -> None:
    needed = descriptors.needed(settings.upstreams.values())
    limit = descriptors.ask_for_more(needed)
    if limit < needed:
        # The hard limit is the operator's word; where it is too low for the configuration they are told so.
        get_logger().warning(
            LogEvent.FEW_OPEN_FILES,
            limit=limit,
            needed=needed,
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
