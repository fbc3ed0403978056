"""What one response stream of a bridged session says, and when."""

import asyncio

from gateway.relay.legacy_streams import LegacyStream, encoded
from gateway.wire.jsonrpc import Notification, Raw, Request, Result, parse

ANSWER = Result(1, Raw(b'{"a": 1}'))
NOTICE = Notification("notifications/x", {})


async def test_an_answer_that_comes_alone_is_all_there_is() -> None:
    stream = LegacyStream()
    waiting = asyncio.get_running_loop().create_task(stream.first())
    await asyncio.sleep(0)
    stream.put(ANSWER)

    async with asyncio.timeout(5):
        assert await waiting == ANSWER


async def test_what_comes_before_the_answer_makes_it_a_stream() -> None:
    stream = LegacyStream()
    stream.put(NOTICE)
    stream.put(ANSWER)
    stream.end()

    assert await stream.first() is None
    events = [event async for event in stream.events()]
    assert events[0] == b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/x"}\n\n'
    assert events[1] == b'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{"a": 1}}\n\n'
    assert len(events) == 2


async def test_a_reader_that_is_far_behind_loses_the_oldest_and_never_the_answer() -> None:
    stream = LegacyStream()
    for _ in range(5000):
        stream.put(NOTICE)
    stream.put(ANSWER)
    stream.end()

    events = [event async for event in stream.events()]
    assert len(events) == 1024
    assert b'"result"' in events[-1]


def test_messages_are_written_as_they_were_read() -> None:
    for message in (Request("0", "roots/list", {}), Request(0, "m", {"p": Raw(b"[ 1]")}), NOTICE, ANSWER):
        assert parse(encoded(message)) == message
    failure = parse(b'{"jsonrpc":"2.0","id":0,"error":{"code":-1,"message":"no","data":{"x": 1}}}')
    assert parse(encoded(failure)) == failure
