"""Reads what gateways wrote into `requestState`, with their key: which exchange it was, and who had it."""

import json
from dataclasses import dataclass

from gateway.edge.principals import NOBODY
from gateway.sealing.box import Box, Expected
from gateway.sealing.keyring import Keyring
from gateway.wire import canonical
from tests.chaos.records import Task


@dataclass(frozen=True, slots=True)
class Ticket:
    exchange: str
    owner: str
    round: int
    runs: int


class TicketReader:
    """For tickets that were given to anybody."""

    def __init__(self, key: str) -> None:
        self._box = Box(Keyring.from_secrets([key]), lambda size: b"\0" * size)

    def read(self, token: str, task: Task) -> Ticket:
        expected = Expected(
            principal=NOBODY.material,
            upstream=task.upstream,
            method="tools/call",
            target=task.tool,
            arguments=canonical.digest(json.dumps(task.arguments).encode()),
        )
        claims = self._box.open(token, expected, 0)
        return Ticket(claims.exchange, claims.owner, claims.round, claims.runs)
