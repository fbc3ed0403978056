"""Which era an upstream is of: found out once, and again when there is reason to doubt it; never per request."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeAlias

from gateway.telemetry.logs import Log
from gateway.telemetry.names import LogEvent
from gateway.upstreams.background import Background
from gateway.upstreams.dialing import Dialer
from gateway.upstreams.era_probe import Era, ask_era
from gateway.upstreams.farewell import Ending
from gateway.upstreams.forwarding import Forwarder

_PAUSE_SECONDS: Final = 1.0
"""After a question that changed nothing, however many doubt. One that did may be followed by another at once."""
PATIENCE_SECONDS: Final = 1.0
"""How long a request waits for the verdict. A server that takes longer is spoken to in the way that was true last."""
PROCESS_PATIENCE_SECONDS: Final = 10.0
"""The same where a process has to be started to ask it, and it is a session that waits: it needs a process too."""

Asking: TypeAlias = Callable[[str | None], Awaitable[Era | None]]
"""Asks the server, for whoever has this `Authorization`. None: that cannot be known now."""


class UpstreamEra:
    """The verdict about one upstream. Not known counts as legacy: the bridge finds out what is wrong, and says so."""

    def __init__(
        self,
        configured: Literal["auto", "legacy", "modern"],
        asking: Asking,
        background: Background,
        *,
        log: Log,
    ) -> None:
        self._asker = asking if configured == "auto" else None
        self._background = background
        self._log = log
        self._era: Era | None = configured if configured != "auto" else None
        self._asking: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self.is_certain = self._asker is None
        """Is there no reason to ask?"""

    @property
    def is_modern(self) -> bool:
        """Are requests to be handed on as they are?"""
        return self._era == "modern"

    def doubt(self) -> None:
        """Something happened that does not go with the verdict."""
        self.is_certain = self._asker is None

    async def settle(
        self, authorization: str | None = None, patience: float = PATIENCE_SECONDS, *, urgent: bool = False
    ) -> None:
        """Have a verdict that there is no reason to doubt, if that can be had in time; `urgent`: without a pause."""
        if self.is_certain or self._asker is None:
            return
        if self._asking is None:
            if not urgent and asyncio.get_running_loop().time() < self._not_before:
                return
            self._asking = self._background.start(self._ask(self._asker, authorization), "era")
        await asyncio.wait([self._asking], timeout=patience)

    async def _ask(self, asker: Asking, authorization: str | None) -> None:
        try:
            era = await asker(authorization)
        finally:
            self._asking = None
        if era is not None:
            self.is_certain = True
        if era is None or era == self._era:
            self._not_before = asyncio.get_running_loop().time() + _PAUSE_SECONDS
            return
        self._era = era
        self._log.info(LogEvent.ERA_FOUND, era=era)


def asking_for_era(
    forwarder: Forwarder | None, dialer: Dialer, version: str, ending: Ending = "auto"
) -> Asking:
    """How this upstream is asked: at its address, or by its process."""

    async def ask(authorization: str | None) -> Era | None:
        if forwarder is None:
            era, _ = await dialer.ask_process()
        else:
            era, _ = await ask_era(forwarder, version=version, authorization=authorization, ending=ending)
        return era

    return ask
