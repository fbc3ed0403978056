"""Legacy clients over HTTP+SSE (2024-11-05), served by an upstream of another transport. It does not know which.

A visit is what this transport knows of a session: the one stream, and the
address for what the client has to say. It lasts as long as the stream. Messages
go through as they are, ids and all; nothing is opened upstream before the
client has said its first word, so that a stream alone costs the server nothing.
"""

import asyncio
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeAlias

from gateway.errors import GatewayError, Overloaded, UpstreamTimedOut
from gateway.relay.legacy_streams import LegacyStream
from gateway.relay.passage import Knock, Passage
from gateway.upstreams.background import Background
from gateway.upstreams.transport import Channel
from gateway.wire import headers as names
from gateway.wire.jsonrpc import (
    Failure,
    Id,
    Message,
    NotJson,
    NotJsonRpc,
    Request,
    Result,
    decode,
    decode_members,
    encode_error,
    parse,
)

Connect: TypeAlias = Callable[[str | None], Awaitable[Channel]]
"""Opens a channel for whoever has this `Authorization`; nothing has been said on it yet."""

VISIT: Final = "visit."
"""How an address begins that is a visit's. No sealed address has a full stop in it."""
_INITIALIZE: Final = "initialize"
_SEND_SECONDS: Final = 10.0
_STAND_SECONDS: Final = 5.0
"""How long a client waits for its server's own stream, which not every server has."""
_FAREWELL_SECONDS: Final = 6.0
_HEADERS: Final = (
    ("Content-Type", names.EVENT_STREAM),
    ("Cache-Control", "no-cache, no-transform"),
    ("X-Accel-Buffering", "no"),
)


class Visit:
    """One client, from its GET to the end of the stream that this brought."""

    def __init__(self, knock: Knock, connect: Connect, *, patience: float) -> None:
        self.stream = LegacyStream()
        self.is_leaving = False
        """Is it to end when nothing is under way?"""
        self._claimant = _bytes(knock.claimant)
        self._authorization = knock.authorization
        self._connect = connect
        self._patience = patience
        self._channel: Channel | None = None
        self._opening = asyncio.Lock()
        self._running: set[Id] = set()
        self._background = Background()

    def is_of(self, claimant: str | None) -> bool:
        """Does it belong to this caller, who is known by name or else by a credential?"""
        return hmac.compare_digest(_bytes(claimant), self._claimant)

    def authorize(self, authorization: str) -> None:
        """Show the server this credential from now on."""
        self._authorization = authorization
        if self._channel is not None:
            self._channel.authorize(authorization)

    def leave(self) -> None:
        """End it, as soon as nothing is under way."""
        self.is_leaving = True
        if not self._running:
            self.stream.end()

    async def take(self, message: Message, body: bytes) -> Passage:
        """What the client said. Answers come on the stream."""
        if isinstance(message, Request):
            if message.id in self._running:
                return Passage.of(
                    400, encode_error(message.id, -32600, "A request with this id is already under way")
                )
            self._running.add(message.id)
            self._background.start(self._run(message, body), "visitor-call")
        else:
            channel = await self._reached()
            try:
                async with asyncio.timeout(_SEND_SECONDS):
                    await channel.send(body)
            except TimeoutError:
                raise UpstreamTimedOut("a message was not taken") from None
        return Passage.of(202, b"Accepted", kind="text/plain")

    async def close(self) -> None:
        """End it, here and there."""
        self.stream.end()
        await self._background.close()
        if self._channel is not None:
            await self._channel.close()

    async def _reached(self) -> Channel:
        async with self._opening:
            if self._channel is None:
                self._channel = channel = await self._connect(self._authorization)
                if channel.has_one_stream:
                    await self._stand(channel)
            return self._channel

    async def _run(self, request: Request, body: bytes) -> None:
        answer: Result | Failure | None = None

        def deliver(message: Message) -> bool:
            nonlocal answer
            if isinstance(message, Result | Failure):
                answer = message
                return True
            return self._hear(message)

        try:
            channel = await self._reached()
            if request.method == _INITIALIZE:
                await self._introduce(channel, request.id, body, deliver)
                if isinstance(answer, Result):
                    channel.speak(_version(answer))
                    if not channel.has_one_stream:
                        await self._stand(channel)  # before the client goes on: what is said unheard is lost
            else:
                await channel.request(request.id, body, deliver)
        except GatewayError as error:
            answer = Failure(request.id, error.rpc_code, error.message, None)
        finally:
            self._running.discard(request.id)
            if answer is None:
                self.stream.end()  # it waits for an answer that cannot come any more
            else:
                self._put(answer)
            if self.is_leaving:
                self.leave()

    async def _introduce(
        self, channel: Channel, request_id: Id, body: bytes, deliver: Callable[[Message], bool]
    ) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await channel.request(request_id, body, deliver)
        except TimeoutError:
            raise UpstreamTimedOut(_INITIALIZE) from None

    async def _stand(self, channel: Channel) -> None:
        is_open = asyncio.Event()
        listening = self._background.start(self._listen(channel, is_open), "visitor-stream")
        opened = self._background.start(is_open.wait(), "visitor-stream-open")
        await asyncio.wait([listening, opened], timeout=_STAND_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        opened.cancel()

    async def _listen(self, channel: Channel, is_open: asyncio.Event) -> None:
        try:
            await channel.listen(self._hear, is_open.set)
        except GatewayError:
            self.stream.end()  # in this transport a client knows by it that its session is gone

    def _hear(self, message: Message) -> bool:
        self._put(message)
        return False

    def _put(self, message: Message) -> None:
        if self.stream.is_full:
            self.stream.end()  # it reads nothing, and an answer left out would be waited for in vain
        else:
            self.stream.put(message)


class Visits:
    """All visits of clients to one upstream, until `close`."""

    def __init__(self, connect: Connect, *, most: int, patience: float, new_id: Callable[[], str]) -> None:
        self._connect = connect
        self._most = most
        self._patience = patience
        self._new_id = new_id
        self._visits: dict[str, Visit] = {}
        self._is_ending = False
        self._farewells = Background()

    def begin(self, knock: Knock, own_address: Callable[[str], str]) -> Passage:
        """The stream of a new visit; `own_address` makes a visit's name into an address of ours.

        Raises:
            Overloaded: there are too many.
        """
        if self._is_ending or len(self._visits) >= self._most:
            raise Overloaded("too many sessions of legacy clients")
        visit_id = VISIT + self._new_id()
        visit = self._visits[visit_id] = Visit(knock, self._connect, patience=self._patience)
        endpoint = f"event: endpoint\ndata: {own_address(visit_id)}\n\n".encode()
        return Passage(200, _HEADERS, _led_by(endpoint, visit.stream), left=lambda: self._end(visit_id))

    async def post(self, knock: Knock, visit_id: str) -> Passage:
        """What a client says at its address."""
        visit = self._visits.get(visit_id)
        if visit is None or not visit.is_of(knock.claimant):
            return Passage.refused(404, -32001, "Session not found")
        if knock.verb != "POST":
            return Passage.refused(405, -32000, "Method not allowed")
        if knock.renewed is not None:
            visit.authorize(knock.renewed)
        try:
            message = parse(knock.body)
        except NotJson:
            return Passage.refused(400, -32700, "Parse error")
        except NotJsonRpc as error:
            return Passage.of(400, encode_error(error.id, -32600, "Invalid Request"))
        return await visit.take(message, knock.body)

    def end_idle(self) -> None:
        """End each visit as soon as nothing is under way in it; begin none."""
        self._is_ending = True
        for visit in self._visits.values():
            visit.leave()

    async def close(self) -> None:
        """End every visit."""
        for visit_id in list(self._visits):
            self._end(visit_id)
        await self._farewells.settle(_FAREWELL_SECONDS)
        await self._farewells.close()

    def _end(self, visit_id: str) -> None:
        visit = self._visits.pop(visit_id, None)
        if visit is not None:
            self._farewells.start(visit.close(), "close-visit")


async def _led_by(first: bytes, stream: LegacyStream) -> AsyncIterator[bytes]:
    yield first
    async for chunk in stream.events():
        yield chunk


def _bytes(claimant: str | None) -> bytes:
    return (claimant or "").encode("utf-8", "surrogateescape")


def _version(answer: Result) -> str:
    raw = (decode_members(answer.result) or {}).get("protocolVersion")
    return str(None if raw is None else decode(raw))
