"""A client that listens, made of bare HTTP: every message is judged as it comes, and nothing is taken for granted."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from tests.support.verdicts import MODERN, Json, checked_change, checked_message
from tests.support.wire import Wire

METHOD = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"
SECONDS = 5.0


class Listening:
    """One stream."""

    def __init__(self, id_: int | str, response: aiohttp.ClientResponse) -> None:
        self.id = id_
        self.response = response
        self.comments = 0
        self._events = self._read()

    async def honoured(self) -> Json:
        """What the acknowledgement promises; fails if anything else comes first."""
        first = await self.next()
        assert first["method"] == ACKNOWLEDGED
        found: Json = first["params"]["notifications"]
        return found

    async def heard(self, number: int = 1) -> list[tuple[str, str | None]]:
        """The next notifications, as method and URI."""
        messages = [await self.next() for _ in range(number)]
        return [(message["method"], message["params"].get("uri")) for message in messages]

    async def ended(self) -> Json:
        """The last word: the response, and nothing after it; fails if a notification comes instead."""
        last = await self.next()
        assert "method" not in last, last
        assert last["id"] == self.id
        assert type(last["id"]) is type(self.id)
        checked_message(METHOD, last)
        async with asyncio.timeout(SECONDS):
            assert [event async for event in self._events] == []
        return last

    async def next(self) -> Json:
        """The next message, whatever it is."""
        async with asyncio.timeout(SECONDS):
            message = await anext(self._events)
        return checked_change(message, self.id) if "method" in message else message

    async def commented(self, number: int) -> None:
        """Wait for so many comments with nothing between them."""
        async with asyncio.timeout(SECONDS):
            while self.comments < number:
                await self._block()

    async def _read(self) -> AsyncIterator[Json]:
        while block := await self._block():
            lines = [line for line in block.split("\n") if line and not line.startswith(":")]
            fields = dict(line.split(": ", 1) for line in lines)
            assert fields.keys() <= {"event", "data"}, "this revision has no event ids"
            if fields:
                assert fields["event"] == "message"
                yield json.loads(fields["data"])

    async def _block(self) -> str:
        try:
            block = (await self.response.content.readuntil(b"\n\n")).decode()
        except asyncio.IncompleteReadError as rest:
            block = rest.partial.decode()
        self.comments += sum(line.startswith(":") for line in block.split("\n"))
        return block


@asynccontextmanager
async def listening(wire: Wire, id_: int | str = 1, **notifications: Any) -> AsyncIterator[Listening]:
    """Listen for the time of the block; leaving it closes the connection."""
    async with _posted(wire, id_, notifications) as response:
        assert response.status == 200, await response.read()
        assert response.content_type == "text/event-stream"
        assert response.headers["X-Accel-Buffering"] == "no"
        yield Listening(id_, response)


async def refused(wire: Wire, id_: int | str = 1, **notifications: Any) -> tuple[int, Json]:
    """Listen in vain: the HTTP status and the JSON-RPC error."""
    async with _posted(wire, id_, notifications) as response:
        assert response.content_type == "application/json"
        message = json.loads(await response.read())
        assert message["id"] == id_
        checked_message(METHOD, message)
        error: Json = message["error"]
        return response.status, error


def _posted(wire: Wire, id_: int | str, notifications: Json) -> Any:
    meta = "io.modelcontextprotocol/"
    params = {
        "notifications": notifications,
        "_meta": {
            f"{meta}protocolVersion": MODERN,
            f"{meta}clientInfo": {"name": "wire", "version": "1"},
            f"{meta}clientCapabilities": wire.capabilities,
        },
    }
    body = {"jsonrpc": "2.0", "id": id_, "method": METHOD, "params": params}
    return wire._http.post(wire.url, data=json.dumps(body), headers=wire._headers(METHOD, {}))
