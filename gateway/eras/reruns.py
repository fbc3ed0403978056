"""When another run of a call that ended badly could help, and what is known of the first run.

Whether running it again is *safe* is policy, decided elsewhere: this asks only
whether it could help. It knows no exchange.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.eras.questions import Entry
from gateway.eras.vocabulary import Abort, Ask, Complete, CompleteFailure, Ending
from gateway.errors import GatewayError, UpstreamFault, UpstreamLost
from gateway.wire.jsonrpc import NotJson, Raw, decode_members

MOST_RUNS: Final = 4
"""A call that asks something else each time it is run would be run for ever."""


@dataclass(frozen=True, slots=True)
class Past:
    """What a ticket knows of an exchange whose process is gone."""

    round: int
    runs: int
    journal: Sequence[Entry]
    open_asks: Mapping[str, Ask]


def is_worth_another_run(outcome: Ending | None, *, was_late: bool) -> bool:
    """Did the call end for a reason that another run, with all answers at hand, would not meet?

    It was lost with its server; or the server stopped waiting for the human,
    failed for that, and now the human has answered after all.
    """
    match outcome:
        case Abort(error):
            return isinstance(error, UpstreamFault)
        case CompleteFailure():
            return was_late
        case Complete(result):
            return was_late and is_error(result)
        case None:
            return False


def is_lost_on_its_way(error: GatewayError, runs: int) -> bool:
    """Did the call break off, so that nobody knows whether it ran, and may it be run once more?"""
    return isinstance(error, UpstreamLost) and runs < MOST_RUNS


def is_error(result: Raw) -> bool:
    """Is this the result of a tool that failed?"""
    try:
        members = decode_members(result) or {}
    except NotJson:
        return False
    return bytes(members.get("isError", b"")) == b"true"
