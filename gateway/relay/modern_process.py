"""A modern server that is a process: HTTP requests in, lines out, each answer back to who asked. Nothing is judged.

One process serves everybody, as one modern server does over HTTP: it keeps no
sessions, and a change that one client makes is heard by all who listen. On a
line nothing tells clients apart but ids, and these repeat from client to
client; so a request's id and progress token are ours on the way down and the
client's own on the way up. All else goes through as it is, `requestState` above all.

The process sees no headers, so what it could say of `Mcp-Param-*` is said here: what its
tools ask clients to repeat is read from its own list, as anybody would see it.

Log messages name no request on this transport. One goes to the only request
under way that wants it; where several do, to none: it might be another's.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from gateway.eras.lists import sanitise
from gateway.eras.notifications import TOOLS_CHANGED
from gateway.errors import GatewayError, InvalidRequest, UpstreamLost
from gateway.relay.legacy_streams import LegacyStream, encoded
from gateway.relay.listener import Reply, RpcError
from gateway.relay.passage import Knock, Passage
from gateway.relay.request import ANONYMOUS, ClientRequest, Principal
from gateway.relay.tool_index import METHOD as TOOLS_LIST
from gateway.relay.tool_index import ToolIndex
from gateway.telemetry.names import Outcome
from gateway.upstreams.background import Background
from gateway.upstreams.courtesies import Courtesies
from gateway.upstreams.transport import Channel, SessionGone
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
    encode,
    encode_notification,
    encode_request,
    parse,
)
from gateway.wire.versions import (
    LOG_LEVELS,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_PROTOCOL_VERSION,
    META_SERVER_INFO,
    META_SUBSCRIPTION_ID,
    MODERN,
)

Start: TypeAlias = Callable[[], Awaitable[Channel]]
"""Starts the process; nothing has been said to it yet, or it has said what it is."""

_LISTEN: Final = "subscriptions/listen"
_PROGRESS: Final = "notifications/progress"
_LOG: Final = "notifications/message"
_CANCELLED: Final = "notifications/cancelled"
_STREAM_HEADERS: Final = (
    ("Content-Type", names.EVENT_STREAM),
    ("Cache-Control", "no-cache"),
    ("X-Accel-Buffering", "no"),
)
_STATUSES: Final = dict.fromkeys((-32700, -32600, -32602, -32020, -32021, -32022), 400) | {-32601: 404}
"""What modern servers over HTTP say with these errors; with any other it is 200."""
_FAREWELL_SECONDS: Final = 6.0
_ANYBODY: Final = Principal(ANONYMOUS, b"", is_authenticated=False)
_ABLE_TO_ALL: Final[Mapping[str, Any]] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
"""Nothing is left out of a list for one who can do all this."""


@dataclass(eq=False, slots=True)
class _Asked:
    """A request under way."""

    id: Id
    """The client's own."""
    method: str
    token: Raw | None
    level: str | None
    stream: LegacyStream = field(default_factory=LegacyStream)
    is_answered: bool = False


class ModernProcess:
    """The process of one upstream: started when it is needed, and again when it has ended; until `close`."""

    def __init__(
        self,
        start: Start,
        on_end: Callable[[], None],
        gateway_info: Mapping[str, Any],
        *,
        list_seconds: float,
    ) -> None:
        self._start = start
        self._on_end = on_end
        self._gateway_info = gateway_info
        self._channel: Channel | None = None
        self._starting = asyncio.Lock()
        self._numbers = count(1)
        self._asked: dict[int, _Asked] = {}
        self._background = Background()
        self._courtesies = Courtesies(self._background)
        self._farewells = Background()
        self._tools = ToolIndex(self._read_tools, self._background, seconds=list_seconds)

    async def check(self, request: ClientRequest) -> None:
        """Let a `tools/call` pass if its headers say what its arguments say.

        Raises:
            HeaderMismatch: they do not.
            GatewayError: it has such headers, and what the tool asks for cannot be found out.
        """
        if not self._tools.has_no_say(request):
            # One process, one list: whose call it is makes no difference.
            own = replace(
                request, principal=_ANYBODY, capabilities=_ABLE_TO_ALL, client_info=self._gateway_info
            )
            await self._tools.check(own)

    async def serve(self, knock: Knock) -> Passage:
        """The response to a request or a notification, which the edge has looked at.

        Raises:
            UpstreamFault: the process cannot be started.
        """
        try:
            message = parse(knock.body)
        except (NotJson, NotJsonRpc) as error:
            raise InvalidRequest(str(error)) from None
        if not isinstance(message, Request):
            return Passage.of(
                202
            )  # what a client says of a request names it by an id that the process never saw
        number, asked = await self._begin(message)
        try:
            only = await asked.stream.first()
        except BaseException:
            self._leave(number, asked)
            raise
        if only is not None:
            return Passage.of(_status(only), encoded(only))
        return Passage(200, _STREAM_HEADERS, asked.stream.events(), left=lambda: self._leave(number, asked))

    def end_streams(self) -> None:
        """Say goodbye to all who listen."""
        for number, asked in list(self._asked.items()):
            if asked.method == _LISTEN:
                self._finish(asked, self._goodbye(asked))
                self._tell_cancelled(number)

    async def close(self) -> None:
        """End the process."""
        for asked in self._asked.values():
            asked.stream.end()
        channel, self._channel = self._channel, None
        await self._background.close()
        if channel is not None:
            await channel.close()
        await self._farewells.settle(_FAREWELL_SECONDS)
        await self._farewells.close()

    # --- down ----------------------------------------------------------------------------

    async def _reached(self) -> Channel:
        async with self._starting:
            if self._channel is None:
                self._channel = channel = await self._start()
                channel.speak(MODERN)
                self._background.start(self._listen(channel), "modern-process")
            return self._channel

    async def _listen(self, channel: Channel) -> None:
        try:
            await channel.listen(self._hear, lambda: None)
        except GatewayError:
            pass  # who waits is told by its own request
        finally:
            self._forget(channel)

    def _forget(self, channel: Channel) -> None:
        if self._channel is channel:
            self._channel = None
            self._tools.forget()
            self._on_end()
            self._farewells.start(_closed(channel), "end-modern-process")

    async def _begin(self, message: Request) -> tuple[int, _Asked]:
        channel = await self._reached()
        number = next(self._numbers)
        asked = self._asked[number] = _Asked(message.id, message.method, *_of_meta(message.params))
        self._background.start(self._run(channel, number, asked, message), "modern-call")
        return number, asked

    async def _read_tools(self, page: ClientRequest) -> Reply:
        meta = {
            META_PROTOCOL_VERSION: MODERN,
            META_CLIENT_INFO: page.client_info,
            META_CLIENT_CAPABILITIES: page.capabilities,
        }
        question = Request("tools", TOOLS_LIST, {**page.params, "_meta": Raw(encode(meta))})
        number, asked = await self._begin(question)
        answer: Message | None = None
        try:
            while answer is None:  # nothing but the answer was asked for; it may be long in coming
                answer = await asked.stream.first()
        finally:
            self._leave(number, asked)
        if isinstance(answer, Failure):
            return Reply(Outcome.ERROR, error=RpcError(answer.code, answer.message))
        members = _members(answer.result) if isinstance(answer, Result) else {}
        result = {**members, "tools": sanitise(TOOLS_LIST, members.get("tools", Raw(b"[]")))}
        self._tools.note(page, result)
        return Reply(Outcome.COMPLETE, result=result)

    async def _run(self, channel: Channel, number: int, asked: _Asked, request: Request) -> None:
        def deliver(message: Message) -> bool:
            if not isinstance(message, Result | Failure):
                return self._hear(message)
            self._finish(asked, _upward(message, asked))
            return True

        line = _downward(request, number)
        try:
            try:
                await channel.request(number, line, deliver)
            except SessionGone:
                # The process took nothing any more, so it did not run the request: once more, to a new one.
                self._forget(channel)
                await (await self._reached()).request(number, line, deliver)
        except GatewayError as error:
            self._finish(asked, Failure(asked.id, error.rpc_code, error.message, None))
        finally:
            self._finish(asked, Failure(asked.id, UpstreamLost.rpc_code, "The upstream server is gone", None))
            self._asked.pop(number, None)

    async def _tell(self, line: bytes) -> None:
        if self._channel is not None:
            await self._channel.send(line)

    def _leave(self, number: int, asked: _Asked) -> None:
        """The client has closed its response: on this transport that has to be said."""
        if not asked.is_answered:
            asked.is_answered = True
            self._tell_cancelled(number)

    def _tell_cancelled(self, number: int) -> None:
        self._asked.pop(number, None)
        if self._channel is not None:
            self._background.start(_cancel(self._channel, number), "modern-cancel")

    # --- up ------------------------------------------------------------------------------

    def _finish(self, asked: _Asked, answer: Result | Failure) -> None:
        if not asked.is_answered:
            asked.is_answered = True
            asked.stream.put(answer)
            asked.stream.end()

    def _goodbye(self, asked: _Asked) -> Result:
        """The end of a subscription, in our own words."""
        meta = {META_SUBSCRIPTION_ID: asked.id, META_SERVER_INFO: self._gateway_info}
        return Result(asked.id, Raw(encode({"resultType": "complete", "_meta": meta})))

    def _hear(self, message: Message) -> bool:
        match message:
            case Notification():
                self._hear_notification(message)
            case Request(method="ping"):
                # There are none in this revision, but servers in Go ping whoever is there, and end without a pong.
                self._courtesies.pong(message, self._tell)
            case Request():
                self._courtesies.refuse(message, self._tell)  # a modern server asks nothing of its client
            case _:
                pass  # an answer to nothing that is waited for
        return False

    def _hear_notification(self, message: Notification) -> None:
        match message.method:
            case "notifications/progress":
                self._hear_progress(message)
            case "notifications/message":
                self._hear_log(message)
            case "notifications/cancelled":
                asked = self._asked.get(_number(message.params.get("requestId")))
                if asked is not None and asked.method == _LISTEN:
                    self._finish(asked, self._goodbye(asked))
            case _:
                self._hear_change(message)

    def _hear_progress(self, message: Notification) -> None:
        asked = self._asked.get(_number(message.params.get("progressToken")))
        if asked is not None and asked.token is not None and not asked.is_answered:
            asked.stream.put(Notification(_PROGRESS, {**message.params, "progressToken": asked.token}))

    def _hear_log(self, message: Notification) -> None:
        level = _value(message.params.get("level"))
        if level not in LOG_LEVELS:
            return
        wanting = [
            asked
            for asked in self._asked.values()
            if asked.level is not None
            and LOG_LEVELS.index(level) >= LOG_LEVELS.index(asked.level)
            and not asked.is_answered
        ]
        if len(wanting) == 1:
            wanting[0].stream.put(message)

    def _hear_change(self, message: Notification) -> None:
        if message.method == TOOLS_CHANGED:
            self._tools.forget()
        meta = _members(message.params.get("_meta"))
        asked = self._asked.get(_number(meta.get(META_SUBSCRIPTION_ID)))
        if asked is not None and not asked.is_answered:
            own = {**meta, META_SUBSCRIPTION_ID: Raw(encode(asked.id))}
            asked.stream.put(Notification(message.method, {**message.params, "_meta": _object(own)}))


async def _cancel(channel: Channel, number: int) -> None:
    params = {"requestId": number, "reason": "Nobody waits for it any more"}
    try:
        await channel.send(encode_notification(_CANCELLED, params))
    except GatewayError:
        return  # then there is nothing to cancel


async def _closed(channel: Channel) -> None:
    await channel.close()


def _downward(request: Request, number: int) -> bytes:
    meta = _members(request.params.get("_meta"))
    if "progressToken" not in meta:
        return encode_request(number, request.method, request.params)
    own = {**meta, "progressToken": Raw(encode(number))}
    return encode_request(number, request.method, {**request.params, "_meta": _object(own)})


def _upward(answer: Result | Failure, asked: _Asked) -> Result | Failure:
    if isinstance(answer, Failure):
        return Failure(asked.id, answer.code, answer.message, answer.data)
    if asked.method != _LISTEN:
        return Result(asked.id, answer.result)
    members = _members(answer.result)
    meta = {**_members(members.get("_meta")), META_SUBSCRIPTION_ID: Raw(encode(asked.id))}
    return Result(asked.id, _object({**members, "_meta": _object(meta)}))


def _of_meta(params: Params) -> tuple[Raw | None, str | None]:
    meta = _members(params.get("_meta"))
    level = _value(meta.get(META_LOG_LEVEL))
    return meta.get("progressToken"), level if level in LOG_LEVELS else None


def _status(answer: Message) -> int:
    return _STATUSES.get(answer.code, 200) if isinstance(answer, Failure) else 200


def _number(raw: Raw | None) -> int:
    value = _value(raw)
    return value if isinstance(value, int) else -1


def _value(raw: Raw | None) -> Any:
    try:
        return None if raw is None else decode(raw)
    except NotJson:
        return None


def _members(raw: Raw | None) -> Params:
    try:
        return (None if raw is None else decode_members(raw)) or {}
    except NotJson:
        return {}


def _object(members: Mapping[str, Raw]) -> Raw:
    return Raw(encode(members))
