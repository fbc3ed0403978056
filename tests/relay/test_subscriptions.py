"""All who listen: what they share, what they are promised, how many there may be, and how it ends for each."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.eras.subscriptions import change_of
from gateway.errors import InvalidParams, Overloaded, UpstreamUnauthorized, UpstreamUnreachable
from gateway.relay import standing
from gateway.relay.place import Ids
from gateway.relay.request import ClientRequest, Principal
from gateway.relay.subscription import Subscription
from gateway.relay.subscriptions import Subscriptions
from gateway.settings.upstream import Subscriptions as Limits
from gateway.telemetry.logs import get_logger
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import Outcome
from gateway.upstreams.pool import Caller
from gateway.wire.jsonrpc import Notification
from tests.support.asked import ANN, BEN, NOBODY, ended, given, request
from tests.support.channels import silent
from tests.support.lines import FakeLine, about, lose, refused
from tests.support.waiting import turns, until

TOOLS = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"
ID = "io.modelcontextprotocol/subscriptionId"
INFO = {"name": "fake", "version": "1"}


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "_PAUSES", (0.001,))


class Hub(Subscriptions):
    """With the means to see and to speak."""

    def __init__(self, line: FakeLine, limits: dict[str, Any]) -> None:
        self.line = line
        self.metrics = Metrics(version="1", upstreams=["up"])
        super().__init__(
            "up",
            Limits.model_validate({"idle": 0, **limits}),
            line,
            ids=Ids("test"),
            metrics=self.metrics,
            log=get_logger(),
            server_info=lambda: INFO,
        )
        line.hears = self._hears

    def _hears(self, caller: Caller, notification: Notification) -> None:
        change = change_of(notification)
        if change is not None:
            self.hear(caller, change)

    def open(self) -> float:
        found = self.metrics.registry.get_sample_value("holdfast_subscriptions_open", {"upstream": "up"})
        assert found is not None
        return found


@asynccontextmanager
async def hub(line: FakeLine | None = None, **limits: Any) -> AsyncIterator[Hub]:
    made = Hub(line or FakeLine(), limits)
    try:
        yield made
    finally:
        await made.close()
    assert made.open() == 0


def wanting(by: Principal = ANN, id_: int | str = 1, **notifications: Any) -> ClientRequest:
    return request("subscriptions/listen", by, id_, notifications=notifications)


def tools(by: Principal = ANN, id_: int | str = 1) -> ClientRequest:
    return wanting(by, id_, toolsListChanged=True)


async def honoured(subscription: Subscription) -> dict[str, Any]:
    first = await given(subscription)
    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"]["_meta"] == {ID: subscription.id}
    found: dict[str, Any] = first["params"]["notifications"]
    return found


def notice(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


# --- what is promised --------------------------------------------------------------------------


@pytest.mark.requirement("R39")
async def test_what_the_server_does_not_tell_is_not_promised() -> None:
    line = FakeLine({"tools": {"listChanged": True}, "prompts": {}, "resources": {"subscribe": True}})
    async with hub(line) as subscriptions:
        everything = wanting(
            toolsListChanged=True,
            promptsListChanged=True,
            resourcesListChanged=True,
            resourceSubscriptions=["a:1"],
        )
        assert await honoured(subscriptions.listen(everything)) == {
            "toolsListChanged": True,
            "resourceSubscriptions": ["a:1"],
        }


@pytest.mark.requirement("R39")
async def test_a_resource_that_the_server_refuses_is_not_promised() -> None:
    line = FakeLine()

    async def choose(message: dict[str, Any], channel: Any) -> Any:
        return await refused(message, channel) if message["params"]["uri"] == "a:2" else {}

    line.on["resources/subscribe"] = choose
    async with hub(line) as subscriptions:
        listening = subscriptions.listen(wanting(resourceSubscriptions=["a:1", "a:2", "a:3"]))
        assert await honoured(listening) == {"resourceSubscriptions": ["a:1", "a:3"]}


async def test_who_wants_nothing_gets_nothing_and_costs_nothing() -> None:
    async with hub() as subscriptions:
        assert await honoured(subscriptions.listen(wanting())) == {}
        await turns()
        assert subscriptions.line.tries == 0


async def test_who_will_not_hear_anything_keeps_no_session_up() -> None:
    line = FakeLine()
    line.has_stream = False
    async with hub(line) as subscriptions:
        assert await honoured(subscriptions.listen(tools())) == {}
        await until(lambda: _soon(line.given_back))


async def _soon(value: Any) -> Any:
    return value


async def test_a_server_that_cannot_be_reached_is_an_answer() -> None:
    line = FakeLine()
    line.failure = UpstreamUnreachable("no")
    async with hub(line) as subscriptions:
        reply = await ended(subscriptions.listen(tools()))
        assert (reply.outcome, reply.reason) == (Outcome.UPSTREAM_FAILED, "upstream_unreachable")
        line.failure = None
        assert await honoured(subscriptions.listen(tools())) == {"toolsListChanged": True}


@pytest.mark.parametrize(
    "notifications", [None, {"toolsListChanged": 1}, {"resourceSubscriptions": ["a:1", "a:2"]}]
)
async def test_a_malformed_request_is_refused_at_once(notifications: Any) -> None:
    async with hub(resources=1) as subscriptions:
        with pytest.raises(InvalidParams):
            subscriptions.listen(request("subscriptions/listen", notifications=notifications))


# --- who hears what ----------------------------------------------------------------------------


@pytest.mark.requirement("R42")
async def test_the_listeners_of_one_caller_share_one_session_and_each_hears_its_own() -> None:
    """Issue: one standing upstream session per principal shared by its listeners."""
    async with hub() as subscriptions:
        first = subscriptions.listen(wanting(id_=1, toolsListChanged=True, resourceSubscriptions=["a:1"]))
        second = subscriptions.listen(wanting(id_="1", resourceSubscriptions=["a:1", "a:2"]))
        for listening in (first, second):
            await honoured(listening)
        channel = await subscriptions.line.opened()
        assert sorted(about(channel, "resources/subscribe")) == ["a:1", "a:2"]

        channel.say(notice(TOOLS), standing=True)
        channel.say(notice(UPDATED, uri="a:2"), standing=True)
        channel.say(notice(UPDATED, uri="a:1"), standing=True)

        told = {
            id(listening): [
                (message["params"].get("uri"), message["params"]["_meta"][ID])
                for message in (await given(listening), await given(listening))
            ]
            for listening in (first, second)
        }
        assert told == {id(first): [(None, 1), ("a:1", 1)], id(second): [("a:2", "1"), ("a:1", "1")]}
        assert subscriptions.line.tries == 1

        second.left()
        await until(lambda: _soon(about(channel, "resources/unsubscribe") == ["a:2"]))


async def test_principals_do_not_hear_each_other() -> None:
    async with hub() as subscriptions:
        anns, bens = subscriptions.listen(tools(ANN)), subscriptions.listen(tools(BEN))
        await honoured(anns)
        await honoured(bens)
        channel = await subscriptions.line.opened(2)
        channel.say(notice(TOOLS), standing=True)
        heard = [listening for listening in (anns, bens) if await listening.next(0.2) is not None]
        assert len(heard) == 1
        assert subscriptions.line.tries == 2


async def test_what_another_session_of_the_principal_was_told_is_told_too() -> None:
    """Ours: the Python SDK tells only the session whose call changed the list."""
    async with hub() as subscriptions:
        listening = subscriptions.listen(tools())
        await honoured(listening)
        change = change_of(Notification(TOOLS, {}))
        assert change is not None
        subscriptions.hear(tools().caller(), change)
        assert (await given(listening))["method"] == TOOLS


async def test_a_server_that_was_away_is_followed_by_everything() -> None:
    async with hub() as subscriptions:
        listening = subscriptions.listen(wanting(toolsListChanged=True, resourceSubscriptions=["a:1"]))
        await honoured(listening)
        lose(await subscriptions.line.opened())
        told = [await given(listening), await given(listening)]
        assert [message["method"] for message in told] == [TOOLS, UPDATED]
        assert about(await subscriptions.line.opened(2), "resources/subscribe") == ["a:1"]


# --- ends --------------------------------------------------------------------------------------


@pytest.mark.requirement("R41")
async def test_the_end_of_the_gateway_is_a_proper_goodbye() -> None:
    async with hub() as subscriptions:
        listening = [subscriptions.listen(tools(id_=number)) for number in (0, "x")]
        for each in listening:
            await honoured(each)
        subscriptions.end()
        for each in listening:
            reply = await ended(each)
            assert reply.outcome is Outcome.COMPLETE
            assert reply.result == {
                "resultType": "complete",
                "_meta": {ID: each.id, "io.modelcontextprotocol/serverInfo": INFO},
            }
        with pytest.raises(Overloaded):
            subscriptions.listen(tools())


async def test_who_was_promised_nothing_yet_is_sent_elsewhere() -> None:
    line = FakeLine()
    line.gate.clear()
    async with hub(line) as subscriptions:
        listening = subscriptions.listen(tools())
        await turns()
        subscriptions.end()
        assert (await ended(listening)).status == 503


async def test_credentials_that_ran_out_end_it_with_the_servers_word() -> None:
    async with hub() as subscriptions:
        listening = subscriptions.listen(tools())
        await honoured(listening)
        subscriptions.line.failure = UpstreamUnauthorized(401, "Bearer")
        lose(await subscriptions.line.opened())
        reply = await ended(listening)
        assert (reply.reason, reply.status) == ("upstream_unauthorized", 401)


@pytest.mark.requirement("R42")
async def test_the_session_goes_a_while_after_the_last_listener() -> None:
    async with hub(idle=0.05) as subscriptions:
        for _ in range(2):
            listening = subscriptions.listen(tools())
            await honoured(listening)
            listening.left()
            await turns()
            assert subscriptions.line.given_back == [], "the next one comes in time"
        await until(lambda: _soon(subscriptions.line.given_back))
        assert subscriptions.line.tries == 1


@pytest.mark.parametrize("phase", ["opening", "subscribing"])
async def test_who_leaves_before_the_promise_leaves_nothing_behind(phase: str) -> None:
    line = FakeLine()
    if phase == "opening":
        line.gate.clear()
    line.on["resources/subscribe"] = silent
    async with hub(line) as subscriptions:
        leaving = subscriptions.listen(wanting(resourceSubscriptions=["a:1"]))
        await turns()
        leaving.left()
        line.gate.set()
        assert subscriptions.open() == 0
        await until(lambda: _soon(len(line.given_back) == len(line.channels)))


async def test_a_stream_may_have_a_longest_time() -> None:
    async with hub(lifetime=0.05) as subscriptions:
        listening = subscriptions.listen(tools())
        await honoured(listening)
        assert (await ended(listening)).outcome is Outcome.COMPLETE
        listening.left()
        assert subscriptions.open() == 0


# --- limits ------------------------------------------------------------------------------------


async def test_there_are_no_more_than_configured() -> None:
    async with hub(max=2) as subscriptions:
        first = subscriptions.listen(tools(ANN))
        subscriptions.listen(tools(BEN))
        assert subscriptions.open() == 2
        with pytest.raises(Overloaded):
            subscriptions.listen(tools(NOBODY))
        first.left()
        subscriptions.listen(tools(NOBODY))


async def test_one_principal_cannot_take_all() -> None:
    async with hub(per_principal=1) as subscriptions:
        first = subscriptions.listen(tools(ANN))
        with pytest.raises(Overloaded):
            subscriptions.listen(tools(ANN))
        subscriptions.listen(tools(BEN))
        first.left()
        subscriptions.listen(tools(ANN))


async def test_who_is_not_authenticated_is_not_one_principal() -> None:
    async with hub(per_principal=1) as subscriptions:
        for _ in range(3):
            subscriptions.listen(tools(NOBODY))
        assert subscriptions.open() == 3
