"""The channel over Streamable HTTP, against a server that does whatever a test wants: answers."""

import asyncio
from typing import Any

import aiohttp
import pytest

from gateway.errors import (
    UpstreamSpokeNonsense,
)
from gateway.upstreams import farewell
from gateway.upstreams.streamable_http import StreamableHttp
from gateway.wire.jsonrpc import Message, Request, Result, encode_request
from tests.support.calling import CALL, LIMIT, NO_MESSAGE, call, words
from tests.support.scripted import Scripted, Turn, ask, notice, text_result

Json = dict[str, Any]

# --- answers -----------------------------------------------------------------------------------


async def test_an_answer_as_json(server: Scripted, channel: StreamableHttp) -> None:
    assert words(await call(channel)) == ["done"]
    (turn,) = server.turns
    assert turn.headers["accept"] == "application/json, text/event-stream"
    assert turn.headers["content-type"] == "application/json"
    assert turn.headers["authorization"] == "Bearer t"
    assert "mcp-protocol-version" not in turn.headers


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_an_answer_on_a_stream_however_it_is_framed_and_cut(
    server: Scripted, channel: StreamableHttp, newline: str, size: int
) -> None:
    """LEGACY-WIRE 7: Python CRLF, TypeScript LF; comments, priming events and asks before the answer."""

    async def script(turn: Turn) -> None:
        await turn.stream(newline=newline)
        whole = b"".join(
            [
                f": ping - now{newline}{newline}".encode(),
                f"id: e0{newline}retry: 700{newline}data: {newline}{newline}".encode(),
                turn.framed(ask(0), id="e1"),
                turn.framed(notice("notifications/progress", progress=1), event=None),
                turn.framed(turn.answer(text_result("a\u2028b\u0085c\ufeff")), id="e2"),
            ]
        )
        for start in range(0, len(whole), size):
            await turn.chunk(whole[start : start + size])
        await turn.finish()

    server.on["tools/call"] = script
    heard = await call(channel)
    assert words(heard) == ["elicitation/create", "notifications/progress", "a\u2028b\u0085c\ufeff"]
    assert isinstance(heard[0], Request)
    assert heard[0].id == 0
    assert channel.last_event_id == "e1", "not past the answer, which somebody may still have to read"


async def test_an_ask_is_delivered_before_the_stream_goes_on(
    server: Scripted, channel: StreamableHttp
) -> None:
    async def script(turn: Turn) -> None:
        await turn.stream()
        await turn.event(ask("a"))
        await server.wait_for_answer("a")
        await turn.event(turn.answer(text_result("thanks")))
        await turn.finish()

    async def answer() -> None:
        await channel.send(b'{"jsonrpc":"2.0","id":"a","result":{}}')

    answers: list[asyncio.Task[None]] = []

    def deliver(message: Message) -> bool:
        if isinstance(message, Request):
            answers.append(asyncio.ensure_future(answer()))
        return isinstance(message, Result)

    server.on["tools/call"] = script
    async with asyncio.timeout(5):
        await channel.request(CALL, encode_request(CALL, "tools/call", {}), deliver)
        await asyncio.gather(*answers)
    assert len(answers) == 1


async def test_headers_may_come_only_with_the_first_event(server: Scripted, channel: StreamableHttp) -> None:
    """LEGACY-WIRE 7: TypeScript up to 1.18, and both JSON modes."""
    asked = asyncio.Event()

    async def script(turn: Turn) -> None:
        await asked.wait()
        await turn.result(text_result("late"))

    server.on["tools/call"] = script
    calling = asyncio.ensure_future(call(channel))
    await server.wait("tools/call")
    await channel.send(b'{"jsonrpc":"2.0","id":7,"result":{}}')  # not held up by it
    asked.set()
    assert words(await calling) == ["late"]


async def test_a_stream_left_open_after_the_answer_keeps_nobody_waiting(
    server: Scripted, channel: StreamableHttp
) -> None:
    async def script(turn: Turn) -> None:
        await turn.stream()
        await turn.event(turn.answer(text_result("done")))
        await turn.until_left()

    server.on["tools/call"] = script
    began = asyncio.get_running_loop().time()
    assert words(await call(channel)) == ["done"]
    assert asyncio.get_running_loop().time() - began < 0.5
    await server.wait_until(lambda: server.turns[0].has_left)


async def test_a_connection_is_used_again_after_an_orderly_end(
    server: Scripted, channel: StreamableHttp, http: aiohttp.ClientSession
) -> None:
    async def script(turn: Turn) -> None:
        await turn.stream()
        await turn.event(turn.answer(text_result("done")))
        await turn.finish()

    server.on["tools/call"] = script
    for _ in range(3):
        await call(channel)
    assert server.connections == 1


async def test_a_batch_is_delivered_message_by_message(server: Scripted, channel: StreamableHttp) -> None:
    """2025-03-26 allowed batches."""

    async def script(turn: Turn) -> None:
        await turn.json([notice("notifications/message", data=1), turn.answer(text_result("done"))])

    server.on["tools/call"] = script
    assert words(await call(channel)) == ["notifications/message", "done"]


async def test_events_of_other_kinds_are_not_mcp(server: Scripted, channel: StreamableHttp) -> None:
    async def script(turn: Turn) -> None:
        await turn.stream()
        await turn.event("now", event="ping")
        await turn.event("/messages?session=1", event="endpoint")
        await turn.event(turn.answer(text_result("done")))
        await turn.finish()

    server.on["tools/call"] = script
    assert words(await call(channel)) == ["done"]


async def test_the_negotiated_version_is_named_from_then_on(
    server: Scripted, channel: StreamableHttp
) -> None:
    channel.speak("2025-06-18")
    await call(channel)
    assert server.turns[0].headers["mcp-protocol-version"] == "2025-06-18"


async def test_the_session_id_is_taken_once_and_sent_ever_after(
    server: Scripted, channel: StreamableHttp
) -> None:
    async def script(turn: Turn) -> None:
        await turn.result({}, {"Mcp-Session-Id": f"s{len(server.turns)}"})

    server.on["tools/call"] = script
    await call(channel)
    await call(channel)
    await channel.send(b'{"jsonrpc":"2.0","method":"x"}')
    await channel.close()
    assert channel.session_id == "s1"
    assert [turn.session for turn in server.turns] == [None, "s1", "s1", "s1"]
    assert server.turns[-1].verb == "DELETE"


# --- answers that are none ---------------------------------------------------------------------


async def _answer_accepted(turn: Turn) -> None:
    await turn.reply(202)


async def _answer_html(turn: Turn) -> None:
    await turn.reply(200, "<html>Welcome</html>", {"Content-Type": "text/html"})


async def _answer_half_json(turn: Turn) -> None:
    await turn.reply(200, '{"jsonrpc": "2.0", "id": ', {"Content-Type": "application/json"})


async def _answer_other_json(turn: Turn) -> None:
    await turn.json({"ok": True})


async def _answer_large_json(turn: Turn) -> None:
    await turn.result(text_result("x" * LIMIT))


async def _answer_endless_json(turn: Turn) -> None:
    await turn.stream({"Content-Type": "application/json"})
    while not turn.is_over and not turn.writer.is_closing():
        await turn.chunk(b" " * 10_000)


async def _answer_garbage_event(turn: Turn) -> None:
    await turn.stream()
    await turn.event('{"jsonrpc":"2.0","id":"hf-1","result":{')
    await turn.until_left()


async def _answer_large_event(turn: Turn) -> None:
    await turn.stream()
    await turn.event(turn.answer(text_result("x" * LIMIT)))
    await turn.until_left()


async def _answer_endless_event(turn: Turn) -> None:
    await turn.stream()
    while not turn.is_over and not turn.writer.is_closing():
        await turn.chunk(b"data: " + b"x" * 10_000)


@pytest.mark.parametrize(
    "script",
    [
        _answer_accepted,
        _answer_html,
        _answer_half_json,
        _answer_other_json,
        _answer_large_json,
        _answer_endless_json,
        _answer_garbage_event,
        _answer_large_event,
        _answer_endless_event,
    ],
)
async def test_what_is_not_mcp_ends_the_call(server: Scripted, channel: StreamableHttp, script: Any) -> None:
    server.on["tools/call"] = script
    with pytest.raises(UpstreamSpokeNonsense):
        await call(channel)


@pytest.mark.parametrize("data", NO_MESSAGE)
async def test_what_is_no_message_is_passed_over(
    server: Scripted, channel: StreamableHttp, data: str
) -> None:
    """Heartbeats, log lines, `[DONE]`: SDK clients go on, and get the answer."""

    async def script(turn: Turn) -> None:
        await turn.stream()
        await turn.event(data)
        await turn.event(turn.answer(text_result("done")))
        await turn.finish()

    server.on["tools/call"] = script
    assert words(await call(channel)) == ["done"]


async def test_the_answer_counts_even_if_what_follows_is_too_large(
    server: Scripted, channel: StreamableHttp
) -> None:
    async def script(turn: Turn) -> None:
        await turn.stream()
        await turn.chunk(turn.framed(turn.answer(text_result("done"))) + b"data: " + b"x" * (LIMIT + 1))
        await turn.until_left()

    server.on["tools/call"] = script
    assert words(await call(channel)) == ["done"]


async def test_a_stream_that_ends_without_an_answer_just_ends(
    server: Scripted, channel: StreamableHttp
) -> None:
    async def script(turn: Turn) -> None:
        await turn.stream()
        await turn.event(notice("notifications/message", data=1))
        await turn.chunk(b"data: {unterminated")
        await turn.finish()

    server.on["tools/call"] = script
    assert words(await call(channel)) == ["notifications/message"]


# --- notifications and answers -----------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 202, 204])
async def test_whatever_says_yes_to_a_notification_is_fine(
    server: Scripted, channel: StreamableHttp, status: int
) -> None:
    async def script(turn: Turn) -> None:
        await turn.reply(status, "" if status == 204 else "Accepted")

    server.on["notifications/initialized"] = script
    await channel.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')


async def test_a_stream_in_answer_to_a_notification_is_not_read_to_its_end(
    server: Scripted, channel: StreamableHttp
) -> None:
    async def script(turn: Turn) -> None:
        await turn.stream()
        await turn.until_left()

    server.on["notifications/initialized"] = script
    async with asyncio.timeout(2):
        await channel.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')


# --- the end -----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 204, 404, 405, 500])
async def test_closing_never_fails(server: Scripted, channel: StreamableHttp, status: int) -> None:
    async def script(turn: Turn) -> None:
        await turn.reply(status)

    server.on["DELETE"] = script
    channel.session_id = "s"
    await channel.close()
    assert [turn.verb for turn in server.turns] == ["DELETE"]


async def test_closing_a_session_that_was_never_named_says_nothing(
    server: Scripted, channel: StreamableHttp
) -> None:
    await channel.close()
    assert server.turns == []


async def test_closing_does_not_wait_for_a_silent_or_dead_server(
    server: Scripted, channel: StreamableHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(farewell, "_SECONDS", 0.02)
    server.on["DELETE"] = Turn.until_left
    channel.session_id = "s"
    await channel.close()
    await server.stop()
    await channel.close()
