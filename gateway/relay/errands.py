"""Rounds carried to the replica with the exchange, as the replica with the client sees them. See `courier`.

It hears letters and asks for a round again; when a replica is dead, others decide.
"""

import asyncio
from dataclasses import dataclass
from itertools import count
from typing import Final

from gateway.errors import BodyTooLarge, CallLost, Overloaded
from gateway.relay.hearts import Hearts
from gateway.relay.letters import (
    Accepted,
    Carry,
    Left,
    LetterInvalid,
    Pause,
    Said,
    Told,
    Unknown,
    open_reply,
    pack_request,
)
from gateway.relay.listener import Listener, Reply
from gateway.relay.mail import LetterTooLarge, Mail
from gateway.relay.request import ClientRequest
from gateway.stores.protocol import InboxFull, Store, StoreUnavailable
from gateway.upstreams.background import Background
from gateway.wire.jsonrpc import Notification, NotJson, NotJsonRpc, parse

MOST_ERRANDS: Final = 10_000
_FAREWELL_SECONDS: Final = 5.0


class OwnerGone(Exception):
    """The replica that had the exchange is dead, does not answer, or knows nothing of it: try the next rung.

    Whether it took the answers before is not known; the stage in the store tells.
    """


@dataclass(slots=True)
class _Errand:
    owner: str
    carry: Carry
    listener: Listener
    accepted: asyncio.Future[None]
    posted_at: float
    heard: int = -1
    loss: Exception | None = None
    is_paused: bool = False


class Errands:
    """The rounds of clients here whose exchange is elsewhere."""

    def __init__(self, mail: Mail, store: Store, hearts: Hearts, *, replica: str, patience: float) -> None:
        self._mail = mail
        self._store = store
        self._hearts = hearts
        self._replica = replica
        self._patience = patience
        self._errands: dict[int, _Errand] = {}
        self._numbers = count(1)
        self._farewells = Background()

    async def run(
        self,
        owner: str,
        upstream: str,
        exchange: str,
        round_: int,
        digest: str,
        request: ClientRequest,
        listener: Listener,
    ) -> None:
        """Have a round carried out by `owner`, and heard by `listener`; returns once that is under way there.

        Raises:
            OwnerGone: nothing was heard of it.
            StoreUnavailable: nothing can be heard of it now. It may be under way: the same retry later joins it.
            Overloaded: there are too many already.
        """
        if len(self._errands) >= MOST_ERRANDS:
            raise Overloaded(f"{len(self._errands)} rounds are carried already")
        if await self._hearts.is_dead(owner):
            raise OwnerGone(f"replica {owner} is dead")
        loop = asyncio.get_running_loop()
        number = next(self._numbers)
        listener.exchange_id, listener.round = exchange, round_
        listener.joined(lambda _: self._leave(number))
        carry = Carry(self._replica, number, upstream, exchange, round_, digest, pack_request(request))
        errand = _Errand(owner, carry, listener, loop.create_future(), loop.time())
        self._errands[number] = errand
        try:
            await self._mail.send(owner, carry)
            async with asyncio.timeout(self._patience):
                await errand.accepted
        except LetterTooLarge:
            self._errands.pop(number, None)
            raise BodyTooLarge("too large to be carried to another replica") from None
        except InboxFull:
            self._errands.pop(number, None)
            raise OwnerGone(f"replica {owner} does not read its letters") from None
        except TimeoutError:
            self._errands.pop(number, None)
            if self._store.steady_seconds() < self._patience:
                raise StoreUnavailable("the letter, or the answer to it, may be lost") from None
            raise OwnerGone(f"replica {owner} does not answer") from None
        except asyncio.CancelledError:
            self._leave(number)
            raise
        except BaseException:
            self._errands.pop(number, None)
            raise
        if errand.loss is not None:
            raise errand.loss

    def hear(self, letter: Accepted | Told | Said | Unknown) -> None:
        """What the owner writes. About a round that is over here, nothing needs to be heard."""
        errand = self._errands.get(letter.number)
        if errand is None:
            return
        match letter:
            case Accepted():
                _accept(errand)
            case Told(_, sequence, notifications):
                _accept(errand)
                if sequence > errand.heard:
                    errand.heard = sequence
                    for notification in notifications:
                        _tell(errand.listener, notification)
            case Said(number, reply):
                try:
                    last_word = open_reply(reply)
                except LetterInvalid:
                    last_word = Reply.of(CallLost("unreadable_reply", "a reply of another version, it seems"))
                del self._errands[number]
                errand.listener.finish(last_word)
                _accept(errand)
            case Unknown():
                self._lose(errand, OwnerGone(f"replica {errand.owner} does not know the exchange"))

    async def pause(self) -> None:
        """Have each round end, once, so that its client can go on with another replica: this one is about to stop.

        Raises:
            StoreUnavailable: some could not be told; they are told the next time.
        """
        for errand in list(self._errands.values()):
            if errand.accepted.done() and not errand.is_paused:
                await self._mail.send(errand.owner, Pause(self._replica, errand.carry.number))
                errand.is_paused = True

    def owners(self) -> set[str]:
        """The replicas that something is waited for from."""
        return {errand.owner for errand in self._errands.values()}

    def lost(self, loss: Exception, owner: str | None = None) -> None:
        """Nothing more will be heard from this replica, or from any."""
        for errand in list(self._errands.values()):
            if owner is None or errand.owner == owner:
                self._lose(errand, loss)

    async def remind(self, posted_before: float) -> None:
        """Ask again for all rounds that were asked for before this time: a letter may be lost."""
        for errand in list(self._errands.values()):
            if errand.posted_at < posted_before and errand.carry.number in self._errands:
                now = asyncio.get_running_loop().time()
                await self._mail.send(errand.owner, errand.carry)
                errand.posted_at = now

    async def close(self) -> None:
        """Let the farewells be written."""
        await self._farewells.settle(_FAREWELL_SECONDS)
        await self._farewells.close()

    def _lose(self, errand: _Errand, loss: Exception) -> None:
        del self._errands[errand.carry.number]
        if not errand.accepted.done():
            errand.loss = loss
            errand.accepted.set_result(None)
        else:
            errand.listener.orphan(loss, Reply.of(CallLost("owner_lost", str(loss))))

    def _leave(self, number: int) -> None:
        errand = self._errands.pop(number, None)
        if errand is not None:
            left = Left(self._replica, number)
            self._farewells.start(
                self._mail.deliver(errand.owner, left, seconds=_FAREWELL_SECONDS), "client-left"
            )


def _accept(errand: _Errand) -> None:
    if not errand.accepted.done():
        errand.accepted.set_result(None)


def _tell(listener: Listener, data: bytes) -> None:
    try:
        message = parse(data)
    except (NotJson, NotJsonRpc):
        return
    if isinstance(message, Notification):
        # Filtered here too: after a change of owner, progress must still only grow.
        listener.tell(message)
