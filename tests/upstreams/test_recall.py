"""Servers whose event ids lead nowhere are known by their answers; nothing is read on there."""

from collections.abc import Awaitable, Callable

import pytest

from gateway.errors import UpstreamLost
from gateway.upstreams import streamable_http
from gateway.upstreams.http1 import Http1
from gateway.upstreams.recall import Recall
from gateway.upstreams.streamable_http import StreamableHttp
from tests.support.calling import LIMIT, call, words
from tests.support.scripted import Scripted, Turn, ask, text_result

SESSION = "session-of-old"
STREAM = "4f0c1c62-6f1c-4a1e-9d3a-5b0f6c1f7a11"


@pytest.fixture
def channels(http: Http1, server: Scripted, monkeypatch: pytest.MonkeyPatch) -> Callable[[], StreamableHttp]:
    monkeypatch.setattr(streamable_http, "_ASKED_SECONDS", 0.001)
    recall = Recall()

    def another() -> StreamableHttp:
        channel = StreamableHttp(http, server.url, headers={}, max_event_bytes=LIMIT, recall=recall)
        channel.adopt(SESSION, "2025-06-18")
        channel._retry_seconds = 0.001
        return channel

    return another


def answers(answer_id: str | None, *, asks_first: bool = True) -> Callable[[Turn], Awaitable[None]]:
    async def script(turn: Turn) -> None:
        await turn.stream()
        if asks_first:
            await turn.event(ask("q-0"), id=f"{STREAM}_1")
        await turn.event(turn.answer(text_result("done")), id=answer_id)
        await turn.finish()

    return script


async def breaks_off(turn: Turn) -> None:
    await turn.stream()
    await turn.event(ask("q-1"), id=f"{STREAM}_2")
    turn.hang_up()


async def reads_on(turn: Turn) -> None:
    await turn.stream()
    await turn.event(turn.server.seen("tools/call")[-1].answer(text_result("read on")), id=f"{STREAM}_3")
    await turn.finish()


@pytest.mark.parametrize("answer_id", [SESSION, None], ids=["servlet", "webflux"])
async def test_a_call_is_not_read_on_where_answers_have_no_id_of_their_own(
    server: Scripted, channels: Callable[[], StreamableHttp], answer_id: str | None
) -> None:
    """Java's SDK: a GET with the last id is silent for ever, and the client waited until the call timed out."""
    server.on = {"tools/call": answers(answer_id), "GET": reads_on}
    first = channels()
    assert words(await call(first)) == ["elicitation/create", "done"]
    assert (first.last_event_id, first.may_remember) == (None, False)

    server.on["tools/call"] = breaks_off
    second = channels()  # what one session has shown is true of the others
    with pytest.raises(UpstreamLost):
        await call(second)
    assert server.seen("GET") == []
    assert second.last_event_id is None, "nor does a ticket lead there"


async def test_a_call_is_read_on_where_answers_have_ids(
    server: Scripted, channels: Callable[[], StreamableHttp]
) -> None:
    """Whatever was believed before: a server may be replaced by one that keeps its events."""
    server.on = {"tools/call": answers(SESSION), "GET": reads_on}
    await call(channels())
    server.on["tools/call"] = answers(f"{STREAM}_9")
    channel = channels()
    await call(channel)
    assert channel.may_remember

    server.on["tools/call"] = breaks_off
    assert words(await call(channels())) == ["elicitation/create", "read on"]


async def test_an_answer_on_a_stream_without_ids_says_nothing(
    server: Scripted, channels: Callable[[], StreamableHttp]
) -> None:
    """Servers that keep events may have begun a session in a revision without them."""
    server.on = {"tools/call": answers(None, asks_first=False), "GET": reads_on}
    channel = channels()
    await call(channel)
    assert not channel.may_remember

    server.on["tools/call"] = breaks_off
    assert words(await call(channels())) == ["elicitation/create", "read on"]


async def test_an_answer_in_json_leaves_what_another_process_has_seen_as_it_is(
    server: Scripted, channels: Callable[[], StreamableHttp]
) -> None:
    """mcp-go answers a ping in JSON, and keeps the events of its calls all the same."""

    async def in_json(turn: Turn) -> None:
        await turn.result(text_result("done"))

    server.on = {"tools/call": in_json}
    channel = channels()
    assert words(await call(channel)) == ["done"]
    assert channel.may_remember
