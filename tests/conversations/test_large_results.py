"""Results that are larger than the events that clients read: they come in a round of their own, as JSON."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.support.gateways import Gateways
from tests.support.python_client import PythonClient, text_of
from tests.support.scripted import Scripted, Turn, ask, text_result
from tests.support.waiting import until
from tests.support.wire import Answer, Wire, accept

LARGE = 2 * 2**20
"""Characters. The Python client reads no event of more than a mebibyte."""
STREAMS = {"limits": {"keepalive": "20ms"}}
"""Whoever waits that long for an answer gets it on a stream."""


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted() as scripted:
        yield scripted


def saying(size: int, when: asyncio.Event, *, questions: int = 0) -> Callable[[Turn], Awaitable[None]]:
    """A tool that has this much to say in the end, and asks before."""

    async def run(turn: Turn) -> None:
        await turn.stream()
        for number in range(questions):
            await turn.event(ask(number))
            await turn.answered(number)
        await when.wait()
        await turn.event(turn.answer(text_result("x" * size)))
        await turn.finish()

    return run


async def streamed(wire: Wire, when: asyncio.Event, asked: Answer | None = None) -> Answer:
    """The round in which the tool is told to end, when the response is a stream."""
    opened = asyncio.Event()
    answers = None if asked is None else {key: accept(name="Ann") for key in asked.asked}
    begun = wire.tool("echo", opened=opened) if asked is None else wire.retry(asked, answers, opened=opened)
    call = asyncio.ensure_future(begun)
    await asyncio.wait_for(opened.wait(), 5)
    when.set()
    answer = await call
    assert not answer.is_json
    return answer


async def called(client: PythonClient, when: asyncio.Event) -> str:
    """The text that the tool comes to; it may speak when the response is a stream."""
    call = asyncio.ensure_future(client.tool("echo"))

    async def streams() -> bool:
        last = client.rounds[-1] if client.rounds else None
        return last is not None and last.method == "tools/call" and last.is_stream

    await until(streams)
    when.set()
    return text_of(await call)


@pytest.mark.requirement("R29")
@pytest.mark.parametrize("questions", [0, 1])
async def test_the_python_client_reads_a_large_result_of_a_long_call(
    gateway: Gateways, server: Scripted, questions: int
) -> None:
    """Design: over 1 MiB only as JSON. A picture that took its time would be lost to this client else."""
    when = asyncio.Event()
    server.on["tools/call"] = saying(LARGE, when, questions=questions)
    served = await gateway(server.url, settings=STREAMS)

    async with PythonClient(served.url) as client:
        assert len(await called(client, when)) == LARGE

    assert client.results("tools/call")[-2:] == ["input_required", "complete"]
    assert len(server.seen("tools/call")) == 1


@pytest.mark.requirement("R29")
async def test_the_python_client_reads_a_large_question_of_a_long_call(
    gateway: Gateways, server: Scripted
) -> None:
    """Ours: a picture for the client's model. It is asked in a round of its own, once."""
    when = asyncio.Event()
    message = {"role": "user", "content": {"type": "text", "text": "x" * LARGE}}

    async def asks(turn: Turn) -> None:
        await turn.stream()
        await when.wait()
        await turn.event(ask(1, "sampling/createMessage", {"messages": [message], "maxTokens": 9}))
        told = await turn.answered(1)
        await turn.event(turn.answer(text_result(str(told and told["result"]["role"]))))
        await turn.finish()

    server.on["tools/call"] = asks
    served = await gateway(server.url, settings=STREAMS)

    async with PythonClient(served.url) as client:
        assert await called(client, when) == "assistant"

    assert client.person.kinds == ["sampling/createMessage"]
    assert client.results("tools/call") == ["input_required", "input_required", "complete"]


async def test_the_next_round_is_asked_nothing_and_answered_at_once_as_json(
    gateway: Gateways, server: Scripted
) -> None:
    when = asyncio.Event()
    server.on["tools/call"] = saying(LARGE, when)
    served = await gateway(server.url, settings=STREAMS)

    async with Wire(served.url) as wire:
        sent_away = await streamed(wire, when)
        assert "inputRequests" not in sent_away.result
        done = await wire.retry(sent_away)

    assert done.is_json
    assert len(done.text) == LARGE


async def test_what_fits_into_an_event_comes_at_once(gateway: Gateways, server: Scripted) -> None:
    when = asyncio.Event()
    server.on["tools/call"] = saying(900_000, when)
    served = await gateway(server.url, settings=STREAMS)

    async with Wire(served.url) as wire:
        assert len((await streamed(wire, when)).text) == 900_000


async def test_where_no_call_can_be_held_any_more_it_comes_on_the_stream(
    gateway: Gateways, server: Scripted
) -> None:
    """Ours: other clients read it. None loses a result for want of room."""
    when = asyncio.Event()
    server.on["prompts/get"] = saying(1, when, questions=1)
    server.on["tools/call"] = saying(LARGE, when)
    served = await gateway(server.url, settings=STREAMS, holds={"max": 1})

    async with Wire(served.url) as wire:
        assert (await wire.request("prompts/get", {"name": "held"})).asked
        assert len((await streamed(wire, when)).text) == LARGE


async def test_a_client_that_was_sent_away_often_gets_it_on_the_stream(
    gateway: Gateways, server: Scripted
) -> None:
    """Ours: clients give up after ten rounds."""
    when = asyncio.Event()
    server.on["tools/call"] = saying(LARGE, when, questions=8)
    served = await gateway(server.url, settings=STREAMS, settle=0)

    async with Wire(served.url) as wire:
        asked = await wire.tool("echo")
        for _ in range(7):
            asked = await wire.retry(asked, {key: accept(name="Ann") for key in asked.asked})
        assert len((await streamed(wire, when, asked)).text) == LARGE
