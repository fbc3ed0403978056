"""How the server introduced itself, and to whom: what discovery is answered from. It opens no session itself.

A server may tell one principal other things than another, so each has what it
was told. Who was told nothing yet gets what is known from others, without the
instructions: those are words to somebody.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from gateway.eras.discovery import Introduction
from gateway.upstreams.background import Background
from gateway.upstreams.pool import Caller

_MOST_KNOWN: Final = 10_000
_PATIENCE_SECONDS: Final = 1.0
"""How long discovery may wait for the server's introduction to a caller, where others have met it."""
_FIRST_PATIENCE_SECONDS: Final = 7.0
"""The same where nobody has. A command takes its time to start, clients keep for good what discovery says the
server can do, and they fall back after ten seconds, of which finding out the era has had one."""


@dataclass(frozen=True, slots=True)
class Acquaintance:
    """A server as somebody met it."""

    server: Introduction
    can_be_heard: bool
    """Does it have a stream on which to tell of changes?"""


class Introductions:
    """What one upstream said of itself."""

    def __init__(self, meet: Callable[[Caller], Awaitable[None]], background: Background) -> None:
        self._meet = meet
        self._background = background
        self._known: OrderedDict[str, Acquaintance] = OrderedDict()
        self._latest: Acquaintance | None = None
        self._meeting: dict[str, asyncio.Task[None]] = {}

    def note(self, caller: Caller, acquaintance: Acquaintance) -> None:
        """A session was opened; that is when a server introduces itself."""
        self._latest = self._known[caller.principal] = acquaintance
        self._known.move_to_end(caller.principal)
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)

    def ask(self, caller: Caller) -> "asyncio.Task[None]":
        """Have the server introduce itself to this caller, once at a time."""
        meeting = self._meeting.get(caller.principal)
        if meeting is None:
            meeting = self._background.start(self._introduce(caller), "introduction")
            self._meeting[caller.principal] = meeting
            meeting.add_done_callback(lambda _: self._meeting.pop(caller.principal, None))
        return meeting

    async def of(self, caller: Caller) -> Acquaintance | None:
        """What this caller may know of the server. Never waits long, never fails because the server does."""
        if caller.principal not in self._known:
            patience = _FIRST_PATIENCE_SECONDS if self._latest is None else _PATIENCE_SECONDS
            await asyncio.wait([self.ask(caller)], timeout=patience)
        known = self._known.get(caller.principal)
        if known is not None or self._latest is None:
            return known
        return replace(self._latest, server=replace(self._latest.server, instructions=None))

    def knows(self, principal: str) -> bool:
        """Has the server introduced itself to this principal?"""
        return principal in self._known

    @property
    def latest(self) -> Introduction | None:
        """How it introduced itself last, to whomever."""
        return None if self._latest is None else self._latest.server

    async def _introduce(self, caller: Caller) -> None:
        await self._meet(caller)
