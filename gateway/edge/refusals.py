"""What an upstream's 401 or 403 becomes for a client: a challenge that it can follow, or a plain error. Pure.

Where the client's own credential went upstream, so does the answer go back, with
the metadata's address changed to ours where it is the upstream's own. Where the
upstream was shown other credentials than the client's, its refusal is a fault
of the configuration: a client that was told 401 would log in again, in vain.
"""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from gateway.edge.challenges import readdressed
from gateway.edge.doorway import Doorway
from gateway.errors import GatewayError, UpstreamRefused, UpstreamUnauthorized
from gateway.relay.listener import Reply
from gateway.relay.passage import HeaderLines

STATUSES: Final = frozenset({401, 403})
_CHALLENGE: Final = "www-authenticate"
_NONE_SENT: Final = (
    "it was sent no credentials; auth.mode passthrough sends the client's, upstream_headers yours"
)
_CONFIGURED: Final = "it does not accept the credentials that are configured"


class Refusals:
    """Tells the clients of one upstream."""

    def __init__(self, doorway: Doorway, is_theirs: Callable[[str], bool]) -> None:
        self._addresses = doorway.addresses
        self._forwards = doorway.auth.forwards
        auth = doorway.auth
        self._is_ours = not auth.forwards and (auth.authenticates or bool(auth.upstream_headers))
        self._is_theirs = is_theirs

    def reply(self, reply: Reply, host: str | None) -> Reply:
        """The last word of a round, if it is such a refusal; any other as it is."""
        if reply.status not in STATUSES or reply.reason != UpstreamUnauthorized.reason:
            return reply
        if self._is_ours:
            return Reply.of(UpstreamRefused(reply.status, _CONFIGURED))
        if not self._forwards:
            return replace(reply, detail=f"{reply.detail}: {_NONE_SENT}")
        if not reply.headers:
            return reply
        return replace(reply, headers=dict(self._readdressed(list(reply.headers.items()), host)))

    def error(self, error: GatewayError, host: str | None) -> GatewayError:
        """The same for a legacy client, which is told by the status."""
        if not isinstance(error, UpstreamUnauthorized):
            return error
        if self._is_ours:
            return UpstreamRefused(error.http_status, _CONFIGURED)
        if self._forwards:
            error.headers = dict(self._readdressed(list(error.headers.items()), host))
        return error

    def passing(self, status: int, headers: HeaderLines, host: str | None) -> HeaderLines:
        """The headers of a response that is handed on.

        Raises:
            UpstreamRefused: it is none that the client could do anything about.
        """
        if status not in STATUSES:
            return headers
        if self._is_ours:
            raise UpstreamRefused(status, _CONFIGURED)
        return self._readdressed(headers, host) if self._forwards else headers

    def _readdressed(self, headers: HeaderLines, host: str | None) -> list[tuple[str, str]]:
        own = self._addresses.metadata(host)
        return [
            (name, readdressed(value, own, self._is_theirs) if name.lower() == _CHALLENGE else value)
            for name, value in headers
        ]
