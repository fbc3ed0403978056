"""Rounds of clients that are elsewhere, carried out here. It hears what the exchange says, and writes it back."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeAlias

from gateway.errors import GatewayError, Overloaded, UpstreamSpokeNonsense
from gateway.relay.letters import (
    Accepted,
    CarriedRound,
    Carry,
    Left,
    LetterInvalid,
    Pause,
    Said,
    Told,
    Unknown,
    open_round,
    pack_reply,
)
from gateway.relay.listener import Listener, Reply, RpcError
from gateway.relay.mail import LetterTooLarge, Mail
from gateway.stores.protocol import StoreUnavailable
from gateway.telemetry.names import Outcome
from gateway.upstreams.background import Background

MOST_GUESTS: Final = 10_000
_AT_ONCE_SECONDS: Final = 0.05
"""A round that ends within this time needs no letter that says that it has begun."""
_PATIENCE_SECONDS: Final = 3600.0
_BATCH_BYTES: Final = 1024**2
_FAREWELL_SECONDS: Final = 1.0


class UnknownExchange(Exception):
    """There is no such exchange here, or it is another replica's by now."""


OnCarry: TypeAlias = Callable[[CarriedRound], Awaitable[Listener]]
"""Lets a client that is elsewhere join its exchange here, as its own listener would. May raise what a retry may
raise, and `UnknownExchange`. Called again for the same round, it joins what is under way, or gives its outcome."""

_Key: TypeAlias = tuple[str, int]


@dataclass(slots=True)
class _Guest:
    number: int
    sender: str
    listener: Listener | None = None
    is_gone: bool = False
    """Nobody reads there what would be written."""
    has_left: bool = False
    """The client itself has closed its connection."""
    is_answered: bool = False


class Guests:
    """The rounds that other replicas have sent here."""

    def __init__(self, mail: Mail, *, patience: float) -> None:
        self._mail = mail
        self._patience = patience
        self._handlers: dict[str, OnCarry] = {}
        self._guests: dict[_Key, _Guest] = {}
        self._sequence = count()
        self._rounds = Background()

    def serve(self, upstream: str, on_carry: OnCarry) -> None:
        """Rounds of this upstream are carried out by `on_carry`."""
        self._handlers[upstream] = on_carry

    def take(self, carry: Carry) -> None:
        """A round has come. One that is under way already needs nothing: it was asked for again, to be sure."""
        key = (carry.sender, carry.number)
        if key not in self._guests:
            guest = self._guests[key] = _Guest(carry.number, carry.sender)
            self._rounds.start(self._serve(key, guest, carry), "carried-round")

    def leave(self, left: Left) -> None:
        """The client has closed its connection there."""
        guest = self._guests.get((left.sender, left.number))
        if guest is not None:
            if guest.listener is not None:
                guest.listener.left()
            guest.has_left = True
            _let_go(guest)

    def pause(self, pause: Pause) -> None:
        """The replica with the client is about to stop. A round that cannot pause goes on as it is."""
        guest = self._guests.get((pause.sender, pause.number))
        if guest is not None and guest.listener is not None:
            guest.listener.pause()

    def senders(self) -> set[str]:
        """The replicas whose clients are guests here."""
        return {guest.sender for guest in self._guests.values()}

    def lost(self, sender: str) -> None:
        """A replica is dead. Its clients are not: the round goes on, and its outcome waits for them."""
        for guest in list(self._guests.values()):
            if guest.sender == sender:
                _let_go(guest)

    async def close(self) -> None:
        """Write what is ready to be written, and to the others that they must look elsewhere."""
        await self._rounds.settle(_AT_ONCE_SECONDS)
        waiting = [guest for guest in self._guests.values() if not guest.is_answered and not guest.is_gone]
        await self._rounds.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL_SECONDS):
                await asyncio.gather(
                    *(self._mail.send(guest.sender, Unknown(guest.number)) for guest in waiting),
                    return_exceptions=True,
                )

    # --- one round -------------------------------------------------------------------

    async def _serve(self, key: _Key, guest: _Guest, carry: Carry) -> None:
        try:
            last_word = await self._last_word(guest, carry)
            if last_word is not None:
                await self._say(guest, last_word)
        finally:
            del self._guests[key]

    async def _last_word(self, guest: _Guest, carry: Carry) -> Reply | None:
        """Carry the round out. None: there is nobody to tell, or nothing to be told."""
        handler = self._handlers.get(carry.upstream)
        if len(self._guests) > MOST_GUESTS:
            return Reply.of(Overloaded(f"{len(self._guests)} rounds of other replicas are under way"))
        try:
            if handler is None:
                raise UnknownExchange
            guest.listener = listener = await handler(open_round(carry))
        except (UnknownExchange, LetterInvalid):
            guest.is_answered = True
            await self._mail.deliver(guest.sender, Unknown(guest.number), seconds=self._patience)
            return None
        except StoreUnavailable:
            return Reply.of(Overloaded("the store cannot be reached"))
        except GatewayError as error:
            return Reply.of(error)
        except Exception:
            # Our bug, logged by whoever runs this; the client there must not wait for ever all the same.
            await self._say(guest, _BROKEN)
            raise
        if guest.has_left:
            listener.left()
        return None if guest.is_gone else await self._pump(guest, listener)

    async def _pump(self, guest: _Guest, listener: Listener) -> Reply | None:
        heard = await listener.next(_AT_ONCE_SECONDS)
        if heard is None:
            await self._write(guest, Accepted(guest.number))
        while not isinstance(heard, Reply):
            if guest.is_gone:
                return None
            if heard is not None:
                listener.is_streamed = True  # there
                await self._tell(guest, [heard, *listener.rest()])
            heard = await listener.next(_PATIENCE_SECONDS)
        return heard

    async def _tell(self, guest: _Guest, notifications: list[bytes]) -> None:
        batch: list[bytes] = []
        size = 0
        for notification in notifications:
            if batch and size + len(notification) > _BATCH_BYTES:
                await self._write_told(guest, batch)
                batch, size = [], 0
            batch.append(notification)
            size += len(notification)
        await self._write_told(guest, batch)

    async def _write_told(self, guest: _Guest, batch: list[bytes]) -> None:
        try:
            await self._write(guest, Told(guest.number, next(self._sequence), batch))
        except LetterTooLarge:
            # Not the last word, so not vital, as with a slow reader; but that there was something is.
            await self._write(guest, Accepted(guest.number))

    async def _say(self, guest: _Guest, reply: Reply) -> None:
        guest.is_answered = True
        try:
            await self._write(guest, Said(guest.number, pack_reply(reply)))
        except LetterTooLarge:
            refusal = UpstreamSpokeNonsense("the result is too large to be carried to another replica")
            await self._write(guest, Said(guest.number, pack_reply(Reply.of(refusal))))

    async def _write(self, guest: _Guest, letter: Accepted | Told | Said) -> None:
        # A letter that cannot be written in all this time is lost; the round will be asked for again.
        await self._mail.deliver(
            guest.sender, letter, seconds=self._patience, is_wanted=lambda: not guest.is_gone
        )


_BROKEN: Final = Reply(
    Outcome.INTERNAL, error=RpcError(-32603, "Internal error"), status=500, reason="internal"
)


def _let_go(guest: _Guest) -> None:
    guest.is_gone = True
    if guest.listener is not None:
        guest.listener.finish(_GONE)


_GONE: Final = Reply(Outcome.CANCELLED, error=RpcError(-32603, "The client has gone"))
"""Wakes up who waits to write what nobody will read."""
