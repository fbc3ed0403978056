"""Two callers, in every way of telling callers apart: nothing of one ever reaches the other.

Where callers are not told apart, everybody is the same nobody: then nothing may be kept from one call to the
next, and what a caller was given (a ticket, a session's id) is all that makes it theirs.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.callers import KNOWN, MODES, Callers, callers
from tests.support.gateways import Gateways
from tests.support.listening import TOOLS, UPDATED, listening
from tests.support.peers import LegacyServers, Running
from tests.support.scripted import Scripted, Turn, introduction, notice
from tests.support.wire import Answer, Wire, accept

REFUSED = {"reason": "invalid_request_state"}


@pytest.fixture(params=MODES)
async def both(request: pytest.FixtureRequest) -> AsyncIterator[Callers]:
    """Ann and Bob, in every mode."""
    async with callers(request.param) as found:
        yield found


@pytest.fixture(params=KNOWN)
async def known(request: pytest.FixtureRequest) -> AsyncIterator[Callers]:
    """The same, where they are told apart."""
    async with callers(request.param) as found:
        yield found


@pytest.fixture
def server(legacy_servers: LegacyServers) -> Running:
    return legacy_servers.get("py-1.30")


def yes_to(asked: Answer, name: str = "Ann") -> dict[str, Any]:
    return {key: accept(name=name) for key in asked.asked}


async def test_no_session_is_ever_shared(both: Callers, server: Running, gateway: Gateways) -> None:
    """Design: in every mode; nobody in particular gets a session of its own for each call."""
    served = await gateway(server.url, auth=both.auth)
    async with Wire(served.url, headers=both.ann) as ann, Wire(served.url, headers=both.bob) as bob:
        told = await asyncio.gather(*(wire.tool("whoami") for wire in (ann, bob) * 3))
        later = [await wire.tool("whoami") for wire in (ann, bob) * 2]
    sessions = [json.loads(answer.text)["session"] for answer in (*told, *later)]
    if both.auth["mode"] == "none":
        assert len(set(sessions)) == len(sessions)
    else:
        assert set(sessions[::2]).isdisjoint(sessions[1::2])


async def test_what_a_server_keeps_in_a_session_is_not_seen_by_another(
    known: Callers, server: Running, gateway: Gateways
) -> None:
    """Design: `affinity` is one session per principal."""
    served = await gateway(server.url, auth=known.auth, sessions={"mode": "affinity"})
    async with Wire(served.url, headers=known.ann) as ann, Wire(served.url, headers=known.bob) as bob:
        await ann.tool("remember", {"value": "ann's"})
        bobs = await bob.tool("recall")
        anns = await ann.tool("recall")
    assert anns.text == "ann's"
    assert "ann's" not in json.dumps(bobs.message)


async def test_roots_go_to_the_caller_s_own_sessions_only(
    both: Callers, server: Running, gateway: Gateways
) -> None:
    """Issue: no roots list crosses principals; nobody's are not even remembered."""
    served = await gateway(server.url, auth=both.auth)
    async with Wire(served.url, headers=both.ann) as ann, Wire(served.url, headers=both.bob) as bob:
        asked = await ann.tool("roots")
        await ann.retry(asked, {key: {"roots": [{"uri": "file:///ann"}]} for key in asked.asked})
        bobs = await bob.tool("roots")
    assert bobs.asked, "Bob is asked for his own"


async def test_a_ticket_is_its_owner_s_and_trying_it_costs_the_owner_nothing(
    known: Callers, server: Running, gateway: Gateways
) -> None:
    """Issue: a `requestState` is a capability of its owner; with no credential at all it is nobody's."""
    served = await gateway(server.url, auth=known.auth)
    async with (
        Wire(served.url, headers=known.ann) as ann,
        Wire(served.url, headers=known.bob) as bob,
        Wire(served.url) as nobody,
    ):
        asked = await ann.tool("ask_name")
        stolen = await bob.retry(asked, yes_to(asked, "Bob"))
        anonymous = await nobody.retry(asked, yes_to(asked, "Nobody"))
        done = await ann.retry(asked, yes_to(asked))
        fetched = await bob.retry(asked, yes_to(asked))
    for answer in (stolen, fetched):
        assert answer.error["data"] == REFUSED
    assert anonymous.status in (400, 401)
    assert "Ann" in done.text


async def test_two_holds_of_one_kind_are_not_mixed_up(
    both: Callers, server: Running, gateway: Gateways
) -> None:
    """Issue: no hold crosses; the same call with the same arguments, at the same time."""
    served = await gateway(server.url, auth=both.auth)
    async with Wire(served.url, headers=both.ann) as ann, Wire(served.url, headers=both.bob) as bob:
        anns, bobs = await asyncio.gather(ann.tool("ask_name"), bob.tool("ask_name"))
        told = await asyncio.gather(
            ann.retry(anns, yes_to(anns, "Ann")), bob.retry(bobs, yes_to(bobs, "Bob"))
        )
    assert ["Ann" in told[0].text, "Bob" in told[1].text] == [True, True]


async def test_progress_goes_to_whoever_asked_under_the_same_token(
    both: Callers, server: Running, gateway: Gateways
) -> None:
    """Issue: no progress token crosses; clients count theirs from one, all of them."""
    served = await gateway(server.url, auth=both.auth)
    async with Wire(served.url, headers=both.ann) as ann, Wire(served.url, headers=both.bob) as bob:
        three, five = await asyncio.gather(
            ann.tool("progress", {"steps": 3}, token=1), bob.tool("progress", {"steps": 5}, token=1)
        )
    totals = [{note["params"]["total"] for note in answer.notifications} for answer in (three, five)]
    assert totals == [{3}, {5}]
    assert [len(answer.notifications) for answer in (three, five)] == [3, 5]


# --- what a server says to some ----------------------------------------------------------------


class Partial(Scripted):
    """Gives each session another list, and tells of changes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.on["initialize"] = self._introduce
        self.on["tools/list"] = self._tools
        self.on["resources/subscribe"] = self._subscribe

    async def _introduce(self, turn: Turn) -> None:
        can = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
        await turn.result({**introduction(self), "capabilities": can}, self.new_session())

    async def _tools(self, turn: Turn) -> None:
        name = f"of-{turn.session}"
        await turn.result({"tools": [{"name": name, "inputSchema": {"type": "object"}}]})

    async def _subscribe(self, turn: Turn) -> None:
        await turn.result({})


@pytest.fixture
async def partial() -> AsyncIterator[Partial]:
    async with Partial() as started:
        yield started


async def names(wire: Wire) -> list[str]:
    return [tool["name"] for tool in (await wire.request("tools/list")).result["tools"]]


async def test_no_list_that_is_kept_for_one_is_given_to_another(
    known: Callers, partial: Partial, gateway: Gateways
) -> None:
    """Issue: no cache entry crosses principals."""
    served = await gateway(partial.url, auth=known.auth, cache={"lists": "private"})
    async with Wire(served.url, headers=known.ann) as ann, Wire(served.url, headers=known.bob) as bob:
        anns, bobs = await names(ann), await names(bob)
        assert anns != bobs
        assert [await names(ann), await names(bob)] == [anns, bobs], "from what is kept"


async def test_a_listener_hears_of_its_own_sessions_only(
    known: Callers, partial: Partial, gateway: Gateways
) -> None:
    """Issue: no subscription crosses principals."""
    served = await gateway(partial.url, auth=known.auth)
    async with (
        Wire(served.url, headers=known.ann) as ann,
        Wire(served.url, headers=known.bob) as bob,
        listening(ann, resourceSubscriptions=["a:1"], toolsListChanged=True) as anns,
    ):
        await anns.honoured()
        [first] = [turn.session for turn in partial.seen("resources/subscribe")]
        async with listening(bob, resourceSubscriptions=["a:1"], toolsListChanged=True) as bobs:
            await bobs.honoured()
            [_, second] = [turn.session for turn in partial.seen("resources/subscribe")]
            assert first != second
            await partial.say(notice(UPDATED, uri="a:1/bob"), second)
            await partial.say(notice(TOOLS), second)
            assert await bobs.heard(2) == [(UPDATED, "a:1/bob"), (TOOLS, None)]
            await partial.say(notice(UPDATED, uri="a:1/ann"), first)
            assert await anns.heard() == [(UPDATED, "a:1/ann")], "and nothing of Bob's before it"


async def test_what_a_server_says_of_itself_to_one_is_not_told_another(
    known: Callers, partial: Partial, gateway: Gateways
) -> None:
    """Ours: instructions may be written for somebody."""

    async def introduce(turn: Turn) -> None:
        who = f"for the session {partial.number('hello')}"
        await turn.result({**introduction(partial), "instructions": who}, partial.new_session())

    partial.on["initialize"] = introduce
    served = await gateway(partial.url, auth=known.auth)
    async with Wire(served.url, headers=known.ann) as ann, Wire(served.url, headers=known.bob) as bob:
        told = [(await wire.request("server/discover")).result.get("instructions") for wire in (ann, bob)]
    assert told[0] != told[1]
