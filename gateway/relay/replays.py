"""May a lost call be run again? By the configuration, and by what the tool declares. It runs nothing itself."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec.structs import replace

from gateway.errors import GatewayError, UpstreamLost
from gateway.relay.listener import Reply
from gateway.relay.request import ClientRequest
from gateway.settings.upstream import Upstream
from gateway.wire.jsonrpc import NotJson, Raw, decode, encode

_MOST_PAGES: Final = 64
_ATTEMPTS: Final = 3
_AT_ONCE_SECONDS: Final = 5.0
_HARMLESS: Final = ("readOnlyHint", "idempotentHint")


class ReplayPolicy:
    """One upstream's word on running calls again."""

    def __init__(self, settings: Upstream, fetch: Callable[[ClientRequest], Awaitable[Reply]]) -> None:
        self._settings = settings
        self._fetch = fetch

    async def allows(self, request: ClientRequest) -> bool:
        """Would a second run of this very call do no harm? Asked only when a call was lost."""
        is_tool = request.method == "tools/call"
        named = self._settings.replay_tools.get(request.target) if is_tool else None
        match named or self._settings.replay:
            case "never":
                return False
            case "always":
                return True
            case "idempotent":
                return not is_tool or await self._says_harmless(request)

    async def allows_at_once(self, request: ClientRequest) -> bool:
        """The same for a client that waits for the call that was lost: whatever takes long to find out is no."""
        try:
            async with asyncio.timeout(_AT_ONCE_SECONDS):
                return await self.allows(request)
        except TimeoutError:
            return False

    async def _says_harmless(self, request: ClientRequest) -> bool:
        """Look the tool up in the server's list, page by page, as this caller sees it."""
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            params = {} if cursor is None else {"cursor": Raw(encode(cursor))}
            asked = replace(
                request, method="tools/list", params=params, target="", log_level=None, progress_token=None
            )
            reply = await self._ask(asked)
            if reply is None:
                return False  # nobody can say so: then it is not so
            try:
                page: Any = decode(encode(reply.result or {}))
            except NotJson:
                return False
            for tool in page.get("tools", ()):
                if tool.get("name") == request.target:
                    hints = tool.get("annotations") or {}
                    return any(hints.get(hint) is True for hint in _HARMLESS)
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                return False
        return False

    async def _ask(self, request: ClientRequest) -> Reply | None:
        """Asked again if the connection breaks: whatever broke the call may have broken idle ones with it."""
        for _ in range(_ATTEMPTS):
            try:
                return await self._fetch(request)
            except UpstreamLost:
                continue
            except GatewayError:
                return None
        return None
