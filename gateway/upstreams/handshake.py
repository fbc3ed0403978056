"""The handshake of a legacy session: who the client is and what it can do, in words that the server takes.

The newest words first. Servers that refuse these get the same in older ones:

* Java's before 0.17 know of no modes of elicitation, those of 1.x of no details of
  sampling, and refuse the whole handshake for a member that they do not know;
* some refuse a revision that they never heard of, as the example in the
  specification does ("Lifecycle", "Error Handling"), where others name their own.
"""

import contextlib
from collections.abc import Mapping
from typing import Any, Final

from gateway.eras.discovery import Introduction, introduction
from gateway.eras.requests import initialize_params
from gateway.errors import GatewayError, UpstreamRefused, UpstreamSpokeNonsense
from gateway.upstreams.transport import Channel
from gateway.wire.jsonrpc import Failure, Id, Message, NotJson, Raw, Result, decode, encode_request
from gateway.wire.versions import LATEST_LEGACY, LEGACY_VERSIONS, is_legacy

_PLAINER: Final = "2025-06-18"
"""The newest revision that names what a client can do and says no more of it."""
_BAD_REQUEST: Final = 400


class HandshakeDeclined(UpstreamSpokeNonsense):
    """The server answered `initialize` with an error."""

    def __init__(self, log_text: str = "", *, supported: str | None = None) -> None:
        super().__init__(log_text)
        self.supported = supported


async def shake_hands(
    channel: Channel, request_id: Id, client_info: Mapping[str, Any] | None, capabilities: Mapping[str, Any]
) -> Introduction:
    """Introduce the client; how the server introduces itself.

    Raises:
        UpstreamFault: there is no answer, or none to use.
    """

    async def introduced(request_id: Id, version: str) -> Introduction:
        params = initialize_params(client_info, capabilities, version)
        return await _introduced(channel, request_id, params)

    try:
        return await introduced(request_id, LATEST_LEGACY)
    except (UpstreamRefused, HandshakeDeclined) as refusal:
        if isinstance(refusal, UpstreamRefused) and refusal.status != _BAD_REQUEST:
            raise
        if channel.session_id is not None and not channel.has_one_stream:
            raise  # it has begun a session all the same, in which it was introduced to once already
        older = refusal.supported if isinstance(refusal, HandshakeDeclined) else None
        with contextlib.suppress(GatewayError):
            return await introduced(f"{request_id}-again", older or _PLAINER)
        raise  # what was refused first says why


async def _introduced(channel: Channel, request_id: Id, params: Mapping[str, Any]) -> Introduction:
    answer: Message | None = None

    def deliver(message: Message) -> bool:
        nonlocal answer
        if isinstance(message, Result | Failure):
            answer = message
        return answer is not None

    await channel.request(request_id, encode_request(request_id, "initialize", params), deliver)
    if isinstance(answer, Failure):
        words = f"initialize was refused with error {answer.code}"
        raise HandshakeDeclined(words, supported=_supported(answer.data))
    if not isinstance(answer, Result):
        raise UpstreamSpokeNonsense("initialize was not answered")
    server = introduction(answer.result)
    if not is_legacy(server.version):
        raise UpstreamSpokeNonsense(f"the server speaks {server.version[:32]!r}")
    return server


def _supported(data: Raw | None) -> str | None:
    """The newest of the revisions that an error names as those that the server speaks, of those that we do.

    That which it has just refused is none of them, whatever it says.
    """
    try:
        named = None if data is None else decode(data)
    except NotJson:
        return None
    supported = named.get("supported") if isinstance(named, dict) else None
    offered = supported if isinstance(supported, list) else []
    return next(
        (version for version in LEGACY_VERSIONS if version in offered and version != LATEST_LEGACY), None
    )
