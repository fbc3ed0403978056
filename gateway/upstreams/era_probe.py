"""Is a server modern? One `server/discover`, and what its answer proves. It keeps nothing and decides nothing else.

No legacy server answers it with success, whatever else it does; so anything but
a well-formed answer is a legacy server's. Over HTTP no answer at all, a refusal
of the credentials or a server's own failure prove nothing. A process that runs
and does not answer, or ends at such a question, is a legacy server.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from aiohttp import hdrs

from gateway.errors import GatewayError
from gateway.upstreams.farewell import Ending, end_session
from gateway.upstreams.forwarding import Forwarder
from gateway.upstreams.http1_connection import Response
from gateway.upstreams.http_client import sent
from gateway.upstreams.transport import Channel
from gateway.wire import headers as names
from gateway.wire.jsonrpc import (
    Failure,
    Message,
    NotJson,
    NotJsonRpc,
    Result,
    decode,
    encode_request,
    parse,
)
from gateway.wire.sse import EventTooLarge, SseParser
from gateway.wire.versions import (
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_PROTOCOL_VERSION,
    MODERN,
    MODERN_VERSIONS,
)

Era: TypeAlias = Literal["modern", "legacy"]

METHOD: Final = "server/discover"
_ID: Final = "era"
_SECONDS: Final = 5.0
_PROCESS_SECONDS: Final = 6.0
"""The same for a process, which may have to be fetched first. One that is silent for longer is ended and started
anew, so this is what the first discovery can wait for; it is lost on a legacy server that ignores the question."""
_MOST_BYTES: Final = 1024 * 1024
_PROVES_NOTHING: Final = frozenset({401, 403, 408, 429})


async def ask_era(
    forwarder: Forwarder, *, version: str, authorization: str | None, ending: Ending = "auto"
) -> tuple[Era | None, dict[str, Any]]:
    """The server's era, None if that cannot be known now; and how a modern one describes itself."""
    headers = [
        (hdrs.CONTENT_TYPE, names.JSON),
        (hdrs.ACCEPT, f"{names.JSON}, {names.EVENT_STREAM}"),
        (hdrs.USER_AGENT, f"holdfast/{version}"),
        (names.PROTOCOL_VERSION, MODERN),
        (names.METHOD, METHOD),
        *([] if authorization is None else [(hdrs.AUTHORIZATION, authorization)]),
    ]
    session = None
    try:
        async with asyncio.timeout(_SECONDS), forwarder.sent("POST", headers, _question(version)) as response:
            session = response.headers.get(names.SESSION_ID)
            if response.status in _PROVES_NOTHING or response.status >= 500:
                return None, {}
            if response.status != 200:
                return "legacy", {}
            found = await _discovered(response)
    except (GatewayError, TimeoutError):
        return None, {}
    finally:
        if session is not None:
            await _end(forwarder, session, authorization, ending)
    return ("legacy", {}) if found is None else ("modern", found)


async def _end(forwarder: Forwarder, session: str, authorization: str | None, ending: Ending) -> None:
    """Some legacy servers open a session for whatever comes without one, even if they then refuse it."""
    headers = [
        (names.SESSION_ID, session),
        *([] if authorization is None else [(hdrs.AUTHORIZATION, authorization)]),
    ]

    def knock(verb: str, own: Mapping[str, str], body: bytes | None) -> sent:
        return forwarder.sent(verb, [*headers, *own.items()], body or b"")

    await end_session(session, None, ending, knock)


async def ask_process(channel: Channel, *, version: str) -> tuple[Era, dict[str, Any], bool]:
    """The era of the server on a channel, how a modern one describes itself, and whether it can be used further."""
    answer: Message | None = None

    def deliver(message: Message) -> bool:
        nonlocal answer
        if isinstance(message, Result | Failure):
            answer = message
        return answer is not None

    try:
        async with asyncio.timeout(_PROCESS_SECONDS):
            await channel.request(_ID, _question(version), deliver)
    except (GatewayError, TimeoutError):
        return "legacy", {}, False
    found = _description(answer)
    return ("legacy", {}, True) if found is None else ("modern", found, True)


def _question(version: str) -> bytes:
    meta = {
        META_PROTOCOL_VERSION: MODERN,
        META_CLIENT_INFO: {"name": "holdfast", "version": version},
        META_CLIENT_CAPABILITIES: {},
    }
    return encode_request(_ID, METHOD, {"_meta": meta})


async def _discovered(response: Response) -> dict[str, Any] | None:
    kind = names.media_type(response.headers.get(hdrs.CONTENT_TYPE))
    if kind == names.EVENT_STREAM:
        parser = SseParser(_MOST_BYTES)
        async for chunk in response.iter_any():
            try:
                events = parser.feed(chunk)
            except EventTooLarge:
                return None
            for event in events:
                if event.data:
                    return _described(event.data)
        return None
    return _described(await response.read(_MOST_BYTES)) if kind == names.JSON else None


def _described(data: bytes) -> dict[str, Any] | None:
    try:
        return _description(parse(data))
    except (NotJson, NotJsonRpc):
        return None


def _description(answer: Message | None) -> dict[str, Any] | None:
    try:
        value = decode(answer.result) if isinstance(answer, Result) else None
    except NotJson:
        return None
    supported = value.get("supportedVersions") if isinstance(value, dict) else None
    is_modern = isinstance(supported, list) and any(known in supported for known in MODERN_VERSIONS)
    return value if is_modern else None
