"""Opens sessions, and carries through what has been begun even if nobody waits for it any more.

Cut short, a handshake leaves a session at the server that nobody can ever end: its
name is in an answer that is not read. Servers without a time-out keep it for ever,
and clients leave, and gateways stop, at any moment.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from gateway.errors import Overloaded
from gateway.upstreams.background import Background

Whose = TypeVar("Whose")
What = TypeVar("What")

_LAST_SECONDS: Final = 6.0
"""How long the last handshakes may still take when everything ends. Nobody waits longer for a server that hangs."""


class Openings(Generic[Whose, What]):
    """Opens; what nobody waits for any more by the time it is open is `adrift`, and not this one's to end."""

    __slots__ = ("_adrift", "_open_for", "_under_way")

    def __init__(self, open_for: Callable[[Whose], Awaitable[What]], adrift: Callable[[What], None]) -> None:
        self._open_for = open_for
        self._adrift = adrift
        self._under_way = Background()

    async def open(self, whose: Whose) -> What:
        """Open one and wait for it.

        Raises:
            Overloaded: everything ends, and it was not open in time. All other errors are those of whatever opens it.
        """
        opening = self._under_way.start(self._open(whose), "open-session")
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if opening.cancelled():
                raise Overloaded("shutting down") from None
            opening.add_done_callback(self._drifted)
            raise
        finally:
            del opening  # if it failed, its error knows this place: the two would stay

    async def close(self) -> None:
        """Wait until all that are under way are open, or do not get so far in time."""
        await self._under_way.settle(_LAST_SECONDS)
        await self._under_way.close()

    async def _open(self, whose: Whose) -> What:
        return await self._open_for(whose)

    def _drifted(self, opening: "asyncio.Task[What]") -> None:
        if not opening.cancelled() and opening.exception() is None:
            self._adrift(opening.result())
