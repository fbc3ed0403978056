"""Book-keeping for an exchange whose client is away: opened, closed, its outcome kept. It drives nothing."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gateway.eras.exchange import Exchange
from gateway.eras.vocabulary import (
    Abort,
    Complete,
    CompleteFailure,
    Ending,
    Hold,
    RerunJudged,
)
from gateway.errors import GatewayError, UpstreamLost
from gateway.relay.audience import Audience
from gateway.relay.listener import Reply
from gateway.relay.place import Place
from gateway.relay.request import ClientRequest
from gateway.stores.protocol import StoreUnavailable
from gateway.telemetry.names import HoldEnd
from gateway.wire.jsonrpc import Failure, encode

if TYPE_CHECKING:
    from gateway.relay.driver import Driver

MOST_SLICED: Final = 8
"""Rounds after which we end none: clients give up after ten, and questions need some as well."""


def readable(hold: Hold, audience: Audience, round_: int) -> Mapping[str, Any]:
    """The questions; none if they are too large for a stream that has begun: who comes back is asked them as JSON."""
    if round_ > MOST_SLICED or not audience.is_streaming:
        return hold.requests
    return hold.requests if audience.can_read(len(encode(hold.requests))) else {}


def has_room(place: Place, driver: "Driver", exchange: Exchange) -> bool:
    """Could it be held now? A call that runs is not to be lost for a round that could as well go on."""
    return place.ledger.has_room(driver.exchange_id, _holder(driver), _weight(driver.request, exchange))


def open_hold(place: Place, driver: "Driver", exchange: Exchange, expire: Callable[[], None]) -> bool:
    """Its client is away now; `expire` is for when it does not come back. False: there is no room for one more."""
    if not place.ledger.hold(driver.exchange_id, driver, _holder(driver), _weight(driver.request, exchange)):
        return False
    place.expiries.set(driver.exchange_id, expire)
    place.pool.park()
    place.metrics.hold_opened(place.name)
    return True


def _holder(driver: "Driver") -> str | None:
    """Nobody in particular has no share of the holds."""
    principal = driver.request.principal
    return principal.id if principal.is_authenticated else None


def weigh(place: Place, driver: "Driver", exchange: Exchange) -> None:
    """Questions and the outcome may come while the client is away, and count as if they had come before."""
    place.ledger.weigh(driver.exchange_id, _weight(driver.request, exchange))


def _weight(request: ClientRequest, exchange: Exchange) -> int:
    """Bytes that peers have sent and that the hold keeps: what was asked of the server, its questions, the answers."""
    asks = (ask.params for ask in exchange.open_asks.values())
    answers = (entry.answer for entry in exchange.journal)
    said = sum(len(raw) for part in (request.params, *asks, *answers) for raw in part.values())
    match exchange.outcome:
        case Complete(result):
            return said + len(result)
        case CompleteFailure(Failure(data=data)) if data is not None:
            return said + len(data)
        case _:
            return said


def end_hold(place: Place, exchange_id: str, end: HoldEnd) -> None:
    """The session works again, or is about to be let go: it counts as one at work."""
    if place.ledger.resume(exchange_id):
        place.pool.unpark()
        place.metrics.hold_ended(place.name, end, place.expiries.stop(exchange_id))


def forget(place: Place, driver: "Driver", end: HoldEnd) -> None:
    """Another process has the exchange from now on: strike it from the books here."""
    place.drivers.discard(driver)
    if place.ledger.find(driver.exchange_id) is driver:  # and not what was found again under its name
        end_hold(place, driver.exchange_id, end)
        place.ledger.forget(driver.exchange_id)


async def may_speak(place: Place, driver: "Driver") -> bool:
    """May it still say something to its server? A process that was frozen asks first whose the exchange is by now.

    Raises:
        UpstreamLost: nobody can say.
    """
    if not driver.passport.is_out or place.directory.is_sure:
        return True
    try:
        is_ours = await place.directory.is_mine(driver.exchange_id)
    except StoreUnavailable:
        raise UpstreamLost("this process was frozen, and the store is away") from None
    if not is_ours:
        driver.disown()
    return is_ours


async def seek_rerun(place: Place, driver: "Driver", feed: Callable[[RerunJudged], None]) -> None:
    """Find out whether its call, which was just lost, may be run again by this process."""
    try:
        is_allowed = await may_speak(place, driver) and await place.may_rerun(driver.request)
    except GatewayError:
        is_allowed = False
    if driver in place.drivers:  # and not another process's by now
        feed(RerunJudged(is_allowed))


def keep(place: Place, exchange_id: str, outcome: Ending, reply: Reply) -> None:
    """A client that lost the last word may come for it again, for a while."""
    is_lost = isinstance(outcome, Abort)  # the server gave none, so there is none that could be lost
    note = place.directory.note_lost if is_lost else place.directory.note_done
    place.background.start(note(exchange_id), "note-done")
    place.ledger.keep(exchange_id, len(encode(reply.result)))
    place.graces.set(exchange_id, partial(place.ledger.forget, exchange_id))
