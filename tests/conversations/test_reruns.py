"""A connection breaks while the server works and the client listens: the call is run again where policy allows it."""

from collections.abc import AsyncIterator

import pytest

from tests.conversations.test_failures_recovery import lost
from tests.support.gateways import Gateways
from tests.support.scripted import Scripted, Turn, asking, text_result
from tests.support.wire import Wire, accept


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted() as scripted:
        yield scripted


def breaking(server: Scripted, times: int) -> None:
    """The first calls of the tool break off when they have been answered; the others do not."""

    async def run(turn: Turn) -> None:
        if len(server.seen("tools/call")) > times:
            await asking(turn)
            return
        await turn.stream()
        params = {"message": "Your name?", "requestedSchema": NAME}
        await turn.event({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params})
        await server.wait_for_answer(1)
        turn.reset()

    server.on["tools/call"] = run


NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


async def test_a_call_that_may_run_again_does_and_is_told_what_was_answered(
    gateway: Gateways, server: Scripted
) -> None:
    """Ours (replay): the client hears a result in the same round, and its user is asked nothing twice."""

    async def once(turn: Turn) -> None:
        if len(server.seen("tools/call")) == 1:
            turn.reset()
        else:
            await turn.result(text_result("done"))

    server.on["tools/call"] = once
    served = await gateway(server.url, replay="always")
    async with Wire(served.url) as client:
        assert (await client.tool("echo")).text == "done"
    first, second = server.seen("tools/call")
    assert first.session != second.session
    assert first.id != second.id


@pytest.mark.parametrize("replay", ["never", "idempotent"])
async def test_a_call_of_which_nobody_says_that_it_may_run_again_does_not(
    gateway: Gateways, server: Scripted, replay: str
) -> None:
    """Ours (replay): in doubt a call has had side effects."""

    async def reset(turn: Turn) -> None:
        turn.reset()

    server.on["tools/call"] = reset
    served = await gateway(server.url, replay=replay)
    async with Wire(served.url) as client:
        lost(await client.tool("echo"))
    assert len(server.seen("tools/call")) == 1


async def test_a_later_round_is_answered_from_the_journal(gateway: Gateways, server: Scripted) -> None:
    """Ours (replay): the answer was given once, and each run is given it once."""
    breaking(server, 1)
    served = await gateway(server.url, replay="always")
    async with Wire(served.url) as client:
        asked = await client.tool("echo")
        done = await client.retry(asked, dict.fromkeys(asked.asked, accept(name="Ann")))
        assert done.text == "Hello Ann"
    assert len(server.seen("tools/call")) == 2


async def test_a_call_that_always_breaks_is_given_up(gateway: Gateways, server: Scripted) -> None:
    """Ours (replay): after four runs, as with any other reason for another one."""

    async def reset(turn: Turn) -> None:
        turn.reset()

    server.on["tools/call"] = reset
    served = await gateway(server.url, replay="always")
    async with Wire(served.url) as client:
        lost(await client.tool("echo"))
    assert len(server.seen("tools/call")) == 4
