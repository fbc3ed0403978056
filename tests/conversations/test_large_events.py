"""What is larger than the 1 MiB that a Python client reads as one event, where the stream has begun already.

A whole answer as JSON may be of any size. Where it is too late for that, the round ends with a ticket and no
question, and the client's next one gets the answer as JSON.
"""

import asyncio

from tests.support.gateways import Gateways
from tests.support.peers import ts_client
from tests.support.person import MODEL_SAYS
from tests.support.python_client import PythonClient, text_of
from tests.support.scripted import Scripted, Turn, ask, notice, text_result
from tests.support.wire import Wire, sampled

LARGE = "x" * 1_200_000
PICTURE = {"type": "image", "data": "A" * 1_200_000, "mimeType": "image/png"}


async def progressing(turn: Turn) -> None:
    token = turn.message["params"]["_meta"]["progressToken"]
    await turn.stream()
    await turn.event(notice("notifications/progress", progressToken=token, progress=1))


async def screenshot(turn: Turn) -> None:
    """A tool that tells how far it is, and then has much to say."""
    await progressing(turn)
    await turn.event(turn.answer(text_result(LARGE)))
    await turn.finish()


async def test_a_python_client_gets_a_large_result_after_progress(gateway: Gateways) -> None:
    async with Scripted(on={"tools/call": screenshot}) as server:
        served = await gateway(server.url)
        async with PythonClient(served.url) as client:
            done = await client.tool("echo")
        calls = server.seen("tools/call")

    assert text_of(done) == LARGE
    assert client.progress == [(1, None)]
    assert len(calls) == 1, "and the call ran once"


async def test_a_typescript_client_gets_it_too(gateway: Gateways) -> None:
    async with Scripted(on={"tools/call": screenshot}) as server:
        served = await gateway(server.url)
        call = {"method": "tools/call", "name": "echo", "arguments": {}}
        report = await ts_client({"url": served.url, "calls": [call]})

    assert report["results"][0]["result"]["content"][0]["text"] == LARGE


async def test_the_round_that_streamed_ends_with_a_ticket_and_the_next_is_json(gateway: Gateways) -> None:
    """The ticket is as good as any: the same retry again gets the same answer."""
    async with Scripted(on={"tools/call": screenshot}) as server:
        served = await gateway(server.url)
        async with Wire(served.url, capabilities={}) as wire:
            sent_away = await wire.tool("echo", token="t")
            done = await wire.retry(sent_away)
            again = await wire.retry(sent_away)

    assert not sent_away.is_json
    assert [told["params"]["progress"] for told in sent_away.notifications] == [1]
    assert sent_away.result["resultType"] == "input_required"
    assert "inputRequests" not in sent_away.result
    assert done.is_json
    assert done.text == again.text == LARGE


async def test_a_large_result_after_a_long_silence_comes_whole(gateway: Gateways) -> None:
    """What keeps a connection alive begins the stream as well."""
    is_kept_alive = asyncio.Event()

    async def call(turn: Turn) -> None:
        await is_kept_alive.wait()
        await turn.result(text_result(LARGE))

    async with Scripted(on={"tools/call": call}) as server:
        served = await gateway(server.url, settings={"limits": {"keepalive": "30ms"}})
        async with Wire(served.url) as wire:
            sent_away = await wire.tool("echo", opened=is_kept_alive)
            done = await wire.retry(sent_away)

    assert done.text == LARGE


async def test_a_large_question_after_progress_is_asked_in_a_round_of_its_own(gateway: Gateways) -> None:
    """A picture for the client's model to look at."""

    async def call(turn: Turn) -> None:
        await progressing(turn)
        params = {"messages": [{"role": "user", "content": PICTURE}], "maxTokens": 9}
        number = turn.server.number("ask")
        await turn.event(ask(number, "sampling/createMessage", params))
        if (told := await turn.answered(number)) is not None:
            await turn.event(turn.answer(text_result(told["result"]["content"]["text"])))
            await turn.finish()

    async with Scripted(on={"tools/call": call}) as server:
        served = await gateway(server.url)
        async with Wire(served.url) as wire:
            sent_away = await wire.tool("echo", token="t")
            asked = await wire.retry(sent_away)
            done = await wire.retry(asked, {"sampling-1": sampled("a cat")})
        async with PythonClient(served.url) as client:
            seen = await client.tool("echo")

    assert "inputRequests" not in sent_away.result
    assert asked.is_json
    assert asked.asked["sampling-1"]["params"]["messages"][0]["content"] == PICTURE
    assert done.text == "a cat"
    assert text_of(seen) == MODEL_SAYS


async def test_questions_that_are_large_together_are_asked_apart(gateway: Gateways) -> None:
    picture = {**PICTURE, "data": "A" * 600_000}

    async def call(turn: Turn) -> None:
        await progressing(turn)
        params = {"messages": [{"role": "user", "content": picture}], "maxTokens": 9}
        for number in (1, 2):
            await turn.event(ask(number, "sampling/createMessage", params))
        if await turn.answered(1) and await turn.answered(2):
            await turn.event(turn.answer(text_result("seen")))
            await turn.finish()

    async with Scripted(on={"tools/call": call}) as server:
        served = await gateway(server.url)
        async with PythonClient(served.url) as client:
            done = await client.tool("echo")

    assert text_of(done) == "seen"
    assert client.results("tools/call") == ["input_required", "input_required", "complete"]


async def test_a_log_that_no_client_could_read_is_left_out(gateway: Gateways) -> None:
    """It would cost a Python client its call."""

    async def call(turn: Turn) -> None:
        await turn.stream()
        for data in (LARGE, "short"):
            await turn.event(notice("notifications/message", level="error", data=data))
        await turn.event(turn.answer(text_result("done")))
        await turn.finish()

    async with Scripted(on={"tools/call": call}) as server:
        served = await gateway(server.url)
        async with PythonClient(served.url, log_level="debug") as client:
            done = await client.tool("echo")

    assert [record.data for record in client.logs] == ["short"]
    assert text_of(done) == "done"


async def test_where_there_is_no_room_for_one_more_hold_the_result_comes_all_the_same(
    gateway: Gateways,
) -> None:
    """Other clients than Python's read events of any size, and the call has run."""
    async with Scripted(on={"tools/call": screenshot}) as server:
        served = await gateway(server.url, holds={"max": 1})
        async with Wire(served.url) as wire:
            held = await wire.tool("echo", token="t")
            done = await wire.tool("echo", token="u")

    assert held.result["resultType"] == "input_required"
    assert not done.is_json
    assert done.text == LARGE
