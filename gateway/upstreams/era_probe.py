"""Is a server modern? One `server/discover`, and what its answer proves. It keeps nothing and decides nothing else.

No legacy server answers it with success, whatever else it does; so anything but
a well-formed answer is a legacy server's. No answer at all, a refusal of the
credentials or a server's own failure prove nothing.
"""

import asyncio
import contextlib
from typing import Any, Final, Literal, TypeAlias

from aiohttp import hdrs

from gateway.errors import GatewayError
from gateway.upstreams.forwarding import Forwarder
from gateway.upstreams.http1_connection import Response
from gateway.wire import headers as names
from gateway.wire.jsonrpc import (
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
_SECONDS: Final = 5.0
_MOST_BYTES: Final = 1024 * 1024
_PROVES_NOTHING: Final = frozenset({401, 403, 408, 429})


async def ask_era(
    forwarder: Forwarder, *, version: str, authorization: str | None
) -> tuple[Era | None, dict[str, Any]]:
    """The server's era, None if that cannot be known now; and how a modern one describes itself."""
    meta = {
        META_PROTOCOL_VERSION: MODERN,
        META_CLIENT_INFO: {"name": "holdfast", "version": version},
        META_CLIENT_CAPABILITIES: {},
    }
    headers = [
        (hdrs.CONTENT_TYPE, names.JSON),
        (hdrs.ACCEPT, f"{names.JSON}, {names.EVENT_STREAM}"),
        (hdrs.USER_AGENT, f"holdfast/{version}"),
        (names.PROTOCOL_VERSION, MODERN),
        (names.METHOD, METHOD),
        *([] if authorization is None else [(hdrs.AUTHORIZATION, authorization)]),
    ]
    body = encode_request("era", METHOD, {"_meta": meta})
    session = None
    try:
        async with asyncio.timeout(_SECONDS), forwarder.sent("POST", headers, body) as response:
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
            await _end(forwarder, session, authorization)
    return ("legacy", {}) if found is None else ("modern", found)


async def _end(forwarder: Forwarder, session: str, authorization: str | None) -> None:
    """Some legacy servers open a session for whatever comes without one, even if they then refuse it."""
    headers = [
        (names.SESSION_ID, session),
        *([] if authorization is None else [(hdrs.AUTHORIZATION, authorization)]),
    ]
    with contextlib.suppress(GatewayError, TimeoutError):
        async with asyncio.timeout(_SECONDS), forwarder.sent("DELETE", headers, b""):
            return


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
        answer = parse(data)
        value = decode(answer.result) if isinstance(answer, Result) else None
    except (NotJson, NotJsonRpc):
        return None
    supported = value.get("supportedVersions") if isinstance(value, dict) else None
    is_modern = isinstance(supported, list) and any(known in supported for known in MODERN_VERSIONS)
    return value if is_modern else None
