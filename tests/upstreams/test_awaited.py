"""Whose answer it is that came on another stream than its request's own; and that nothing else ends the waiting."""

import asyncio
from typing import Any

import pytest

from gateway.errors import UpstreamSpokeNonsense
from gateway.upstreams.session import Session, open_session
from gateway.upstreams.transport import OnlyTaken
from gateway.wire.jsonrpc import Failure, Result, decode
from tests.support.channels import FakeChannel, Json, silent
from tests.support.waiting import turns


async def only_taken(_: Json, channel: FakeChannel) -> None:
    raise OnlyTaken("202")


async def opened(channel: FakeChannel) -> Session:
    return await open_session(
        channel,
        request_id="i1",
        client_info=None,
        capabilities={},
        on_early_ask=lambda *_: None,
        on_end=lambda _: None,
    )


async def called(session: Session, channel: FakeChannel) -> "asyncio.Task[Result | Failure]":
    calling = asyncio.ensure_future(session.call("r1", "tools/call", {}))
    await turns()
    assert "tools/call" in channel.methods()
    return calling


def answer(id_: Any = "r1") -> Json:
    return {"jsonrpc": "2.0", "id": id_, "result": {"content": []}}


@pytest.mark.parametrize("own_stream", [silent, only_taken])
@pytest.mark.parametrize("body", [{"result": {}}, {"error": {"code": -32000, "message": "no"}}])
async def test_an_answer_on_the_standing_stream_is_the_answer(own_stream: Any, body: Json) -> None:
    """SDK clients of the legacy era go by the id alone, whether the request's own stream is open or there is none."""
    channel = FakeChannel()
    session = await opened(channel)
    channel.on["tools/call"] = own_stream
    calling = await called(session, channel)

    channel.say({"jsonrpc": "2.0", "id": "r1", **body}, standing=True)

    async with asyncio.timeout(5):
        assert isinstance(await calling, Result if "result" in body else Failure)
    assert not session.is_dead
    await session.close()


async def test_an_answer_to_something_else_is_not_the_answer() -> None:
    """Ours: ids of another session, or of nobody, and errors without one, must not end a call."""
    channel = FakeChannel()
    session = await opened(channel)
    channel.on["tools/call"] = silent
    calling = await called(session, channel)

    channel.say(answer("r2"), standing=True)
    channel.say({"jsonrpc": "2.0", "id": None, "error": {"code": 0, "message": "?"}}, standing=True)
    channel.say(answer(), standing=True)
    channel.say({**answer(), "result": {"second": True}}, standing=True)

    async with asyncio.timeout(5):
        told = await calling
    assert isinstance(told, Result)
    assert decode(told.result) == {"content": []}
    await session.close()


async def test_a_request_that_was_only_taken_where_there_is_no_other_stream_will_not_be_answered() -> None:
    """Ours: nothing could bring the answer, so nobody is kept waiting for it."""
    channel = FakeChannel()
    session = await opened(channel)
    channel.on["tools/call"] = only_taken
    channel.end.set()
    await turns()
    assert not session.is_standing

    with pytest.raises(UpstreamSpokeNonsense):
        await session.call("r1", "tools/call", {})
    await session.close()


async def test_whoever_is_cancelled_as_the_answer_is_overheard_is_cancelled() -> None:
    """Ours: a client that left, or a time that is over, must not be taken for the answer that came beside it."""
    channel = FakeChannel()
    session = await opened(channel)
    channel.on["tools/call"] = silent
    calling = await called(session, channel)

    channel.say(answer(), standing=True)
    calling.cancel()

    with pytest.raises(asyncio.CancelledError):
        await calling
    await session.close()
