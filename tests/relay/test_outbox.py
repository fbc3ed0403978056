"""What is sent beside the call: in order, one after the other, whatever goes wrong."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from gateway.errors import GatewayError, UpstreamLost, UpstreamTimedOut
from gateway.relay import outbox as module
from gateway.relay.outbox import Outbox
from gateway.upstreams.background import Background

Send = Callable[[], Awaitable[None]]


@pytest.fixture
async def background() -> AsyncIterator[Background]:
    background = Background()
    yield background
    await background.close()


def saying(said: list[str], word: str, *, after: asyncio.Event | None = None) -> Send:
    async def send() -> None:
        if after is not None:
            await after.wait()
        said.append(word)

    return send


def ignored(_: GatewayError) -> None:
    """Whoever wants to know of failures, not here."""


def failing(error: Exception) -> Send:
    async def send() -> None:
        raise error

    return send


async def test_each_is_sent_after_the_one_before_was_taken(background: Background) -> None:
    said: list[str] = []
    taken = asyncio.Event()
    outbox = Outbox(background)
    outbox.put(saying(said, "first", after=taken), ignored)
    outbox.put(saying(said, "second"), ignored)
    assert not outbox.is_empty

    taken.set()
    await background.settle(5)
    assert said == ["first", "second"]


async def test_it_is_empty_before_and_after_and_can_be_used_again(background: Background) -> None:
    said: list[str] = []
    outbox = Outbox(background)
    seen = [outbox.is_empty]
    for word in ("first", "second"):
        outbox.put(saying(said, word), ignored)
        seen.append(outbox.is_empty)
        await background.settle(5)
        seen.append(outbox.is_empty)

    assert seen == [True, False, True, False, True]
    assert said == ["first", "second"]


async def test_a_failure_is_told_and_the_rest_goes_on(background: Background) -> None:
    said: list[str] = []
    failures: list[GatewayError] = []
    loss = UpstreamLost("reset")
    outbox = Outbox(background)
    outbox.put(failing(loss), failures.append)
    outbox.put(saying(said, "after"), ignored)
    await background.settle(5)

    assert (failures, said) == ([loss], ["after"])
    assert outbox.is_empty


async def test_what_is_put_in_because_of_a_failure_is_sent_too(background: Background) -> None:
    said: list[str] = []
    outbox = Outbox(background)
    outbox.put(failing(UpstreamLost("reset")), lambda _: outbox.put(saying(said, "cancel"), ignored))
    outbox.put(saying(said, "after"), ignored)
    await background.settle(5)

    assert said == ["after", "cancel"]


async def test_a_server_that_does_not_take_it_is_not_waited_for_for_ever(
    background: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SEND_SECONDS", 0.01)
    said: list[str] = []
    failures: list[GatewayError] = []
    outbox = Outbox(background)
    outbox.put(saying(said, "never taken", after=asyncio.Event()), failures.append)
    outbox.put(saying(said, "after"), ignored)
    await background.settle(5)

    assert [type(failure) for failure in failures] == [UpstreamTimedOut]
    assert said == ["after"]


async def test_an_end_of_everything_ends_it_too(background: Background) -> None:
    said: list[str] = []
    outbox = Outbox(background)
    outbox.put(saying(said, "never", after=asyncio.Event()), ignored)
    outbox.put(saying(said, "nor this"), ignored)
    await asyncio.sleep(0)
    await background.close()

    assert said == []
    assert outbox.is_empty


async def test_what_may_not_be_said_any_more_is_dropped(background: Background) -> None:
    """Ours: a process that was frozen asks first whose the exchange is; what it meant to say is then too late."""
    said: list[str] = []
    is_ours = [True, False]

    async def may_send() -> bool:
        return is_ours.pop(0)

    outbox = Outbox(background)
    outbox.put(saying(said, "ours"), ignored, may_send)
    outbox.put(saying(said, "theirs"), ignored, may_send)
    await background.settle(5)

    assert said == ["ours"]
