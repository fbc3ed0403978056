"""One client that listens: in which order it is told, and how often."""

import asyncio

import pytest

from gateway.eras.subscriptions import UPDATED, Change, Interest
from gateway.relay import subscription as module
from gateway.relay.listener import Reply
from gateway.relay.subscription import Subscription
from gateway.telemetry.names import Outcome
from tests.support.asked import ended, given

TOOLS = Change("notifications/tools/list_changed")
PROMPTS = Change("notifications/prompts/list_changed")
PROMISED = Interest(frozenset({"toolsListChanged"}), ("a:1", "a:2"))
ID = "io.modelcontextprotocol/subscriptionId"
DONE = Reply(Outcome.COMPLETE, result={})


def updated(uri: str) -> Change:
    return Change(UPDATED, uri)


def listening(id_: int | str = 0) -> tuple[Subscription, list[Subscription]]:
    left: list[Subscription] = []
    return Subscription(id_, PROMISED, left.append), left


@pytest.mark.requirement("R39")
@pytest.mark.parametrize("id_", [0, "", "0", 7])
async def test_the_acknowledgement_comes_first_whatever_happened_before(id_: int | str) -> None:
    subscription, _ = listening(id_)
    assert not subscription.is_acknowledged
    subscription.tell(TOOLS)
    subscription.tell_everything()
    assert await subscription.next(0.0) is None
    subscription.promise(PROMISED)
    subscription.tell(TOOLS)

    first = await given(subscription)
    second = await given(subscription)

    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"] == {"_meta": {ID: id_}, "notifications": PROMISED.as_filter()}
    assert (second["method"], second["params"]) == (TOOLS.method, {"_meta": {ID: id_}})
    assert await subscription.next(0.0) is None, "what was before the promise is not told"


async def test_a_client_that_waits_is_woken() -> None:
    subscription, _ = listening()
    waiting = asyncio.ensure_future(given(subscription))
    await asyncio.sleep(0)
    subscription.promise(PROMISED)
    assert (await waiting)["method"] == "notifications/subscriptions/acknowledged"
    waiting = asyncio.ensure_future(given(subscription))
    await asyncio.sleep(0)
    subscription.tell(updated("a:1"))
    assert (await waiting)["params"]["uri"] == "a:1"


async def test_one_change_that_many_sessions_tell_of_is_told_once() -> None:
    subscription, _ = listening()
    subscription.promise(PROMISED)
    await given(subscription)
    for _ in range(5):
        subscription.tell(TOOLS)
        subscription.tell(updated("a:1"))
        subscription.tell(PROMPTS)

    told = [await given(subscription) for _ in range(2)]

    assert [message["method"] for message in told] == [TOOLS.method, UPDATED]
    assert await subscription.next(0.0) is None


async def test_a_change_after_one_was_taken_is_told_again() -> None:
    """Ours: the client may have read the list between the two."""
    subscription, _ = listening()
    subscription.promise(PROMISED)
    await given(subscription)
    for _ in range(3):
        subscription.tell(TOOLS)
        assert (await given(subscription))["method"] == TOOLS.method


async def test_a_slow_reader_costs_no_more_than_it_was_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GATHER_SECONDS", 0.0)
    subscription, _ = listening()
    subscription.promise(PROMISED)
    for _ in range(1000):
        subscription.tell_everything()
    await asyncio.sleep(0)

    told = [await given(subscription) for _ in range(4)]

    assert [message["params"].get("uri") for message in told[1:]] == [None, "a:1", "a:2"]
    assert await subscription.next(0.0) is None


@pytest.mark.requirement("R41")
async def test_what_is_known_is_told_before_the_last_word() -> None:
    subscription, _ = listening()
    subscription.promise(PROMISED)
    subscription.tell(TOOLS)
    subscription.finish(DONE)
    subscription.tell(updated("a:1"))

    assert (await given(subscription))["method"] == "notifications/subscriptions/acknowledged"
    assert (await given(subscription))["method"] == TOOLS.method
    assert await ended(subscription) is DONE
    assert await ended(subscription) is DONE


async def test_leaving_is_told_unless_all_was_said() -> None:
    subscription, left = listening()
    subscription.promise(PROMISED)
    subscription.tell(TOOLS)
    subscription.left()
    assert left == [subscription]
    other, left = listening()
    other.finish(DONE)
    other.left()
    assert left == []
