"""Who hears a running round, and when what comes next is too much for a stream."""

import pytest

from gateway.eras.notifications import PROGRESS, RoundFilter
from gateway.relay.audience import Audience
from gateway.relay.listener import LARGEST_EVENT, Listener, Reply
from gateway.telemetry.names import Outcome, Rung
from gateway.wire.jsonrpc import Notification
from tests.support.asking import raw

STEP = Notification(PROGRESS, raw({"progressToken": "hf-1", "progress": 1}))
DONE = Reply(Outcome.COMPLETE, result={})
LARGE = LARGEST_EVENT + 1


def listening(audience: Audience) -> Listener:
    listener = Listener(RoundFilter("t", "debug"), rung=Rung.FIRST)
    audience.admit(listener)
    return listener


async def test_all_hear_the_same_and_then_nobody_listens() -> None:
    audience = Audience()
    listeners = [listening(audience), listening(audience)]
    assert audience

    audience.tell(STEP)
    audience.finish(DONE)

    assert not audience
    for listener in listeners:
        assert isinstance(await listener.next(0), bytes)
        assert await listener.next(0) is DONE


def test_the_last_one_to_leave_is_noticed_once() -> None:
    audience = Audience()
    first, last = listening(audience), listening(audience)

    assert [audience.leave(one) for one in (first, first, last, last)] == [False, False, True, False]


@pytest.mark.parametrize("is_told", [True, False])
async def test_a_whole_answer_may_be_of_any_size_until_the_stream_has_begun(is_told: bool) -> None:  # noqa: FBT001
    audience = Audience()
    listener = listening(audience)
    assert audience.can_read(LARGE)

    if is_told:
        audience.tell(STEP)
    else:
        assert await listener.next(0) is None, "a silence, in which the stream is kept alive"

    assert not audience.can_read(LARGE)
    assert audience.can_read(LARGE // 2)


async def test_a_stream_stays_one_after_all_of_it_was_read() -> None:
    audience = Audience()
    listener = listening(audience)
    audience.tell(STEP)
    await listener.next(0)

    assert not audience.can_read(LARGE)


def test_nobody_refuses_anything_where_nobody_listens() -> None:
    assert Audience().can_read(LARGE)
