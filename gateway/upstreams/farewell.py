"""The end of a session over Streamable HTTP: DELETE, where the server survives that.

Python SDKs before 1.10 do not: the first session that is ended tears down the
manager of all, and from then on the server answers 500 to everything. They give
out ids of 32 hexadecimal digits, as later ones do, and know no revision after
2025-03-26. Whether it is one of these is asked of the server where the session's
revision does not say it: later ones refuse a revision that they do not know.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from gateway.errors import GatewayError, UpstreamLost
from gateway.upstreams.http_client import sent
from gateway.wire import headers as names
from gateway.wire.jsonrpc import encode_notification
from gateway.wire.versions import MODERN

Ending: TypeAlias = Literal["auto", "delete", "leave"]
Send: TypeAlias = Callable[[str, Mapping[str, str], bytes | None], sent]
"""A request within the session: its verb, headers besides those of the session, and its body."""

_SECONDS: Final = 5.0
_AGAIN_SECONDS: Final = (0.05, 0.2, 1.0, 3.0)
_PYTHON_ID: Final = re.compile(r"[0-9a-f]{32}")
_FIRST_TO_SURVIVE: Final = "2025-06-18"
_POSTING: Final = {"Content-Type": names.JSON, "Accept": f"{names.JSON}, {names.EVENT_STREAM}"}
_HARMLESS: Final = encode_notification("notifications/cancelled", {"requestId": "farewell"})
"""Of a request that never was."""


async def end_session(session_id: str, version: str | None, ending: Ending, send: Send) -> None:
    """End a session of this revision (None: not known), unless that would end the server.

    It may refuse, or be gone: for us the session is over either way.
    """
    is_doubtful = _PYTHON_ID.fullmatch(session_id) and (version is None or version < _FIRST_TO_SURVIVE)
    with contextlib.suppress(GatewayError, TimeoutError):
        async with asyncio.timeout(_SECONDS):
            match ending:
                case "delete":
                    await _deleted(send)
                case "auto" if not is_doubtful or await _knows_revisions(send):
                    await _deleted(send)


async def _knows_revisions(send: Send) -> bool:
    async with send("POST", {**_POSTING, names.PROTOCOL_VERSION: MODERN}, _HARMLESS) as response:
        return response.status == 400


async def _deleted(send: Send) -> None:
    """Said again where it may not have been heard: that does no harm, and nobody else will ever say it."""
    for pause in _AGAIN_SECONDS:
        try:
            async with send("DELETE", {}, None):
                return
        except UpstreamLost:
            await asyncio.sleep(pause)
