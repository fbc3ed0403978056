"""What a client asked for and as whom, free of HTTP: the words between the edge and the relay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from gateway.eras.capabilities import normalise
from gateway.errors import InvalidParams
from gateway.upstreams.pool import Caller
from gateway.wire import canonical
from gateway.wire.jsonrpc import Id, NotJson, Params, decode, encode

ANONYMOUS: Final = "anonymous"
_MOST_LEVELS: Final = 32
_MOST_BYTES: Final = 64 * 1024
"""It is kept with sessions and lists, of callers who may call themselves something new each time."""
_MOST_CACHED: Final = 4 * 1024
"""Longer than what clients say of themselves, unless they send their icons along."""
_TOO_LONG: Final = f"the client's capabilities and its clientInfo are longer than {_MOST_BYTES} bytes"
_TOO_DEEP: Final = "the client's capabilities or its clientInfo are nested too deep"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling. All callers who are not told apart are one principal too."""

    id: str
    """Stable while this process runs, and says nothing about the credential."""
    material: bytes = field(repr=False)
    """What a ticket's principal claim is the keyed hash of."""
    is_authenticated: bool
    authorization: str | None = field(default=None, repr=False)
    """The credential to send upstream, if this upstream is to get it."""
    outlives_credential: bool = False
    """May the same caller come back with another credential?"""


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

    def spent(self) -> "ClientRequest":
        """Whose it is and of what kind: all that matters of a request that has its answer, and may have been large."""
        return replace(self, params={})

    def caller(self) -> Caller:
        """Whose sessions may serve this request.

        Raises:
            InvalidParams: what the client says of itself is nested or long beyond reason.
        """
        principal = self.principal
        try:
            capabilities = encode(self.capabilities)
            client_info = encode(self.client_info)
            if len(capabilities) + len(client_info) > _MOST_BYTES:
                raise InvalidParams(detail=_TOO_LONG)
            is_small = len(capabilities) + len(client_info) <= _MOST_CACHED
            return (_caller if is_small else _caller.__wrapped__)(
                principal.id, principal.is_authenticated, capabilities, client_info, principal.authorization
            )
        except (NotJson, RecursionError):
            raise InvalidParams(detail=_TOO_DEEP) from None


@lru_cache(maxsize=1024)
def _caller(
    principal: str,
    is_authenticated: bool,  # noqa: FBT001 - a cache key is positional
    capabilities: bytes,
    client_info: bytes,
    authorization: str | None,
) -> Caller:
    """The same client sends the same declaration with every request: reading it once is enough."""
    declared, named = decode(capabilities), decode(client_info) or {}
    if not _is_shallow(declared, _MOST_LEVELS) or not _is_shallow(named, _MOST_LEVELS):
        # How deep a value can be taken apart depends on where: what passes here must pass everywhere.
        raise InvalidParams(detail=_TOO_DEEP)
    return Caller(
        principal=principal,
        is_authenticated=is_authenticated,
        capabilities=encode(normalise(declared)).decode(),
        client_info=encode(named).decode(),
        authorization=authorization,
    )


def _is_shallow(value: Any, levels: int) -> bool:
    match value:
        case dict():
            return levels > 0 and all(_is_shallow(member, levels - 1) for member in value.values())
        case list():
            return levels > 0 and all(_is_shallow(item, levels - 1) for item in value)
        case _:
            return True
