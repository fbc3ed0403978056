"""What a client asked for and as whom, free of HTTP: the words between the edge and the relay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from gateway.eras.capabilities import normalise
from gateway.upstreams.pool import Caller
from gateway.wire import canonical
from gateway.wire.jsonrpc import Id, Params, decode, encode

ANONYMOUS: Final = "anonymous"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling. Nobody in particular is a principal too."""

    id: str
    """Stable while this process runs, and says nothing about the credential."""
    material: bytes = field(repr=False)
    """What a ticket's principal claim is the keyed hash of."""
    is_authenticated: bool
    authorization: str | None = field(default=None, repr=False)
    """The credential to send upstream, if this upstream is to get it."""


class ClientRequest(Struct, frozen=True):
    """One request of a modern client: everything that is known about it, and nothing from an earlier one."""

    id: Id
    method: str
    params: Params
    target: str
    """Name of the tool or prompt, URI of the resource; empty for other methods."""
    principal: Principal
    capabilities: Mapping[str, Any]
    client_info: Mapping[str, Any] | None = None
    log_level: str | None = None
    progress_token: Id | None = None
    param_headers: Mapping[str, Sequence[str]] = {}
    """The `Mcp-Param-*` lines of a `tools/call`, by what follows the prefix, in lower case."""

    def arguments_digest(self) -> str:
        """What a ticket is bound to: it is good for the call it was given for and no other."""
        return canonical.digest(self.params.get("arguments"))

    def caller(self) -> Caller:
        """Whose sessions may serve this request."""
        principal = self.principal
        capabilities = encode(self.capabilities)
        client_info = encode(self.client_info)
        return _caller(
            principal.id, principal.is_authenticated, capabilities, client_info, principal.authorization
        )


@lru_cache(maxsize=1024)
def _caller(
    principal: str,
    is_authenticated: bool,  # noqa: FBT001 - a cache key is positional
    capabilities: bytes,
    client_info: bytes,
    authorization: str | None,
) -> Caller:
    """The same client sends the same declaration with every request: reading it once is enough."""
    return Caller(
        principal=principal,
        is_authenticated=is_authenticated,
        capabilities=encode(normalise(decode(capabilities))).decode(),
        client_info=encode(decode(client_info) or {}).decode(),
        authorization=authorization,
    )
