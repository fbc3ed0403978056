"""`subscriptions/listen` over the wire, in front of a server that does what the test says."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gateway.relay import standing
from gateway.upstreams import streamable_http
from tests.support.gateways import Gateways
from tests.support.lines import TELLS
from tests.support.listening import PROMPTS, RESOURCES, TOOLS, UPDATED, listening, refused
from tests.support.scripted import Scripted, Turn, ask, introduction, notice
from tests.support.waiting import until
from tests.support.wire import Wire

SUBSCRIBE, UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"
EVERYTHING: dict[str, Any] = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["a:1"],
}


class Telling(Scripted):
    """Declares that it tells of changes, and takes every subscription."""

    capabilities: dict[str, Any] = TELLS

    def __post_init__(self) -> None:
        super().__post_init__()
        self.on["initialize"] = self._introduce
        self.on[SUBSCRIBE] = self.on[UNSUBSCRIBE] = _empty
        self.on["ping"] = _empty

    async def _introduce(self, turn: Turn) -> None:
        result = {**introduction(self), "capabilities": self.capabilities}
        await turn.result(result, self.new_session())

    async def tell(self, method: str, **params: Any) -> None:
        """Tell all sessions, as a server does whose lists are the same for all."""
        for session in list(self.standing):
            await self.say(notice(method, **params), session)

    def about(self, method: str) -> list[str]:
        """The resources that requests of this method named."""
        return [turn.message["params"]["uri"] for turn in self.seen(method)]


async def _empty(turn: Turn) -> None:
    await turn.result({})


@pytest.fixture
async def server() -> AsyncIterator[Telling]:
    async with Telling() as telling:
        yield telling


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "_PAUSES", (0.01, 0.05))
    monkeypatch.setattr(streamable_http, "_RECONNECT_SECONDS", (0.01, 0.02))


# --- what is promised and heard ----------------------------------------------------------------


@pytest.mark.requirement("R39", "R42")
@pytest.mark.parametrize("id_", [0, 1, "", "listen-1", 2**53 + 1])
async def test_each_message_names_its_subscription_and_the_first_says_what_is_honoured(
    id_: int | str, server: Telling, gateway: Gateways
) -> None:
    served = await gateway(server.url)
    async with Wire(served.url) as wire, listening(wire, id_, **EVERYTHING) as stream:
        assert await stream.honoured() == EVERYTHING
        for method, params in ((TOOLS, {}), (PROMPTS, {}), (RESOURCES, {}), (UPDATED, {"uri": "a:1"})):
            await server.tell(method, **params)
            assert await stream.heard() == [(method, params.get("uri"))], (
                "once, however many sessions told it"
            )


@pytest.mark.requirement("R40")
async def test_nothing_comes_that_was_not_asked_for(server: Telling, gateway: Gateways) -> None:
    served = await gateway(server.url)
    async with Wire(served.url) as wire, listening(wire, promptsListChanged=True) as stream:
        assert await stream.honoured() == {"promptsListChanged": True}
        await server.tell(TOOLS)
        await server.tell(UPDATED, uri="a:1")
        await server.tell("notifications/message", level="error", data="x")
        await server.tell("notifications/progress", progressToken=1, progress=1)
        await server.tell("notifications/cancelled", requestId=1)
        await server.tell(PROMPTS)
        assert await stream.heard() == [(PROMPTS, None)]


@pytest.mark.requirement("R25")
async def test_what_is_promised_in_discovery_is_what_is_honoured(server: Telling, gateway: Gateways) -> None:
    server.capabilities = {"tools": {"listChanged": True}, "prompts": {}}
    served = await gateway(server.url)
    async with Wire(served.url) as wire:
        known = (await wire.request("server/discover")).result
        assert known["capabilities"] == {"tools": {"listChanged": True}, "prompts": {}}
        async with listening(wire, **EVERYTHING) as stream:
            assert await stream.honoured() == {"toolsListChanged": True}


@pytest.mark.requirement("R25")
async def test_a_server_that_cannot_be_heard_promises_nothing(server: Telling, gateway: Gateways) -> None:
    """Ours: it says `listChanged`, but has no stream on which to say that anything did."""
    server.on["GET"] = _no_stream
    served = await gateway(server.url)
    async with Wire(served.url) as wire:
        known = (await wire.request("server/discover")).result
        assert known["capabilities"] == {"tools": {}, "prompts": {}, "resources": {}}
        async with listening(wire, **EVERYTHING) as stream:
            assert await stream.honoured() == {}


async def _no_stream(turn: Turn) -> None:
    await turn.reply(405)


@pytest.mark.requirement("R39")
async def test_a_resource_that_the_server_does_not_have_is_not_promised(
    server: Telling, gateway: Gateways
) -> None:
    async def choose(turn: Turn) -> None:
        if turn.message["params"]["uri"] == "a:1":
            await turn.result({})
        else:
            await turn.json({"jsonrpc": "2.0", "id": turn.id, "error": {"code": -32002, "message": "no"}})

    server.on[SUBSCRIBE] = choose
    served = await gateway(server.url)
    async with (
        Wire(served.url) as wire,
        listening(wire, resourceSubscriptions=["a:1", "a:2"]) as stream,
    ):
        assert await stream.honoured() == {"resourceSubscriptions": ["a:1"]}


async def test_python_servers_never_declare_subscriptions_and_have_them_all_the_same(
    server: Telling, gateway: Gateways
) -> None:
    """LEGACY: the Python SDK hard-codes `subscribe: false` (1.12, 1.26 and 1.30)."""
    server.capabilities = {"resources": {"subscribe": False, "listChanged": False}}
    served = await gateway(server.url)
    async with Wire(served.url) as wire, listening(wire, **EVERYTHING) as stream:
        assert await stream.honoured() == {"resourceSubscriptions": ["a:1"]}


@pytest.mark.requirement("R42")
async def test_listeners_of_a_caller_share_a_session_and_the_last_one_out_unsubscribes(
    server: Telling, gateway: Gateways
) -> None:
    served = await gateway(server.url, subscriptions={"idle": "100ms"})
    async with Wire(served.url) as wire:
        async with listening(wire, 1, resourceSubscriptions=["a:1", "a:2"]) as first:
            await first.honoured()
            async with listening(wire, "1", resourceSubscriptions=["a:1"]) as second:
                await second.honoured()
                await server.tell(UPDATED, uri="a:1")
                assert await first.heard() == await second.heard() == [(UPDATED, "a:1")]
                assert sorted(server.about(SUBSCRIBE)) == ["a:1", "a:2"]
                assert len({turn.session for turn in server.seen(SUBSCRIBE)}) == 1
            await server.tell(UPDATED, uri="a:2")
            assert await first.heard() == [(UPDATED, "a:2")]
            assert server.about(UNSUBSCRIBE) == []
        await server.wait(UNSUBSCRIBE, 2)
        assert sorted(server.about(UNSUBSCRIBE)) == ["a:1", "a:2"]
        (session,) = {turn.session for turn in server.seen(SUBSCRIBE)}
        await server.wait_until(lambda: session in {turn.session for turn in server.seen("DELETE")})


async def test_a_silent_stream_is_kept_alive(server: Telling, gateway: Gateways) -> None:
    served = await gateway(server.url, settings={"limits": {"keepalive": "20ms"}})
    async with Wire(served.url) as wire, listening(wire, toolsListChanged=True) as stream:
        await stream.honoured()
        await stream.commented(stream.comments + 3)


async def test_who_must_wait_for_the_promise_is_kept_alive_too(server: Telling, gateway: Gateways) -> None:
    may_answer = asyncio.Event()

    async def slowly(turn: Turn) -> None:
        await may_answer.wait()
        await turn.result({})

    server.on[SUBSCRIBE] = slowly
    served = await gateway(server.url, settings={"limits": {"keepalive": "20ms"}})
    async with Wire(served.url) as wire, listening(wire, resourceSubscriptions=["a:1"]) as stream:
        await stream.commented(2)
        may_answer.set()
        assert await stream.honoured() == {"resourceSubscriptions": ["a:1"]}


# --- questions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["elicitation/create", "sampling/createMessage", "roots/list"])
async def test_what_the_server_asks_there_reaches_no_client(
    method: str, server: Telling, gateway: Gateways
) -> None:
    """Ours: it belongs to no call, so nobody could answer it."""
    served = await gateway(server.url)
    async with Wire(served.url) as wire, listening(wire, **EVERYTHING) as stream:
        await stream.honoured()
        session = server.seen(SUBSCRIBE)[0].session
        await server.say(ask("q", method, None if method == "elicitation/create" else {}), session)
        answer = await server.wait_for_answer("q")
        assert answer.get("result", {"action": "cancel"}) == {"action": "cancel"}
        await server.tell(TOOLS)
        assert await stream.heard() == [(TOOLS, None)]


# --- servers that go away ------------------------------------------------------------------------


async def test_after_a_restart_of_the_server_everything_may_have_changed(
    server: Telling, gateway: Gateways
) -> None:
    served = await gateway(server.url)
    async with Wire(served.url) as wire, listening(wire, **EVERYTHING) as stream:
        await stream.honoured()
        await server.stop()
        await server.start()
        assert await stream.heard(4) == [(TOOLS, None), (PROMPTS, None), (RESOURCES, None), (UPDATED, "a:1")]
        assert server.about(SUBSCRIBE) == ["a:1", "a:1"]
        await server.tell(UPDATED, uri="a:1")
        assert await stream.heard() == [(UPDATED, "a:1")]


async def test_after_an_interruption_of_the_stream_too(server: Telling, gateway: Gateways) -> None:
    """A server without an event store forgets what it said while nobody listened."""
    served = await gateway(server.url)
    async with Wire(served.url) as wire, listening(wire, toolsListChanged=True) as stream:
        await stream.honoured()
        for session in list(server.standing):
            await server.hang_up_standing(session)
        assert await stream.heard() == [(TOOLS, None)]


async def test_a_server_that_forgot_the_session_is_found_out(
    server: Telling, gateway: Gateways, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "_PING_SECONDS", 0.05)
    served = await gateway(server.url)
    async with Wire(served.url) as wire, listening(wire, toolsListChanged=True) as stream:
        await stream.honoured()
        server.known.clear()
        assert await stream.heard() == [(TOOLS, None)]


async def test_a_server_that_is_down_is_said_to_be(gateway: Gateways) -> None:
    async with Telling() as server:
        url = server.url
    served = await gateway(url)
    async with Wire(served.url) as wire:
        status, error = await refused(wire, toolsListChanged=True)
        assert (status, error["code"]) == (200, -32603)


# --- ends ----------------------------------------------------------------------------------------


@pytest.mark.requirement("R41")
@pytest.mark.parametrize("how", ["drain", "stop"])
async def test_the_gateway_says_goodbye(how: str, server: Telling, gateway: Gateways) -> None:
    served = await gateway(server.url)
    async with Wire(served.url) as wire, listening(wire, "x", **EVERYTHING) as stream:
        await stream.honoured()
        async with asyncio.timeout(5):  # far less than the 25 s that it may take
            await (served.gateway.drain() if how == "drain" else served.gateway.stop())
        last = await stream.ended()
        assert last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "x"
        if how == "drain":
            assert (await refused(wire, toolsListChanged=True))[0] == 503


@pytest.mark.requirement("R41")
async def test_a_stream_that_lasted_long_enough_is_ended_properly(server: Telling, gateway: Gateways) -> None:
    served = await gateway(server.url, subscriptions={"lifetime": "200ms"})
    async with Wire(served.url) as wire, listening(wire, toolsListChanged=True) as stream:
        await stream.honoured()
        assert (await stream.ended())["result"]["resultType"] == "complete"


async def test_there_are_limits_and_they_are_told(server: Telling, gateway: Gateways) -> None:
    served = await gateway(server.url, subscriptions={"max": 1, "resources": 1})
    async with Wire(served.url) as wire:
        status, error = await refused(wire, resourceSubscriptions=["a:1", "a:2"])
        assert (status, error["code"]) == (400, -32602)
        async with listening(wire, toolsListChanged=True) as stream:
            await stream.honoured()
            assert (await refused(wire, toolsListChanged=True))[0] == 503

        async def has_noticed() -> bool:
            value = served.gateway._metrics.registry.get_sample_value
            return value("holdfast_subscriptions_open", {"upstream": "legacy"}) == 0

        await until(has_noticed)
        async with listening(wire, toolsListChanged=True) as stream:
            assert await stream.honoured() == {"toolsListChanged": True}


@pytest.mark.parametrize("notifications", [{"toolsListChanged": "yes"}, {"resourceSubscriptions": "a:1"}])
async def test_a_malformed_filter_is_refused(
    notifications: dict[str, Any], server: Telling, gateway: Gateways
) -> None:
    served = await gateway(server.url)
    async with Wire(served.url) as wire:
        status, error = await refused(wire, **notifications)
        assert (status, error["code"]) == (400, -32602)


# --- principals ----------------------------------------------------------------------------------


async def test_each_principal_listens_with_its_own_credentials_on_its_own_session(
    server: Telling, gateway: Gateways
) -> None:
    served = await gateway(server.url, auth={"mode": "passthrough"})
    async with (
        Wire(served.url, authorization="Bearer a") as ann,
        Wire(served.url, authorization="Bearer b") as ben,
        listening(ann, resourceSubscriptions=["a:1"]) as anns,
        listening(ben, resourceSubscriptions=["a:1"]) as bens,
    ):
        await anns.honoured()
        await bens.honoured()
        by = {turn.headers["authorization"]: turn.session for turn in server.seen(SUBSCRIBE)}
        assert by.keys() == {"Bearer a", "Bearer b"}
        await server.say(notice(UPDATED, uri="a:1"), by["Bearer b"])
        assert await bens.heard() == [(UPDATED, "a:1")]
        await server.say(notice(UPDATED, uri="a:1/2"), by["Bearer a"])
        assert await anns.heard() == [(UPDATED, "a:1/2")]


async def test_credentials_that_the_server_does_not_take_are_challenged(
    server: Telling, gateway: Gateways
) -> None:
    async def unauthorized(turn: Turn) -> None:
        await turn.reply(401, headers={"WWW-Authenticate": "Bearer"})

    server.on["initialize"] = unauthorized
    served = await gateway(server.url, auth={"mode": "passthrough"})
    async with Wire(served.url, authorization="Bearer a") as wire:
        assert (await refused(wire, toolsListChanged=True))[0] == 401


# --- one session for all, and many listeners -------------------------------------------------------


@pytest.mark.parametrize("stream", ["of the call", "standing"])
async def test_an_update_that_only_the_session_of_the_call_is_told_of_is_heard(
    server: Telling, gateway: Gateways, stream: str
) -> None:
    """Ours: Python servers say `send_resource_updated` in the session that they serve, subscribed or not."""

    async def updating(turn: Turn) -> None:
        if stream == "standing":
            await server.say(notice(UPDATED, uri="a:1"), turn.session)
        await turn.stream()
        if stream == "of the call":
            await turn.event(notice(UPDATED, uri="a:1"))
        await turn.event(turn.answer({"content": [{"type": "text", "text": "done"}]}))
        await turn.finish()

    server.on["tools/call"] = updating
    served = await gateway(server.url, sessions={"mode": "pooled"})
    async with Wire(served.url) as wire, listening(wire, resourceSubscriptions=["a:1"]) as changes:
        await changes.honoured()
        assert (await wire.tool("echo")).text == "done"
        assert await changes.heard() == [(UPDATED, "a:1")]

    (subscribed,), (called,) = server.seen(SUBSCRIBE), server.seen("tools/call")
    assert subscribed.session != called.session


async def test_under_affinity_the_session_of_the_calls_is_the_one_that_is_heard(
    server: Telling, gateway: Gateways
) -> None:
    """Such servers tell a session what happens in it; and when a call gets another, so do the listeners."""
    served = await gateway(server.url, sessions={"mode": "affinity"})
    async with Wire(served.url) as wire, listening(wire, resourceSubscriptions=["a:1"]) as stream:
        await stream.honoured()
        assert (await wire.tool("echo")).text == "done"
        (first,) = {turn.session for turn in (*server.seen(SUBSCRIBE), *server.seen("tools/call"))}
        assert first is not None
        await server.say(notice(UPDATED, uri="a:1"), first)
        assert await stream.heard() == [(UPDATED, "a:1")]

        server.known.discard(first)
        assert (await wire.tool("echo")).text == "done"
        assert await stream.heard() == [(UPDATED, "a:1")]
        assert server.seen(SUBSCRIBE)[-1].session == server.seen("tools/call")[-1].session != first


async def test_a_crowd_of_one_caller_costs_one_session(server: Telling, gateway: Gateways) -> None:
    served = await gateway(server.url)
    async with Wire(served.url) as wire, AsyncExitStack() as stack:
        crowd = [
            await stack.enter_async_context(listening(wire, number, **EVERYTHING)) for number in range(200)
        ]
        for stream in crowd:
            await stream.honoured()
        await server.tell(UPDATED, uri="a:1")
        for stream in crowd:
            assert await stream.heard() == [(UPDATED, "a:1")]
        assert server.about(SUBSCRIBE) == ["a:1"]
