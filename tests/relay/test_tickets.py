"""What a ticket carries, and for whom and what it is good. How it is sealed is tested with the box."""

from typing import Any

import pytest
from msgspec.structs import replace

from gateway.errors import StateRejected
from gateway.relay.request import ClientRequest
from gateway.relay.tickets import TicketOffice, Whereabouts
from gateway.sealing.box import Box
from gateway.sealing.claims import Claims
from gateway.sealing.keyring import Keyring
from gateway.wire.jsonrpc import Raw, decode, decode_members
from tests.support.asking import (
    DECLINE,
    Conversation,
    accept,
    form,
    held,
    page,
    pages_required,
    roots,
    sampling,
)
from tests.support.requests import ADA, BOB, tool_call

HERE = Whereabouts(session_id="s-1", request_id="hf-r-7", last_event_id="e_3", version="2025-11-25")
NOW = 1_800_000_000.9


def random(length: int) -> bytes:
    return bytes(range(length))


class Office:
    """A ticket office whose clock the test tells."""

    def __init__(self, upstream: str = "crm", ttl: float = 600) -> None:
        self.now = NOW
        box = Box(Keyring.ephemeral(random), random)
        self.tickets = TicketOffice(box, upstream=upstream, replica="r", ttl=ttl, now=lambda: self.now)

    def issue(
        self, talk: Conversation, request: ClientRequest | None = None, where: Whereabouts = HERE
    ) -> str:
        return self.tickets.write("x-1", talk.exchange, request or tool_call(), where).token

    def check(self, token: str, request: ClientRequest | None = None) -> Claims:
        return self.tickets.check(token, request or tool_call())


def test_a_ticket_says_which_exchange_round_and_call_and_where_to_find_it() -> None:
    office = Office()
    claims = office.check(office.issue(held(form(0, "a"))))

    assert (claims.exchange, claims.round, claims.runs) == ("x-1", 1, 1)
    assert (claims.upstream, claims.method, claims.target, claims.owner) == ("crm", "tools/call", "book", "r")
    assert (claims.session_id, claims.request_id, claims.last_event_id) == ("s-1", "hf-r-7", "e_3")
    assert (claims.issued_at, claims.expires_at) == (1_800_000_000, 1_800_000_600)
    assert claims.version == "2025-11-25"
    assert claims.is_whole


def test_a_ticket_carries_the_open_asks_and_the_journal() -> None:
    talk = held(form(0, "a"), form("", "b"), sampling(2**70))
    talk.retry({"a": accept(a="x")})
    claims = Office().check(Office().issue(talk))

    assert [(ask.key, ask.id, ask.kind, ask.method) for ask in claims.pending] == [
        ("b", "", "elicitation", "elicitation/create"),
        ("sampling-1", 2**70, "sampling", "sampling/createMessage"),
    ]
    params = decode_members(claims.pending[0].params)
    assert params == form("", "b").params
    assert [(entry.key, entry.kind, decode(entry.answer)) for entry in claims.journal] == [
        ("a", "elicitation", accept(a="x"))
    ]


def test_pages_to_open_are_nothing_that_the_server_waits_for() -> None:
    talk = Conversation()
    talk.call()
    talk.on(pages_required("https://a.example"))

    assert Office().check(Office().issue(talk)).pending == ()


@pytest.mark.requirement("R36")
@pytest.mark.parametrize(
    "other",
    [
        replace(tool_call(), principal=BOB),
        replace(tool_call(), target="cancel"),
        replace(tool_call(), method="prompts/get"),
        tool_call(arguments={"city": "Paris"}),
        tool_call(arguments={}),
    ],
)
def test_a_ticket_is_good_for_this_caller_and_this_call_only(other: ClientRequest) -> None:
    office = Office()
    token = office.issue(held(form(0, "a")))

    with pytest.raises(StateRejected):
        office.check(token, other)


@pytest.mark.requirement("R38")
@pytest.mark.parametrize(
    "again",
    [
        replace(tool_call(), id="another"),
        replace(tool_call(), capabilities={}, progress_token=7, log_level="debug"),
        tool_call(inputResponses={"a": DECLINE}, requestState="…", _meta={}),
        tool_call(arguments=Raw(b'{ "city" : "\\u0052ome" }')),
        replace(tool_call(), client_info={"name": "another"}),
    ],
)
def test_a_retry_may_differ_in_all_that_is_not_the_call(again: ClientRequest) -> None:
    office = Office()

    assert office.check(office.issue(held(form(0, "a"))), again).exchange == "x-1"


@pytest.mark.requirement("R36")
def test_a_ticket_of_one_upstream_is_nothing_to_another() -> None:
    token = Office("crm").issue(held(form(0, "a")))

    with pytest.raises(StateRejected):
        Office("mail").check(token)


@pytest.mark.requirement("R36")
def test_a_ticket_is_good_until_it_expires() -> None:
    office = Office(ttl=600)
    token = office.issue(held(form(0, "a")))

    office.now = 1_800_000_604.9  # the clock of another replica may be ahead
    office.check(token)
    office.now = 1_800_000_605.0
    with pytest.raises(StateRejected):
        office.check(token)


def test_a_ticket_is_good_for_a_moment_at_least() -> None:
    office = Office(ttl=0.1)

    assert office.check(office.issue(held(form(0, "a")))).expires_at == 1_800_000_001


def test_each_round_has_its_own_ticket() -> None:
    office = Office()
    talk = held(form(0, "a"))
    first = office.issue(talk)
    talk.retry()
    second = office.issue(talk)

    assert (office.check(first).round, office.check(second).round) == (1, 2)


class Noise:
    """Text that does not compress."""

    def __init__(self) -> None:
        self.state = 1

    def text(self, length: int) -> str:
        digits = []
        for _ in range(length):
            self.state = self.state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            digits.append(chr(33 + (self.state >> 33) % 90))
        return "".join(digits)


@pytest.mark.parametrize("what", ["journal", "pending", "last_event_id", "session_id"])
def test_what_is_too_large_to_travel_is_left_out_and_the_ticket_says_so(what: str) -> None:
    """Ours: the hold itself needs none of it; only another process would."""
    noise = Noise().text(70_000)
    talk = held(form(0, "a"), form(1, "b", message=noise if what == "pending" else "?"))
    talk.retry({"a": accept(a=noise if what == "journal" else "x")})
    where = replace(HERE, **{what: noise}) if what.endswith("_id") else HERE

    claims = Office().check(Office().issue(talk, where=where))
    assert not claims.is_whole
    assert (claims.exchange, claims.round, claims.request_id) == ("x-1", 1, "hf-r-7")
    assert (claims.pending, claims.journal) == ((), ())


def test_a_large_answer_that_compresses_well_travels() -> None:
    talk = held(form(0, "a"), roots(1))
    talk.retry({"a": accept(a="x" * 100_000)})

    claims = Office().check(Office().issue(talk))
    assert claims.is_whole
    assert decode(claims.journal[0].answer) == accept(a="x" * 100_000)


def test_a_ticket_shows_nothing_of_what_it_carries() -> None:
    talk = held(form(0, "password"), page(1))
    talk.retry({"password": accept(password="hunter2")})
    token: Any = Office().issue(talk, tool_call(principal=ADA))

    assert isinstance(token, str)
    assert not [secret for secret in ("hunter2", "s-1", "ada", "crm", "book") if secret in token]
