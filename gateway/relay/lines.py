"""Where a standing session comes from, on which a server is heard outside calls. It does not know who listens.

    OwnLine      a session for nothing else, so that no call waits for a listener and no listener for a call
    SharedLine   under `affinity` the caller's one session: such servers tell it what happens in it, and no other

What a server asks on a session of the first kind belongs to no call, so no
client is ever asked: the policy answers, or nobody does. On the second kind it
joins the next call, as it always does.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from gateway.eras.policy import Undeclared, settle_without_client, withdrawn
from gateway.eras.vocabulary import Ask, SendAnswer, SendRefusal
from gateway.relay.place import Place
from gateway.upstreams.background import Background
from gateway.upstreams.openings import Openings
from gateway.upstreams.pool import Caller, Pool
from gateway.upstreams.session import Session
from gateway.wire.jsonrpc import Id, Notification, decode

_AT_ONCE: Final = 16
"""Handshakes at the same time. When a server comes back, all who listen want a session of it."""
_FAREWELL_SECONDS: Final = 6.0


class Line(Protocol):
    """Gives standing sessions, and takes them back."""

    async def take(self, caller: Caller) -> Session:
        """A session on which this caller can hear the server. Raises `GatewayError` if there is none to be had."""

    def give_back(self, session: Session) -> None:
        """It is not listened on any more."""

    async def close(self) -> None:
        """Wait until the server knows of all that was given back."""


class OwnLine:
    """Opens a session for each caller who listens, and closes it afterwards."""

    def __init__(self, place: Place, open_for: Callable[[Caller], Awaitable[Session]]) -> None:
        self._place = place
        self._openings = Openings(open_for, self.give_back)
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._farewells = Background()

    async def take(self, caller: Caller) -> Session:
        """Open one."""
        async with self._turns:
            session = await self._openings.open(caller)
        bystander = Bystander(session, caller, self._place)
        session.listener = bystander
        early, session.early_asks = session.early_asks, []
        for ask in early:
            bystander.hear_ask(ask)
        return session

    def give_back(self, session: Session) -> None:
        """End it."""
        self._farewells.start(session.close(), "close-standing")

    async def close(self) -> None:
        """Wait for the farewells."""
        await self._openings.close()
        await self._farewells.settle(_FAREWELL_SECONDS)
        await self._farewells.close()


class SharedLine:
    """Listens on the session that serves the caller's calls."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def take(self, caller: Caller) -> Session:
        """The one that is there, or a new one."""
        return await self._pool.attach(caller)

    def give_back(self, session: Session) -> None:
        """It goes on serving calls."""
        self._pool.detach(session)

    async def close(self) -> None:
        """The pool closes its sessions itself."""


class Bystander:
    """What is on a session that serves no call: it hears no progress and no logs, and answers for nobody."""

    __slots__ = ("_caller", "_place", "_session")

    def __init__(self, session: Session, caller: Caller, place: Place) -> None:
        self._session = session
        self._caller = caller
        self._place = place

    def hear_ask(self, ask: Ask) -> None:
        """Answer by policy, or say that nobody is there."""
        declared: dict[str, Any] = decode(self._caller.capabilities.encode())
        known_roots = self._place.roots.recall(self._caller.principal)
        verdict = settle_without_client(ask, self._place.policy, declared, known_roots)
        match verdict or withdrawn(ask, "Nobody can be asked outside a call"):
            case SendAnswer(Ask(id=ask_id), result) if ask_id is not None:
                self._place.background.start(self._session.answer(ask_id, result), "standing-answer")
            case (SendRefusal(Ask(id=ask_id), code, text)) | Undeclared(
                SendRefusal(Ask(id=ask_id), code, text)
            ) if ask_id is not None:
                self._place.background.start(self._session.refuse(ask_id, code, text), "standing-refusal")
            case _:
                return  # an ask without an id is a URL that a call could not do without: there is no call

    def hear_withdrawal(self, ask_id: Id) -> None:
        """It was answered already."""

    def hear_notification(self, notification: Notification) -> None:
        """About a call, and there is none."""
