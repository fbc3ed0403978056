"""One call on a bare channel, and what was delivered for it."""

import asyncio
from typing import Any

from gateway.upstreams.transport import Channel
from gateway.wire.jsonrpc import Failure, Message, Result, decode, encode_request

LIMIT = 64 * 1024
"""Bytes of one event, for the channels of these tests."""
CALL = "r1"


async def call(channel: Channel) -> list[Message]:
    """Send a call; all that was delivered for it."""
    heard: list[Message] = []

    def deliver(message: Message) -> bool:
        heard.append(message)
        return isinstance(message, Result | Failure) and message.id == CALL

    async with asyncio.timeout(5):
        await channel.request(CALL, encode_request(CALL, "tools/call", {"name": "echo"}), deliver)
    return heard


def words(messages: list[Message]) -> list[Any]:
    """What the messages say, in short: a tool's text, an error's, a method."""
    return [_word(message) for message in messages]


def _word(message: Message) -> Any:
    if isinstance(message, Result):
        return decode(message.result)["content"][0]["text"]
    return message.message if isinstance(message, Failure) else message.method


NO_MESSAGE = (
    "ping",
    "[DONE]",
    "{",
    "[]",
    '{"type":"heartbeat"}',
    '{"level":50,"error":"a logger\'s"}',
    '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":[]}',
)
"""What servers send among their messages."""

UNREADABLE_ANSWERS = (
    '{"jsonrpc":"2.0","id":"hf-1","result":{',
    '{"jsonrpc":"2.0","id":{},"result":{}}',
    '{"jsonrpc":"2.0","id":"hf-1","error":"no object"}',
    '[{"jsonrpc":"2.0","id":{},"result":{}}]',
)
