"""What a client asked for and as whom, free of HTTP: the words between the edge and the relay."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from gateway.eras.capabilities import normalise
from gateway.upstreams.pool import Caller
from gateway.wire import canonical
from gateway.wire.jsonrpc import Id, Params, encode

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


@dataclass(frozen=True)
class ClientRequest:
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

    @cached_property
    def arguments(self) -> str:
        """Digest of the arguments: a ticket is good for the call it was given for and no other."""
        return canonical.digest(self.params.get("arguments"))

    @cached_property
    def caller(self) -> Caller:
        """Whose sessions may serve this request."""
        return Caller(
            principal=self.principal.id,
            is_authenticated=self.principal.is_authenticated,
            capabilities=encode(normalise(self.capabilities)).decode(),
            client_info=encode(self.client_info or {}).decode(),
            authorization=self.principal.authorization,
        )
