"""A session: its handshake, whose answer is whose, what happens to what the server says unasked."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.eras.vocabulary import Ask, Kind
from gateway.errors import (
    GatewayError,
    UpstreamFault,
    UpstreamLost,
    UpstreamRefused,
    UpstreamSpokeNonsense,
    UpstreamTimedOut,
    UpstreamUnreachable,
)
from gateway.upstreams import session as module
from gateway.upstreams.session import Session, open_session
from gateway.upstreams.transport import SessionGone
from gateway.wire.jsonrpc import Failure, Id, Notification, NotJson, Result, decode
from tests.support.channels import HELLO, FakeChannel, Json, silent
from tests.support.scripted import ask, notice
from tests.support.waiting import until


@dataclass
class Heard:
    """A listener that only notes."""

    asks: list[Ask] = field(default_factory=list)
    withdrawn: list[Id] = field(default_factory=list)
    notifications: list[Notification] = field(default_factory=list)
    early: list[Ask] = field(default_factory=list)
    ended: list[Session] = field(default_factory=list)

    def hear_ask(self, ask: Ask) -> None:
        self.asks.append(ask)

    def hear_withdrawal(self, ask_id: Id) -> None:
        self.withdrawn.append(ask_id)

    def hear_notification(self, notification: Notification) -> None:
        self.notifications.append(notification)

    def hear_early(self, session: Session, ask: Ask) -> None:
        session.early_asks.append(ask)


@pytest.fixture
def channel() -> FakeChannel:
    return FakeChannel()


@pytest.fixture
def heard() -> Heard:
    return Heard()


async def opened(channel: FakeChannel, heard: Heard, capabilities: Json | None = None) -> Session:
    async with asyncio.timeout(5):
        return await open_session(
            channel,
            request_id="i1",
            client_info={"name": "c", "version": "1"},
            capabilities=capabilities or {},
            on_early_ask=heard.hear_early,
            on_end=heard.ended.append,
        )


async def sent(channel: FakeChannel, number: int) -> list[Json]:
    """Wait until so many messages were sent; the last of them."""

    async def look() -> bool:
        return len(channel.sent) >= number

    await until(look)
    return channel.sent


# --- the handshake -----------------------------------------------------------------------------


async def test_the_handshake_introduces_the_client_as_it_declared_itself(
    channel: FakeChannel, heard: Heard
) -> None:
    session = await opened(channel, heard, {"elicitation": {}, "roots": {"listChanged": True}})
    assert channel.sent[0]["params"] == {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}, "roots": {}},
        "clientInfo": {"name": "c", "version": "1"},
    }
    assert channel.methods() == ["initialize", "notifications/initialized"]
    assert session.server.server_info == HELLO["serverInfo"]
    assert channel.version == "2025-11-25"
    await session.close()


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_the_servers_version_is_spoken(channel: FakeChannel, heard: Heard, version: str) -> None:
    async def hello(_: Json, __: FakeChannel) -> Json:
        return {**HELLO, "protocolVersion": version}

    channel.on["initialize"] = hello
    session = await opened(channel, heard)
    assert channel.version == session.server.version == version
    await session.close()


@pytest.mark.parametrize(
    "result",
    [{**HELLO, "protocolVersion": "2026-07-28"}, {**HELLO, "protocolVersion": 3}, {}, [], "hello", None],
)
async def test_an_introduction_that_is_none_opens_nothing(
    channel: FakeChannel, heard: Heard, result: Any
) -> None:
    async def hello(_: Json, __: FakeChannel) -> Any:
        return result

    channel.on["initialize"] = hello
    with pytest.raises(UpstreamSpokeNonsense):
        await opened(channel, heard)
    assert channel.is_closed


async def test_a_refused_introduction_opens_nothing(channel: FakeChannel, heard: Heard) -> None:
    async def hello(message: Json, channel: FakeChannel) -> None:
        channel.say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "no"}})

    channel.on["initialize"] = hello
    with pytest.raises(UpstreamFault, match="error -32602"):
        await opened(channel, heard)
    assert channel.is_closed


async def test_a_server_that_refuses_initialized_gets_its_session_ended(
    channel: FakeChannel, heard: Heard
) -> None:
    channel.refusal = UpstreamRefused(500)
    with pytest.raises(UpstreamRefused):
        await opened(channel, heard)
    assert channel.is_closed


@pytest.mark.parametrize(
    "lost", [UpstreamLost(), SessionGone("gone"), UpstreamLost("x", detail="y")], ids=repr
)
async def test_a_handshake_that_breaks_off_leaves_nothing_that_may_have_run(
    channel: FakeChannel, heard: Heard, lost: UpstreamLost
) -> None:
    """Ours: a client told that its call may have run does not dare to send it again, and it was never sent."""

    async def script(_: Json, __: FakeChannel) -> None:
        raise lost

    channel.on["initialize"] = script
    with pytest.raises(type(lost)) as refused:
        await opened(channel, heard)
    assert "the call was not sent" in refused.value.message
    assert str(refused.value) == str(lost), "the log has the cause"


async def test_giving_up_in_mid_handshake_ends_what_was_begun(channel: FakeChannel, heard: Heard) -> None:
    channel.on["initialize"] = silent
    opening = asyncio.ensure_future(opened(channel, heard))
    await sent(channel, 1)
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    assert channel.is_closed


async def test_a_standing_stream_without_headers_is_not_waited_for_long(
    channel: FakeChannel, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_STANDING_STREAM_SECONDS", 0.01)
    channel.is_mute = True
    session = await opened(channel, heard)
    channel.say(ask(1), standing=True)
    assert [ask.id for ask in session.early_asks] == [1]
    await session.close()


# --- calls -------------------------------------------------------------------------------------


async def test_the_answer_of_a_call_is_found_among_what_else_comes(
    channel: FakeChannel, heard: Heard
) -> None:
    async def script(message: Json, channel: FakeChannel) -> Json:
        channel.say({"jsonrpc": "2.0", "id": "someone else's", "result": {"n": 1}})
        channel.say({"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "not ours"}})
        channel.say(notice("notifications/progress", progress=1))
        channel.say(ask(0))
        channel.say(ask("x", "sampling/createMessage", {}), standing=True)
        return {"n": 2}

    channel.on["tools/call"] = script
    session = await opened(channel, heard)
    session.listener = heard
    answer = await session.call("c1", "tools/call", {})
    assert isinstance(answer, Result)
    assert decode(answer.result) == {"n": 2}
    assert [(ask.id, ask.kind) for ask in heard.asks] == [(0, Kind.ELICITATION), ("x", Kind.SAMPLING)]
    assert [notification.method for notification in heard.notifications] == ["notifications/progress"]
    await session.close()


async def test_an_error_without_an_id_on_the_calls_own_stream_is_its_answer(
    channel: FakeChannel, heard: Heard
) -> None:
    async def script(_: Json, channel: FakeChannel) -> None:
        assert channel.say({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "what?"}})

    channel.on["tools/call"] = script
    session = await opened(channel, heard)
    answer = await session.call("c1", "tools/call", {})
    assert isinstance(answer, Failure)
    assert answer.message == "what?"
    assert not session.is_dead
    await session.close()


async def test_the_first_answer_stays(channel: FakeChannel, heard: Heard) -> None:
    async def script(message: Json, channel: FakeChannel) -> Json:
        channel.say({"jsonrpc": "2.0", "id": message["id"], "result": {"n": 1}})
        return {"n": 2}

    channel.on["tools/call"] = script
    session = await opened(channel, heard)
    answer = await session.call("c1", "tools/call", {})
    assert isinstance(answer, Result)
    assert decode(answer.result) == {"n": 1}
    await session.close()


@pytest.mark.parametrize(
    "error", [UpstreamLost(), SessionGone(), UpstreamUnreachable(), UpstreamRefused(500)], ids=repr
)
async def test_a_broken_call_says_whether_the_session_is_over(
    channel: FakeChannel, heard: Heard, error: GatewayError
) -> None:
    async def script(_: Json, __: FakeChannel) -> None:
        raise error

    channel.on["tools/call"] = script
    session = await opened(channel, heard)
    with pytest.raises(type(error)):
        await session.call("c1", "tools/call", {})
    assert session.is_dead is isinstance(error, UpstreamLost)
    await session.close()


async def test_a_stream_that_ends_without_an_answer_may_have_run_the_call(
    channel: FakeChannel, heard: Heard
) -> None:
    async def script(_: Json, __: FakeChannel) -> None:
        return None

    channel.on["tools/call"] = script
    session = await opened(channel, heard)
    with pytest.raises(UpstreamLost):
        await session.call("c1", "tools/call", {})
    assert session.is_dead
    await session.close()


# --- what the server says unasked ---------------------------------------------------------------


@pytest.mark.parametrize("number", [0, "", 7, "0", -3])
async def test_a_ping_is_answered_here_under_its_own_id(
    channel: FakeChannel, heard: Heard, number: Id
) -> None:
    """LEGACY-WIRE 2: Python 1.12 ignores an answer whose id has another JSON type."""

    async def script(_: Json, channel: FakeChannel) -> Json:
        channel.say(ask(number, "ping", {}))
        channel.say(ask(number, "ping", {}), standing=True)
        return {}

    channel.on["tools/call"] = script
    session = await opened(channel, heard)
    session.listener = heard
    await session.call("c1", "tools/call", {})
    for answer in (await sent(channel, 5))[3:]:
        assert answer == {"jsonrpc": "2.0", "id": number, "result": {}}
        assert type(answer["id"]) is type(number)
    assert heard.asks == []
    await session.close()


async def test_a_request_of_unknown_kind_is_refused(channel: FakeChannel, heard: Heard) -> None:
    session = await opened(channel, heard)
    channel.say(ask(1, "vendor/whatever", {}), standing=True)
    *_, answer = await sent(channel, 3)
    assert answer["error"]["code"] == -32601
    await session.close()


async def test_a_pong_that_cannot_be_sent_is_nobodys_trouble(channel: FakeChannel, heard: Heard) -> None:
    session = await opened(channel, heard)
    channel.refusal = UpstreamLost()
    channel.say(ask(1, "ping", {}), standing=True)
    await sent(channel, 3)
    assert not session.is_dead
    await session.close()


async def test_a_server_that_does_not_take_what_it_is_told_is_not_told_for_ever(
    channel: FakeChannel, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: most of what is said beside calls nobody waits for, so nobody else would ever give up."""
    monkeypatch.setattr(module, "_TAKE_SECONDS", 0.05)
    session = await opened(channel, heard)
    channel.takes = asyncio.Event()
    async with asyncio.timeout(5):
        for telling in (
            session.answer(1, {}),
            session.refuse(2, -1, "no"),
            session.notify("notifications/x"),
        ):
            with pytest.raises(UpstreamTimedOut):
                await telling
    await session.close()


async def test_asks_before_any_call_are_kept_and_a_withdrawn_one_is_not(
    channel: FakeChannel, heard: Heard
) -> None:
    session = await opened(channel, heard)
    for number in (0, 1, "1"):
        channel.say(ask(number, "roots/list", {}), standing=True)
    channel.say(notice("notifications/cancelled", requestId=1), standing=True)
    assert [ask.id for ask in session.early_asks] == [0, "1"]
    await session.close()


async def test_a_server_that_asks_without_end_is_told_to_stop(channel: FakeChannel, heard: Heard) -> None:
    session = await opened(channel, heard)
    for number in range(40):
        channel.say(ask(number, "roots/list", {}), standing=True)
    assert len(session.early_asks) == 32
    refused = (await sent(channel, 10))[2:]
    assert sorted(answer["id"] for answer in refused) == list(range(32, 40))
    await session.close()


@pytest.mark.parametrize("named", [{"requestId": 0}, {"requestId": ""}, {"requestId": "a"}])
async def test_a_withdrawal_reaches_the_listener_with_the_asks_own_id(
    channel: FakeChannel, heard: Heard, named: Json
) -> None:
    session = await opened(channel, heard)
    session.listener = heard
    channel.say(notice("notifications/cancelled", **named), standing=True)
    assert heard.withdrawn == [named["requestId"]]
    await session.close()


@pytest.mark.parametrize("named", [{}, {"requestId": None}, {"requestId": True}, {"requestId": [1]}])
async def test_a_withdrawal_of_nothing_is_ignored(channel: FakeChannel, heard: Heard, named: Json) -> None:
    session = await opened(channel, heard)
    session.listener = heard
    channel.say(notice("notifications/cancelled", **named), standing=True)
    assert heard.withdrawn == []
    await session.close()


async def test_what_cannot_be_taken_apart_is_the_servers_fault_and_not_ours(
    channel: FakeChannel, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_deep(_: object) -> None:
        raise NotJson("too deep")

    session = await opened(channel, heard)
    monkeypatch.setattr(module, "decode", too_deep)
    with pytest.raises(UpstreamSpokeNonsense):
        channel.say(notice("notifications/cancelled", requestId=1), standing=True)
    await session.close()


async def test_notifications_outside_a_call_are_for_nobody(channel: FakeChannel, heard: Heard) -> None:
    session = await opened(channel, heard)
    channel.say(notice("notifications/message", level="info", data=1), standing=True)
    assert heard.notifications == []
    await session.close()


# --- the end -----------------------------------------------------------------------------------


async def test_the_end_of_the_standing_stream_with_an_error_ends_the_session(
    channel: FakeChannel, heard: Heard
) -> None:
    session = await opened(channel, heard)
    channel.ending = SessionGone()
    channel.end.set()

    async def look() -> bool:
        return heard.ended == [session]

    await until(look)
    assert session.is_dead
    await session.close()


async def test_a_server_that_has_no_standing_stream_keeps_its_session(
    channel: FakeChannel, heard: Heard
) -> None:
    channel.end.set()
    session = await opened(channel, heard)
    assert not session.is_dead
    assert heard.ended == []
    assert not session.is_standing
    await session.close()


@pytest.mark.parametrize("has_one_stream", [False, True])
async def test_what_was_told_during_the_last_call_is_heard_though_it_comes_after_the_answer(
    channel: FakeChannel, heard: Heard, monkeypatch: pytest.MonkeyPatch, *, has_one_stream: bool
) -> None:
    """Ours: a changed list comes on another connection than the answer. On one stream nothing can be late."""
    monkeypatch.setattr(module, "_LAST_WORDS_SECONDS", 0.5)
    session = await opened(channel, heard)
    changes: list[str] = []
    session._on_change = lambda _, notification: changes.append(notification.method)
    channel.has_one_stream = has_one_stream
    session.served_calls = 1

    async with asyncio.timeout(5):
        closing = asyncio.ensure_future(session.close())
        await asyncio.sleep(0)
        assert session.is_dead is has_one_stream
        if not has_one_stream:
            channel.say(notice("notifications/tools/list_changed"), standing=True)
        await closing

    assert changes == ([] if has_one_stream else ["notifications/tools/list_changed"])
    assert channel.is_closed


async def test_closing_ends_the_stream_and_tells_the_server(channel: FakeChannel, heard: Heard) -> None:
    session = await opened(channel, heard)
    await session.close()
    assert channel.is_closed
    assert not session.is_standing
    assert heard.ended == []
