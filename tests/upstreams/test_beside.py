"""What is asked beside a call that runs does not change where that call's stream would be read on."""

import asyncio

from gateway.upstreams.streamable_http import StreamableHttp
from gateway.wire.jsonrpc import Message, Result, encode_request
from tests.support.scripted import Scripted, Turn, ask, text_result


async def test_a_request_beside_a_call_leaves_its_position_alone(
    server: Scripted, channel: StreamableHttp
) -> None:
    """Ours: a ticket written after `logging/setLevel` leads to the call's stream, not to that of the level."""
    server.sessions = False
    release, asked = asyncio.Event(), asyncio.Event()

    async def call(turn: Turn) -> None:
        await turn.stream()
        await turn.event(ask(0), id="call-1")
        await release.wait()
        await turn.event(turn.answer(text_result("done")), id="call-2")
        await turn.finish()

    async def set_level(turn: Turn) -> None:
        await turn.stream()
        await turn.event(turn.answer({}), id="level-1")
        await turn.finish()

    def deliver(message: Message) -> bool:
        asked.set()
        return isinstance(message, Result)

    server.on.update({"tools/call": call, "logging/setLevel": set_level})
    body = encode_request("hf-1", "tools/call", {"name": "echo", "arguments": {}})
    calling = asyncio.ensure_future(channel.request("hf-1", body, deliver))
    async with asyncio.timeout(5):
        await asked.wait()
        level = encode_request("hf-2", "logging/setLevel", {"level": "info"})
        await channel.request("hf-2", level, deliver)
        assert channel.last_event_id == "call-1"
        release.set()
        await calling
        assert channel.last_event_id == "call-1"  # an answer that nobody has heard is not read past
        await channel.request("hf-3", level.replace(b"hf-2", b"hf-3"), deliver)
        assert channel.last_event_id != "call-1", "the next one begins anew"
