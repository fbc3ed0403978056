"""Legacy clients over Streamable HTTP, served by an upstream of another transport. It does not know which.

Each session of a client is one channel to the upstream. Messages go through as
they are, ids and all: only the way they travel changes. What the server says of
its own accord names no request, so it goes out with the request it can belong
to: that of its progress token, else the newest one that is under way, else on
the client's GET stream, else it waits for one.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.errors import GatewayError, Overloaded, UpstreamTimedOut
from gateway.relay.legacy_streams import LegacyStream, encoded
from gateway.relay.passage import Knock, Passage
from gateway.upstreams.background import Background
from gateway.upstreams.backlog import Backlog
from gateway.upstreams.transport import Channel
from gateway.wire import headers as names
from gateway.wire.jsonrpc import (
    Failure,
    Id,
    Message,
    Notification,
    NotJson,
    NotJsonRpc,
    Params,
    Raw,
    Request,
    Result,
    decode,
    decode_members,
    encode_error,
    parse,
)

_MOST_KEPT: Final = 256
"""Messages that wait for a stream to go out on; beyond it the oldest go."""
_ROUNDS_OF_REAPING: Final = 4
_SEND_SECONDS: Final = 10.0
_FAREWELL_SECONDS: Final = 6.0
_STREAM_HEADERS: Final = (
    ("Content-Type", names.EVENT_STREAM),
    ("Cache-Control", "no-cache, no-transform"),
    ("X-Accel-Buffering", "no"),
)
_PROGRESS: Final = "notifications/progress"
_STANDING: Final = frozenset(
    {
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    }
)
"""What belongs to no request."""

Connect = Callable[[str | None], Awaitable[Channel]]
"""Opens a channel for whoever has this `Authorization`; nothing has been said on it yet."""


class LegacySession:
    """One client's session."""

    def __init__(self, channel: Channel, owner: str | None) -> None:
        self.channel = channel
        self.background = Background()
        self.standing: LegacyStream | None = None
        self.last_used = asyncio.get_running_loop().time()
        self._owner = (owner or "").encode("utf-8", "surrogateescape")
        self._running: dict[Id, LegacyStream] = {}
        self._kept = Backlog(_MOST_KEPT)

    def is_of(self, owner: str | None) -> bool:
        """Does it belong to this caller, who is known by name or else by a credential?"""
        given = (owner or "").encode("utf-8", "surrogateescape")
        return hmac.compare_digest(given, self._owner)

    @property
    def is_idle(self) -> bool:
        """Does nobody wait for anything?"""
        return not self._running and self.standing is None

    def request(self, request: Request, body: bytes) -> LegacyStream | None:
        """Send a request; its answer comes on the stream. None: one of this id is under way."""
        if request.id in self._running:
            return None
        stream = self._running[request.id] = LegacyStream(_progress_token(request.params))
        self.background.start(self._run(request, body, stream), "bridged-call")
        return stream

    def stand(self) -> LegacyStream | None:
        """The stream for what belongs to no request. None: there is one."""
        if self.standing is not None:
            return None
        self.standing = stream = LegacyStream()
        while self._kept:
            stream.put(self._kept.take())
        return stream

    def hear(self, message: Message) -> bool:
        """The server said something of its own accord."""
        stream = self._stream_for(message)
        if stream is None:
            self._kept.put(message)
        else:
            stream.put(message)
        return False

    def left(self, stream: LegacyStream) -> None:
        """Nobody reads this stream any more."""
        stream.has_reader = False
        if stream is self.standing:
            self.standing = None
        self.last_used = asyncio.get_running_loop().time()

    async def close(self) -> None:
        """End it, here and there."""
        for stream in self._running.values():
            stream.end()
        if self.standing is not None:
            self.standing.end()
        await self.background.close()
        await self.channel.close()

    async def _run(self, request: Request, body: bytes, stream: LegacyStream) -> None:
        def deliver(message: Message) -> bool:
            if isinstance(message, Result | Failure):
                stream.put(message)
                return True
            return self.hear(message)

        try:
            await self.channel.request(request.id, body, deliver)
        except GatewayError as error:
            stream.put(Failure(request.id, error.rpc_code, error.message, None))
        finally:
            stream.end()
            self._running.pop(request.id, None)
            self.last_used = asyncio.get_running_loop().time()

    def _stream_for(self, message: Message) -> LegacyStream | None:
        running = [stream for stream in self._running.values() if stream.has_reader]
        if isinstance(message, Notification):
            if message.method in _STANDING:
                return self.standing
            if message.method == _PROGRESS:
                token = _decoded(message.params.get("progressToken"))
                running = [stream for stream in running if stream.token == token] or running
        return running[-1] if running else self.standing


class LegacySessions:
    """All such sessions of one upstream, from `start` to `close`."""

    def __init__(
        self, connect: Connect, *, most: int, idle: float, patience: float, new_id: Callable[[], str]
    ) -> None:
        self._connect = connect
        self._patience = patience
        self._most = most
        self._idle = idle
        self._new_id = new_id
        self._sessions: dict[str, LegacySession] = {}
        self._opening = 0
        self._background = Background()
        self._farewells = Background()

    def start(self) -> None:
        """Begin to close sessions that nobody uses."""
        self._background.start(self._reap(), "reap-legacy-sessions")

    async def close(self) -> None:
        """Close every session."""
        for session_id in list(self._sessions):
            self._end(session_id)
        await self._farewells.settle(_FAREWELL_SECONDS)
        await self._farewells.close()
        await self._background.close()

    async def serve(self, knock: Knock) -> Passage:
        """Answer one HTTP request of a client."""
        match knock.verb:
            case "POST":
                return await self._post(knock)
            case "GET":
                return self._get(knock)
            case _:
                return self._delete(knock)

    # --- the three verbs ---------------------------------------------------------------

    async def _post(self, knock: Knock) -> Passage:
        try:
            message = parse(knock.body)
        except NotJson:
            return Passage.refused(400, -32700, "Parse error")
        except NotJsonRpc as error:
            return Passage.of(400, encode_error(error.id, -32600, "Invalid Request"))
        if knock.session_id is None and isinstance(message, Request) and message.method == "initialize":
            return await self._initialize(message, knock)
        session = self._find(knock)
        if session is None:
            return _no_session(knock)
        if not isinstance(message, Request):
            return await _told(session, knock.body)
        stream = session.request(message, knock.body)
        if stream is None:
            return Passage.of(
                400, encode_error(message.id, -32600, "A request with this id is already under way")
            )
        return await _answer(session, stream)

    def _get(self, knock: Knock) -> Passage:
        session = self._find(knock)
        if session is None:
            return _no_session(knock)
        stream = session.stand()
        if stream is None:
            return Passage.refused(409, -32000, "Conflict: Only one SSE stream is allowed per session")
        return Passage(200, _STREAM_HEADERS, stream.events(), left=lambda: session.left(stream))

    def _delete(self, knock: Knock) -> Passage:
        if self._find(knock) is None or knock.session_id is None:
            return _no_session(knock)
        self._end(knock.session_id)  # a process takes its time to end: the client need not wait for it
        return Passage.of(200)

    async def _initialize(self, request: Request, knock: Knock) -> Passage:
        if len(self._sessions) + self._opening >= self._most:
            raise Overloaded("too many sessions of legacy clients")
        self._opening += 1
        try:
            session = LegacySession(await self._connect(knock.authorization), knock.claimant)
        finally:
            self._opening -= 1
        session_id = self._new_id()
        self._sessions[session_id] = session
        self._background.start(self._listen(session_id, session), "bridged-session")
        stream = session.request(request, knock.body)
        if stream is None:
            raise AssertionError("the first request of a session")
        stream.has_reader = False  # what the server says before it has introduced itself can wait
        try:
            answer = await stream.first(self._patience)
        except BaseException:
            self._end(session_id)
            raise
        if not isinstance(answer, Result):
            self._end(session_id)
            if answer is None:
                raise UpstreamTimedOut("initialize")
            return Passage.of(200, encoded(answer))
        session.channel.speak(_version(answer.result))
        return Passage.of(200, encoded(answer), headers=((names.SESSION_ID, session_id),))

    # --- their life --------------------------------------------------------------------

    def _find(self, knock: Knock) -> LegacySession | None:
        session = self._sessions.get(knock.session_id or "")
        if session is None or not session.is_of(knock.claimant):
            return None
        if knock.renewed is not None:
            session.channel.authorize(knock.renewed)
        session.last_used = asyncio.get_running_loop().time()
        return session

    async def _listen(self, session_id: str, session: LegacySession) -> None:
        try:
            await session.channel.listen(session.hear, lambda: None)
        except GatewayError:
            self._end(session_id)

    def _end(self, session_id: str) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._farewells.start(session.close(), "close-bridged-session")

    async def _reap(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(self._idle / _ROUNDS_OF_REAPING)
            for session_id, session in list(self._sessions.items()):
                if session.is_idle and clock() - session.last_used >= self._idle:
                    self._end(session_id)


async def _told(session: LegacySession, body: bytes) -> Passage:
    """A notification, or the answer to something that the server asked."""
    try:
        async with asyncio.timeout(_SEND_SECONDS):
            await session.channel.send(body)
    except TimeoutError:
        raise UpstreamTimedOut("a message was not taken") from None
    return Passage.of(202)


async def _answer(session: LegacySession, stream: LegacyStream) -> Passage:
    """JSON if the answer is all there is to say, else a stream. A client that leaves does not cancel."""
    try:
        only = await stream.first()
    except BaseException:
        session.left(stream)
        raise
    if only is not None:
        return Passage.of(200, encoded(only))
    return Passage(200, _STREAM_HEADERS, stream.events(), left=lambda: session.left(stream))


def _no_session(knock: Knock) -> Passage:
    if knock.session_id is None:
        return Passage.refused(400, -32600, "Bad Request: Missing session ID")
    return Passage.refused(404, -32001, "Session not found")


def _progress_token(params: Params) -> object:
    raw = params.get("_meta")
    try:
        members = None if raw is None else decode_members(raw)
    except NotJson:
        return None
    return None if members is None else _decoded(members.get("progressToken"))


def _decoded(raw: Raw | None) -> object:
    try:
        return None if raw is None else decode(raw)
    except NotJson:
        return None


def _version(result: Raw) -> str:
    members = decode_members(result) or {}
    return str(_decoded(members.get("protocolVersion")))
