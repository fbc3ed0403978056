"""A channel without a wire: what a session sends is kept, what it hears is said by the test."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from gateway.upstreams.transport import Deliver
from gateway.wire.jsonrpc import Id, decode, parse

Json = dict[str, Any]
Answering = Callable[[Json, "FakeChannel"], Awaitable[Any]]

HELLO: Json = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "fake", "version": "1"},
}


async def silent(_: Json, channel: "FakeChannel") -> None:
    """Never answer."""
    await asyncio.Event().wait()


class FakeChannel:
    """`on[method]` gives the result of a request, raises, or says more through `say`; None: no answer."""

    has_one_stream = False

    def __init__(self, session_id: str | None = "s") -> None:
        self.session_id = session_id
        self.last_event_id: str | None = None
        self.version: str | None = None
        self.sent: list[Json] = []
        self.on: dict[str, Answering] = {}
        self.refusal: Exception | None = None
        """Raised for everything that is only sent."""
        self.takes: asyncio.Event | None = None
        """What is only sent is taken when this is set, and at once without it."""
        self.ending: Exception | None = None
        """How the standing stream ends once `end` is set."""
        self.end = asyncio.Event()
        self.is_mute = False
        """Its standing stream never opens."""
        self.is_closed = False
        self.reopen: Callable[[], None] = lambda: None
        """Says that the standing stream is open again."""
        self._call: Deliver | None = None
        self._standing: Deliver | None = None

    def speak(self, version: str) -> None:
        self.version = version

    def authorize(self, authorization: str) -> None:
        self.authorization = authorization

    async def request(self, request_id: Id, body: bytes, deliver: Deliver) -> None:
        message: Json = decode(body)
        self.sent.append(message)
        self._call = deliver
        answering = self.on.get(message["method"])
        result = HELLO if answering is None else await answering(message, self)
        if result is not None:
            deliver(parse(_encoded({"jsonrpc": "2.0", "id": request_id, "result": result})))

    async def send(self, body: bytes) -> None:
        self.sent.append(decode(body))
        if self.takes is not None:
            await self.takes.wait()
        if self.refusal is not None:
            raise self.refusal

    async def listen(self, deliver: Deliver, opened: Callable[[], None]) -> None:
        self._standing = deliver
        self.reopen = opened
        if not self.is_mute:
            opened()
        await self.end.wait()
        if self.ending is not None:
            raise self.ending

    async def close(self) -> None:
        self.is_closed = True

    def say(self, message: Json, *, standing: bool = False) -> bool:
        """The server says something: on the stream of the call, or on the standing one."""
        deliver = self._standing if standing else self._call
        assert deliver is not None
        return deliver(parse(_encoded(message)))

    def methods(self) -> list[str]:
        """What was sent, in words."""
        return [str(message.get("method", "answer")) for message in self.sent]


def _encoded(message: Json) -> bytes:
    return json.dumps(message).encode()
