"""What lets an exchange go on in another process: its ticket, and whether that is enough. It moves nothing."""

from gateway.eras.exchange import Exchange
from gateway.eras.reruns import MOST_RUNS
from gateway.relay.legacy_call import LegacyCall
from gateway.relay.place import Place
from gateway.relay.request import ClientRequest
from gateway.relay.tickets import Whereabouts


class Passport:
    """The tickets of one exchange, and where they would lead."""

    __slots__ = ("_is_whole", "is_in_doubt", "is_out", "leads_to_call", "may_run_again")

    def __init__(self) -> None:
        self._is_whole = True
        self.is_out = False
        """Is there a ticket with which its client could come to another process, and that take it over?"""
        self.is_in_doubt = False
        """Did the answers given last perhaps never reach the server? The process that took them died over them."""
        self.leads_to_call = False
        """Is the client's ticket enough to find the running call again?"""
        self.may_run_again = False
        """May another process run the call again? Policy says; it is asked for only when this one stops."""

    def write(
        self, place: Place, exchange_id: str, exchange: Exchange, request: ClientRequest, call: LegacyCall
    ) -> str:
        """The ticket of the present round."""
        self.is_out = True
        where = _whereabouts(call)
        ticket = place.tickets.write(
            exchange_id, exchange, request, where, is_in_doubt=self.is_in_doubt and not exchange.open_asks
        )
        self._is_whole = ticket.is_whole
        self.leads_to_call = ticket.is_whole and where.is_whole
        return ticket.token

    def would_lead(self, exchange: Exchange, call: LegacyCall) -> bool:
        """If a ticket were written now, could another process go on with it?"""
        return _whereabouts(call).is_whole or self.allows_rerun(exchange)

    def allows_rerun(self, exchange: Exchange) -> bool:
        """Could another process run the call again, with the answers given so far?"""
        return self.may_run_again and self._is_whole and exchange.runs < MOST_RUNS


def _whereabouts(call: LegacyCall) -> Whereabouts:
    session = call.session
    return Whereabouts(session.id, call.request_id, session.last_event_id, session.server.version)
