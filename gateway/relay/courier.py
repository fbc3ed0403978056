"""Rounds of exchanges that another replica has: carried there, carried out there, and heard here. Rung *routed*.

One courier serves all upstreams of a process, in both directions:

    carry   a client is here, its exchange elsewhere: a listener that hears what is heard there      (errands)
    serve   an exchange is here, its client elsewhere: what its listener hears is written back       (guests)

A letter may be lost with the store, or come twice. So a round is asked for
again whenever that may have happened: who has the exchange takes each round's
answers once, and the same retry again joins it. Answers are guarded by the
store's fence, never by what is done here.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from gateway.holds.lease import Lease
from gateway.relay.errands import Errands, OwnerGone
from gateway.relay.guests import Guests, OnCarry
from gateway.relay.hearts import Hearts
from gateway.relay.letters import Accepted, Carry, Left, Letter, Pause, Said, Told, Unknown
from gateway.relay.listener import Listener
from gateway.relay.mail import Mail
from gateway.relay.request import ClientRequest
from gateway.sealing.envelope import Envelope
from gateway.stores.protocol import Store, StoreUnavailable
from gateway.telemetry.logs import get_logger
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import LogEvent
from gateway.upstreams.background import Background

_MIB: Final = 1024**2

Reconsider: TypeAlias = Callable[[], Awaitable[None]]
"""Ask the store about each exchange. Raises `StoreUnavailable`."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds on letters and waits."""

    heartbeat: float = 1.0
    """Seconds between two beats of a replica's heart."""
    letter_bytes: int = 16 * _MIB
    """One letter: a client's request, or an upstream's answer to it."""
    acceptance: float = 5.0
    """Seconds in which a replica that lives must have taken a round."""
    outage: float = 10.0
    """Seconds that a round under way elsewhere outlives the store."""
    reminder: float = 15.0
    """Seconds after which a round is asked for again, should a letter have gone astray."""


class Courier:
    """This replica's part in the rounds of others, and theirs in ours; from `start` to `close`."""

    def __init__(
        self, store: Store, envelope: Envelope, *, replica: str, metrics: Metrics, bounds: Bounds
    ) -> None:
        self._store = store
        self._replica = replica
        self._bounds = bounds
        self._hearts = Hearts(store, replica=replica, heartbeat=bounds.heartbeat)
        self._mail = Mail(
            store, envelope, replica=replica, metrics=metrics, max_letter_bytes=bounds.letter_bytes
        )
        self._errands = Errands(self._mail, store, self._hearts, replica=replica, patience=bounds.acceptance)
        self._guests = Guests(self._mail, patience=bounds.outage)
        self._heart = Background()
        self._tasks = Background()
        self._reconsider: list[Reconsider] = []
        self._log = get_logger()

    @property
    def lease(self) -> Lease:
        """Whether this process was frozen."""
        return self._hearts.lease

    async def start(self) -> None:
        """Let the heart beat, and read the letters. A store that nobody shares has neither."""
        if self._store.is_shared:
            self._heart.start(self._hearts.beat(), "heart")
            self._heart.start(self._hearts.watch_itself(), "lease")
            self._tasks.start(self._read(), "inbox")
            self._tasks.start(self._watch(), "watch")

    async def close(self) -> None:
        """Say goodbye to all, and then to each who waits for this replica."""
        await self._heart.close()
        if self._store.is_shared:
            await self._hearts.stop()
        await self._errands.close()
        await self._guests.close()
        await self._tasks.close()

    def serve(self, upstream: str, on_carry: OnCarry, reconsider: "Reconsider | None" = None) -> None:
        """Rounds of this upstream that come from other replicas are carried out by `on_carry`.

        `reconsider` is called after this process was frozen, when the store can say what became of its exchanges.
        """
        self._guests.serve(upstream, on_carry)
        if reconsider is not None:
            self._reconsider.append(reconsider)

    async def pause(self) -> None:
        """This process is about to stop: let the rounds of its clients end that are carried out elsewhere."""
        with contextlib.suppress(StoreUnavailable):
            await self._errands.pause()

    async def carry(
        self,
        owner: str,
        upstream: str,
        exchange: str,
        round_: int,
        digest: str,
        request: ClientRequest,
        listener: Listener,
    ) -> None:
        """Have a round carried out by the replica that has the exchange; returns once it is under way there.

        What is heard there, `listener` hears here. Should that replica die later, it goes to the heir it was
        entrusted to (`Listener.entrust`) with an `OwnerGone`, or with `StoreUnavailable` if the store stays away
        too long.

        Raises:
            OwnerGone: it is dead, silent, or does not know the exchange: nothing is under way, as far as one knows.
            StoreUnavailable: nobody knows. The client may try again with the same ticket.
            Overloaded: too many rounds are carried already.
        """
        if not self._store.is_shared:
            raise OwnerGone("there is no other replica")
        await self._errands.run(owner, upstream, exchange, round_, digest, request, listener)

    # --- what comes in -----------------------------------------------------------------

    async def _read(self) -> None:
        async with aclosing(self._mail.letters()) as letters:
            async for letter in letters:
                self._hear(letter)

    def _hear(self, letter: Letter) -> None:
        match letter:
            case Carry():
                self._guests.take(letter)
            case Left():
                self._guests.leave(letter)
            case Pause():
                self._guests.pause(letter)
            case Accepted() | Told() | Said() | Unknown():
                self._errands.hear(letter)
            case _:
                assert_never(letter)

    # --- who is still there --------------------------------------------------------------

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        seen = awake = loop.time()
        while True:
            await asyncio.sleep(self._bounds.heartbeat)
            now = loop.time()
            if now - awake > self._hearts.lifetime:
                # This process was frozen. For others it was dead, and its clients' rounds with it: ask again.
                await self._remind(now)
            if self._store.is_available():
                seen = now
                await self._look_after(now)
            elif now - seen > self._bounds.outage:
                self._errands.lost(StoreUnavailable("for too long"))
            await self._settle_doubts()
            awake = loop.time()

    async def _settle_doubts(self) -> None:
        lease, doubts = self._hearts.lease, self._hearts.lease.doubts
        if lease.is_sure:
            return
        self._log.warning(LogEvent.FROZEN)
        with contextlib.suppress(StoreUnavailable):
            await self._hearts.beat_once()
            for reconsider in self._reconsider:
                await reconsider()
            lease.settle(doubts)

    async def _look_after(self, now: float) -> None:
        await self._remind(max(now - self._store.steady_seconds(), now - self._bounds.reminder))
        for replica in self._errands.owners() | self._guests.senders():
            try:
                is_dead = await self._hearts.is_dead(replica)
            except StoreUnavailable:
                return
            if is_dead:
                self._log.warning(LogEvent.REPLICA_LOST, replica=replica)
                self._errands.lost(OwnerGone(f"replica {replica} has died"), replica)
                self._guests.lost(replica)

    async def _remind(self, posted_before: float) -> None:
        try:
            await self._errands.remind(posted_before)
        except StoreUnavailable:
            return
