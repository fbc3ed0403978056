"""What one client of a round hears, and in which order."""

import asyncio
from typing import Any

import pytest

from gateway.eras.notifications import LOG, PROGRESS, RoundFilter
from gateway.errors import (
    CallLost,
    CapabilityMissing,
    GatewayError,
    InvalidParams,
    MethodNotFound,
    Overloaded,
    StateRejected,
    UpstreamLost,
    UpstreamUnauthorized,
)
from gateway.relay import listener as module
from gateway.relay.listener import Listener, Reply
from gateway.telemetry.names import Outcome, Rung
from gateway.wire.jsonrpc import Notification, decode
from tests.support.asking import raw

SOON = 5.0
DONE = Reply(Outcome.COMPLETE, result={"ok": True})


def listening(token: Any = 0, level: str | None = None) -> Listener:
    return Listener(RoundFilter(token, level), rung=Rung.FIRST)


def progress(value: int, **more: Any) -> Notification:
    return Notification(PROGRESS, raw({"progressToken": "hf-1", "progress": value} | more))


async def heard(listener: Listener) -> list[Any]:
    """All that the client is sent, up to the last word."""
    words: list[Any] = []
    while not words or isinstance(words[-1], int):
        word = await listener.next(SOON)
        words.append(decode(word)["params"]["progress"] if isinstance(word, bytes) else word)
    return words


async def test_a_reply_without_notifications_is_the_first_thing_heard() -> None:
    listener = listening()
    listener.finish(DONE)

    assert await listener.next(SOON) is DONE


async def test_notifications_come_in_order_and_the_reply_last() -> None:
    listener = listening()
    for value in (1, 2, 3):
        listener.tell(progress(value))
    listener.finish(DONE)

    assert await heard(listener) == [1, 2, 3, DONE]


@pytest.mark.requirement("R31")
async def test_after_the_last_word_there_are_no_notifications() -> None:
    listener = listening()
    listener.finish(DONE)
    listener.tell(progress(1))

    assert await heard(listener) == [DONE]


async def test_the_first_last_word_counts() -> None:
    listener = listening()
    listener.finish(DONE)
    listener.finish(Reply.of(UpstreamLost("late")))

    assert await listener.next(SOON) is DONE


async def test_a_client_that_waits_is_woken_by_what_it_is_to_hear() -> None:
    listener = listening()
    async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
        waiting = group.create_task(listener.next(60))
        await asyncio.sleep(0)
        listener.tell(progress(1))
    async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
        last = group.create_task(listener.next(60))
        await asyncio.sleep(0)
        listener.finish(DONE)

    first = waiting.result()
    assert isinstance(first, bytes)
    assert decode(first) == {
        "jsonrpc": "2.0",
        "method": PROGRESS,
        "params": {"progressToken": 0, "progress": 1},
    }
    assert last.result() is DONE


async def test_a_silence_ends_with_nothing_when_patience_does() -> None:
    assert await listening().next(0) is None


async def test_a_client_that_stops_waiting_can_wait_again() -> None:
    listener = listening()
    async with asyncio.timeout(SOON):
        waiting = asyncio.ensure_future(listener.next(60))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
    listener.finish(DONE)

    assert await listener.next(SOON) is DONE


@pytest.mark.requirement("R32")
async def test_a_client_hears_what_its_own_request_asked_for() -> None:
    listener = listening(token=None, level="warning")
    listener.tell(progress(1))
    listener.tell(Notification(LOG, raw({"level": "info", "data": "x"})))
    listener.tell(Notification(LOG, raw({"level": "error", "data": "y"})))
    listener.finish(DONE)

    word = await listener.next(SOON)
    assert isinstance(word, bytes)
    assert decode(word)["params"] == {"level": "error", "data": "y"}
    assert await listener.next(SOON) is DONE


async def test_a_slow_reader_misses_the_oldest_notifications_and_never_the_reply() -> None:
    listener = listening()
    for value in range(1000):
        listener.tell(progress(value))
    listener.finish(DONE)

    words = await heard(listener)
    assert words == [*range(1000 - 256, 1000), DONE]


async def test_a_slow_reader_costs_no_more_memory_than_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING_BYTES", 1000)
    listener = listening()
    for value in range(10):
        listener.tell(progress(value, message="x" * 300))
    listener.tell(progress(10, message="x" * 3000))
    listener.finish(DONE)

    assert await heard(listener) == [10, DONE]


async def test_a_notification_that_no_client_could_read_is_left_out() -> None:
    """Python clients give the call up for an event of more than 1 MiB."""
    listener = listening()
    listener.tell(progress(1, message="x" * module.LARGEST_EVENT))
    listener.tell(progress(2))
    listener.finish(DONE)

    assert await heard(listener) == [2, DONE]


# --- clients that leave -------------------------------------------------------------------------------


def test_whoever_drives_the_exchange_hears_of_a_client_that_leaves() -> None:
    gone: list[Listener] = []
    listener = listening()
    listener.left()  # nobody drives it yet
    listener.joined(gone.append)
    listener.left()

    assert gone == [listener]


def test_a_client_that_leaves_with_its_reply_has_not_left() -> None:
    gone: list[Listener] = []
    listener = listening()
    listener.joined(gone.append)
    listener.finish(DONE)
    listener.left()

    assert gone == []


# --- replies --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "outcome", "status", "code"),
    [
        (InvalidParams(detail="no"), Outcome.REFUSED, 400, -32602),
        (StateRejected("expired"), Outcome.REFUSED, 400, -32602),
        (CapabilityMissing({"roots": {}}), Outcome.REFUSED, 400, -32021),
        (MethodNotFound("x"), Outcome.REFUSED, 404, -32601),
        (CallLost("hold_expired"), Outcome.LOST, 200, -31001),
        (UpstreamLost("reset"), Outcome.UPSTREAM_FAILED, 200, -32603),
        (UpstreamUnauthorized(401, "Bearer"), Outcome.UPSTREAM_FAILED, 401, -32600),
        (Overloaded("full"), Outcome.SHED, 503, -32603),
        (GatewayError("bug"), Outcome.INTERNAL, 200, -32603),
    ],
)
def test_each_refusal_or_failure_has_its_outcome_status_and_code(
    error: GatewayError, outcome: Outcome, status: int, code: int
) -> None:
    reply = Reply.of(error)

    assert reply.error is not None
    assert (reply.outcome, reply.status, reply.error.code) == (outcome, status, code)
    assert (reply.result, reply.reason) == (None, error.reason)
    assert reply.headers == error.headers


def test_the_true_cause_is_for_the_log_and_not_for_the_client() -> None:
    reply = Reply.of(StateRejected("tag does not verify"))

    assert reply.detail == "tag does not verify"
    assert reply.error is not None
    assert "tag" not in f"{reply.error.message} {reply.error.data}"
