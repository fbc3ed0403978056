"""Sessions on channels of one stream: nothing is called before what the server asked at the start was heard."""

import asyncio

import pytest

from gateway.eras.vocabulary import Ask
from gateway.upstreams import session as module
from gateway.upstreams.session import Session, open_session
from tests.support.channels import FakeChannel, Json, silent

ROOTS: Json = {"jsonrpc": "2.0", "id": 0, "method": "roots/list"}


class OneStreamed(FakeChannel):
    has_one_stream = True


class Heard:
    """What the pool and the relay would hear of a session."""

    def __init__(self) -> None:
        self.ended: list[Session] = []

    def keep(self, session: Session, ask: Ask) -> None:
        session.early_asks.append(ask)

    async def open(self, channel: FakeChannel) -> Session:
        async with asyncio.timeout(5):
            return await open_session(
                channel,
                request_id="init",
                client_info=None,
                capabilities={"roots": {}},
                on_early_ask=self.keep,
                on_end=self.ended.append,
            )


async def test_the_handshake_ends_with_a_ping_that_overtakes_no_question() -> None:
    """The filesystem server asks for roots at `initialized`; a call before the answer would be denied."""
    channel = OneStreamed()

    async def asking(_: Json, channel: FakeChannel) -> Json:
        channel.say(ROOTS, standing=True)
        return {}

    channel.on["ping"] = asking
    session = await Heard().open(channel)
    assert channel.methods() == ["initialize", "notifications/initialized", "ping"]
    assert channel.sent[0]["id"] != channel.sent[2]["id"]
    assert [ask.id for ask in session.early_asks] == [0]
    await session.close()


async def test_with_two_streams_a_ping_would_prove_nothing() -> None:
    channel = FakeChannel()
    session = await Heard().open(channel)
    assert "ping" not in channel.methods()
    await session.close()


async def test_a_server_that_does_not_know_ping_is_used_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CATCH_UP_SECONDS", 0.05)
    channel = OneStreamed()
    channel.on["ping"] = silent
    session = await Heard().open(channel)
    assert not session.is_dead
    await session.close()


async def test_an_idle_session_whose_question_nobody_could_answer_is_over() -> None:
    """TypeScript servers give up after 60 s, and then work without roots: a new session asks again."""
    channel, heard = OneStreamed(), Heard()
    session = await heard.open(channel)
    channel.say(ROOTS, standing=True)
    other = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    channel.say(other, standing=True)
    assert heard.ended == [], "that was about something else"
    channel.say({**other, "params": {"requestId": 0}}, standing=True)
    assert session.is_dead
    assert heard.ended == [session]
    await session.close()
