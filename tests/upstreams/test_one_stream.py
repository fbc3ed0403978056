"""One stream for everything: answers find their request, the rest finds the listener, the end reaches all."""

import asyncio

import pytest

from gateway.errors import UpstreamLost, UpstreamSpokeNonsense
from gateway.upstreams.one_stream import OneStream
from gateway.upstreams.transport import SessionGone
from gateway.wire.jsonrpc import Failure, Message, Notification, Raw, Request, Result

EMPTY = Raw(b"{}")


def keep(into: list[Message]) -> "Deliverer":
    return Deliverer(into)


class Deliverer:
    def __init__(self, into: list[Message]) -> None:
        self.into = into

    def __call__(self, message: Message) -> bool:
        self.into.append(message)
        return True


async def listening(stream: OneStream, into: list[Message]) -> "asyncio.Task[None]":
    opened = asyncio.Event()
    task = asyncio.get_running_loop().create_task(stream.listen(keep(into), opened.set))
    await asyncio.wait_for(opened.wait(), 5)
    return task


async def test_each_answer_goes_to_the_request_that_waits_for_it() -> None:
    stream, one, two = OneStream(), list[Message](), list[Message]()
    first, second = stream.expect("a", keep(one)), stream.expect("b", keep(two))
    stream.hear(Result("b", EMPTY))
    assert (first.done(), second.done()) == (False, True)
    stream.hear(Failure("a", -1, "no", None))
    await asyncio.wait_for(first, 5)
    assert (one, two) == ([Failure("a", -1, "no", None)], [Result("b", EMPTY)])


async def test_an_answer_to_nobody_here_is_noticed() -> None:
    """Behind supergateway all streams have one process, whose every word goes to each of them."""
    stream = OneStream()
    stream.expect("mine", keep([]))
    stream.hear(Result("mine", EMPTY))
    assert not stream.has_overheard
    stream.hear(Result("another's", EMPTY))
    assert stream.has_overheard


async def test_ids_keep_their_type() -> None:
    stream, heard = OneStream(), list[Message]()
    answered = stream.expect("1", keep(heard))
    stream.hear(Result(1, EMPTY))
    assert not answered.done()


async def test_an_error_without_an_id_is_about_the_one_open_request() -> None:
    stream, heard = OneStream(), list[Message]()
    answered = stream.expect("a", keep(heard))
    stream.hear(Failure(None, -32700, "Parse error", None))
    await asyncio.wait_for(answered, 5)
    stream.forget("a")
    both = stream.expect("b", keep(heard)), stream.expect("c", keep(heard))
    stream.hear(Failure(None, -32700, "Parse error", None))
    assert not any(each.done() for each in both), "with two open nobody can say whose it is"


async def test_an_answer_that_nobody_waits_for_is_passed_over() -> None:
    stream, heard = OneStream(), list[Message]()
    task = await listening(stream, heard)
    stream.hear(Result("old", EMPTY))
    stream.end(UpstreamLost())
    with pytest.raises(UpstreamLost):
        await task
    assert heard == []


async def test_what_comes_before_anybody_listens_is_kept_in_order() -> None:
    stream, heard = OneStream(), list[Message]()
    early: list[Message] = [Notification("a", {}), Request(0, "roots/list", {}), Notification("b", {})]
    for message in early:
        stream.hear(message)
    task = await listening(stream, heard)
    stream.hear(Notification("c", {}))
    assert heard == [*early, Notification("c", {})]
    stream.end(UpstreamLost())
    await asyncio.gather(task, return_exceptions=True)


async def test_a_flood_before_anybody_listens_is_bounded() -> None:
    stream, heard = OneStream(), list[Message]()
    for number in range(10_000):
        stream.hear(Notification(str(number), {}))
    task = await listening(stream, heard)
    assert 0 < len(heard) < 1000
    assert heard[-1] == Notification("9999", {})
    stream.end(UpstreamLost())
    await asyncio.gather(task, return_exceptions=True)


async def test_the_end_reaches_everybody_and_the_first_reason_stays() -> None:
    stream = OneStream()
    answered = stream.expect("a", keep([]))
    task = await listening(stream, [])
    stream.end(UpstreamLost("first"))
    stream.end(UpstreamLost("second"))
    for waiting in (answered, task):
        with pytest.raises(UpstreamLost, match="first"):
            await asyncio.wait_for(waiting, 5)


async def test_after_the_end_nothing_can_have_been_sent() -> None:
    """`SessionGone` lets the relay send the call once more, on another session."""
    stream = OneStream()
    stream.end(UpstreamLost("gone"))
    with pytest.raises(SessionGone):
        stream.expect("a", keep([]))
    with pytest.raises(SessionGone):
        stream.check()


async def test_what_nobody_can_read_fails_who_waits_and_nothing_else() -> None:
    stream = OneStream()
    answered = stream.expect("a", keep([]))
    stream.spoil(UpstreamSpokeNonsense("bad"))
    with pytest.raises(UpstreamSpokeNonsense):
        await asyncio.wait_for(answered, 5)
    stream.forget("a")
    again = stream.expect("b", keep([]))
    stream.hear(Result("b", EMPTY))
    await asyncio.wait_for(again, 5)


async def test_a_listener_that_cannot_take_a_message_apart_fails_the_call() -> None:
    stream = OneStream()

    def refuse(_: Message) -> bool:
        raise UpstreamSpokeNonsense("too deep")

    opened = asyncio.Event()
    task = asyncio.get_running_loop().create_task(stream.listen(refuse, opened.set))
    await asyncio.wait_for(opened.wait(), 5)
    answered = stream.expect("a", keep([]))
    stream.hear(Notification("x", {}))
    with pytest.raises(UpstreamSpokeNonsense):
        await asyncio.wait_for(answered, 5)
    stream.end(UpstreamLost())
    await asyncio.gather(task, return_exceptions=True)
