"""Which era an upstream is of: found out once, and again when there is reason to doubt it; never per request."""

import asyncio
from typing import Final, Literal

from gateway.telemetry.logs import Log
from gateway.telemetry.names import LogEvent
from gateway.upstreams.background import Background
from gateway.upstreams.era_probe import Era, ask_era
from gateway.upstreams.forwarding import Forwarder

_PAUSE_SECONDS: Final = 1.0
"""After a question that changed nothing, however many doubt. One that did may be followed by another at once."""
_PATIENCE_SECONDS: Final = 1.0
"""How long a request waits for the verdict. A server that takes longer is spoken to in the way that was true last."""


class UpstreamEra:
    """The verdict about one upstream. Not known counts as legacy: the bridge finds out what is wrong, and says so."""

    def __init__(
        self,
        configured: Literal["auto", "legacy", "modern"],
        forwarder: Forwarder | None,
        background: Background,
        *,
        version: str,
        log: Log,
    ) -> None:
        self._forwarder = forwarder if configured == "auto" else None
        self._background = background
        self._version = version
        self._log = log
        self._era: Era | None = configured if configured != "auto" else None
        self._asking: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self.is_certain = self._forwarder is None
        """Is there no reason to ask?"""

    @property
    def is_modern(self) -> bool:
        """Are requests to be handed on as they are?"""
        return self._era == "modern"

    def doubt(self) -> None:
        """Something happened that does not go with the verdict."""
        self.is_certain = self._forwarder is None

    async def settle(self, authorization: str | None = None) -> None:
        """Have a verdict that there is no reason to doubt, if that can be had now."""
        if self.is_certain or self._forwarder is None:
            return
        if self._asking is None:
            if asyncio.get_running_loop().time() < self._not_before:
                return
            self._asking = self._background.start(self._ask(self._forwarder, authorization), "era")
        await asyncio.wait([self._asking], timeout=_PATIENCE_SECONDS)

    async def _ask(self, forwarder: Forwarder, authorization: str | None) -> None:
        try:
            era, _ = await ask_era(forwarder, version=self._version, authorization=authorization)
        finally:
            self._asking = None
        if era is not None:
            self.is_certain = True
        if era is None or era == self._era:
            self._not_before = asyncio.get_running_loop().time() + _PAUSE_SECONDS
            return
        self._era = era
        self._log.info(LogEvent.ERA_FOUND, era=era)
