"""Where to log in for an endpoint: its protected-resource metadata (RFC 9728), ours or the upstream's.

tokens are verified here       what the configuration says
`passthrough` without that     what the upstream says, with `resource` changed to the address that clients
call, because they compare the two
else                           there is nothing to log in to

It knows no MCP.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from aiohttp import hdrs, web

from gateway.edge.cors import ANYONE, is_question, note_page, permission, share
from gateway.edge.doorway import Doorway
from gateway.errors import GatewayError

Fetch: TypeAlias = Callable[[], Awaitable[Mapping[str, Any] | None]]
"""The upstream's own metadata, if it has any."""

_HEADERS: Final = {
    # Without a public_url it depends on the Host that was called.
    "Cache-Control": "no-store",
    "Content-Type": "application/json",
}
_READ: Final = frozenset({hdrs.METH_GET, hdrs.METH_HEAD})
_VERBS: Final = "GET, HEAD"
_SIGNED: Final = "signed_metadata"


class Metadata:
    """Serves the metadata of one endpoint."""

    def __init__(self, doorway: Doorway, fetch: Fetch) -> None:
        self._doorway = doorway
        self._fetch = fetch

    @property
    def is_served(self) -> bool:
        """Is there anything to log in to?"""
        return self._doorway.auth.mode in ("jwt", "passthrough")

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request for it, whichever page of a browser asks: it is as public as it gets."""
        note_page(request, ANYONE)
        response = await self._answer(request)
        share(request, response)
        return response

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        if is_question(request):
            asked = request.headers.getall(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, [])
            return permission(asked, verbs=_VERBS)
        if request.method not in _READ:
            return web.Response(status=405, headers={"Allow": _VERBS})
        resource = self._doorway.addresses.resource(request.headers.get(hdrs.HOST))
        try:
            found = self._own(resource) if self._doorway.auth.verifies else await self._theirs(resource)
        except GatewayError as error:
            # Clients take a 4xx for "has none" and go on as if nobody had to log in.
            return web.Response(status=502, text=f"{error.message}\n")
        if found is None:
            return web.Response(status=404, text="Not found\n")
        return web.Response(body=msgspec.json.encode(found), headers=_HEADERS)

    def _own(self, resource: str) -> dict[str, Any]:
        auth = self._doorway.auth
        servers = auth.jwt.authorization_servers or (auth.jwt.issuer,)
        return {
            "resource": resource,
            "authorization_servers": list(servers),
            "bearer_methods_supported": ["header"],
            **({"scopes_supported": list(auth.scopes)} if auth.scopes else {}),
        }

    async def _theirs(self, resource: str) -> dict[str, Any] | None:
        found = await self._fetch()
        if found is None:
            return None
        # What is signed says another resource, and cannot be changed.
        return {**{name: value for name, value in found.items() if name != _SIGNED}, "resource": resource}
