"""Standing sessions that lead nowhere: the test says what their servers say, and when they fail."""

import asyncio
from typing import TYPE_CHECKING, Any

from gateway.upstreams.pool import Caller
from gateway.upstreams.session import Session, open_session
from gateway.upstreams.transport import SessionGone
from tests.support.channels import HELLO, Answering, FakeChannel
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.errors import GatewayError
    from gateway.wire.jsonrpc import Notification

Json = dict[str, Any]

TELLS: Json = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}


class FakeLine:
    """Opens a session at once, unless `gate` is closed; not at all while there is a `failure`."""

    def __init__(self, capabilities: Json = TELLS) -> None:
        self.capabilities = capabilities
        self.on: dict[str, Answering] = {}
        """How the servers of sessions that are opened from now on answer."""
        self.failure: GatewayError | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.has_stream = True
        self.hears: Callable[[Caller, Notification], None] = lambda _caller, _notification: None
        self.channels: list[FakeChannel] = []
        self.given_back: list[Session] = []
        self.tries = 0
        self.is_closed = False

    async def take(self, caller: Caller) -> Session:
        self.tries += 1
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        channel = FakeChannel(f"s{len(self.channels)}")
        channel.on.update(self.on)
        channel.on["initialize"] = self._introduce
        if not self.has_stream:
            channel.end.set()
        session = await open_session(
            channel,
            request_id="hello",
            client_info=None,
            capabilities={},
            on_early_ask=lambda _session, _ask: None,
            on_end=lambda _session: None,
            on_change=lambda _session, notification: self.hears(caller, notification),
        )
        self.channels.append(channel)
        return session

    def give_back(self, session: Session) -> None:
        self.given_back.append(session)

    async def close(self) -> None:
        self.is_closed = True
        for session in self.given_back:
            await session.close()

    async def opened(self, number: int = 1) -> FakeChannel:
        """Wait for so many sessions; the channel of the last."""

        async def look() -> bool:
            return len(self.channels) >= number

        await until(look)
        return self.channels[number - 1]

    async def _introduce(self, _: Json, __: FakeChannel) -> Json:
        return {**HELLO, "capabilities": self.capabilities}


async def refused(message: Json, channel: FakeChannel) -> None:
    """Answer with an error."""
    error = {"code": -32602, "message": "No such resource"}
    channel.say({"jsonrpc": "2.0", "id": message["id"], "error": error})


def lose(channel: FakeChannel) -> None:
    """The server drops the session."""
    channel.ending = SessionGone("dropped")
    channel.end.set()


def about(channel: FakeChannel, method: str) -> list[str]:
    """The resources that requests of this method named, in order."""
    return [message["params"]["uri"] for message in channel.sent if message.get("method") == method]
