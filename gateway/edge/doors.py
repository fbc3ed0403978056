"""Lets callers in, one kind of door per `auth.mode`: a principal, or a refusal that says how to come back.

A door looks at headers and at the peer's address, and at nothing else of a
request. It does not know what is asked for, nor of whom.
"""

import hashlib
import hmac
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, Protocol

from aiohttp import hdrs, web

from gateway.edge.challenges import Addresses, bearer
from gateway.edge.jwks import Jwks
from gateway.edge.principals import NOBODY, Naming, by_claims, by_credential, by_header, by_key
from gateway.edge.tokens import KeyUnknown, TokenRefused, Verified, Verifier, with_included
from gateway.errors import Forbidden, InvalidRequest, Overloaded, Unauthorized
from gateway.relay.request import Principal
from gateway.settings.auth import Auth

_AUTHORIZATION: Final = "authorization"
_MOST_CHARACTERS: Final = 1024
"""Of an API key or of an identity."""
_MOST_VERDICTS: Final = 1024


class Door(Protocol):
    """What an endpoint asks before it does anything for a caller."""

    withheld: frozenset[str]
    """Headers that go to no upstream, in lower case."""

    def admit(self, request: web.BaseRequest) -> Principal | None:
        """Who is calling. None: that cannot be known without waiting, see `admit_later`.

        Raises:
            Unauthorized: nobody who may; also as `Forbidden`.
            InvalidRequest: credentials that contradict each other.
        """

    async def admit_later(self, request: web.BaseRequest) -> Principal:
        """The same, with whatever waiting that takes."""


@dataclass(slots=True)
class OpenDoor:
    """`none`: callers are not told apart, and no credential goes upstream."""

    withheld: frozenset[str] = frozenset()

    def admit(self, request: web.BaseRequest) -> Principal | None:  # noqa: ARG002, PLR6301, RUF100
        """Let everybody in, as the one anonymous principal."""
        return NOBODY

    async def admit_later(self, request: web.BaseRequest) -> Principal:  # noqa: ARG002
        """The same."""
        return NOBODY


class PassingDoor:
    """`passthrough`: the upstream says who may call. One without a credential is anonymous."""

    withheld: frozenset[str] = frozenset()

    def __init__(self, name: Naming) -> None:
        self._name = name

    def admit(self, request: web.BaseRequest) -> Principal | None:
        """Whoever has this credential."""
        credential = only(request, hdrs.AUTHORIZATION)
        return by_credential(self._name, credential) if credential else NOBODY

    async def admit_later(self, request: web.BaseRequest) -> Principal:
        """Never needed."""
        return self.admit(request) or NOBODY


class TokenDoor:
    """`jwt`, and `passthrough` with tokens that are verified here."""

    def __init__(
        self, auth: Auth, jwks: Jwks, verifier: Verifier, name: Naming, addresses: Addresses
    ) -> None:
        self._scopes = auth.scopes
        self._scope_includes = auth.scope_includes
        self._is_optional = auth.mode == "passthrough"
        self._forwards = auth.forwards
        self._jwks = jwks
        self._verifier = verifier
        self._name = name
        self._addresses = addresses
        self.withheld = frozenset() if auth.forwards else frozenset({_AUTHORIZATION})

    def admit(self, request: web.BaseRequest) -> Principal | None:
        """Whom the token names."""
        credential = only(request, hdrs.AUTHORIZATION)
        if not credential and self._is_optional:
            return NOBODY  # whether that is good enough is the upstream's to say
        token = bearer_in(credential)
        if token is None:
            raise self._refusal(request, "no bearer token", error=None)
        try:
            verified = self._verifier.verify(token)
        except KeyUnknown:
            return None
        except TokenRefused as why:
            raise self._refusal(request, str(why)) from None
        return self._admitted(verified, request, credential)

    async def admit_later(self, request: web.BaseRequest) -> Principal:
        """The same, after a look whether the issuer has new keys."""
        await self._jwks.refresh()
        if not self._jwks.keys:
            raise Overloaded("the token issuer's keys could not be had yet")
        credential = only(request, hdrs.AUTHORIZATION)
        try:
            verified = self._verifier.verify(bearer_in(credential) or "")
        except TokenRefused as why:
            raise self._refusal(request, str(why)) from None
        return self._admitted(verified, request, credential)

    def _admitted(self, verified: Verified, request: web.BaseRequest, credential: str | None) -> Principal:
        if not with_included(verified.scopes, self._scope_includes).issuperset(self._scopes):
            challenge = bearer(
                error="insufficient_scope", scopes=self._scopes, metadata=self._metadata(request)
            )
            raise Forbidden("insufficient scope", challenge=challenge)
        shown = credential if self._forwards else None
        return by_claims(self._name, verified.issuer, verified.subject, shown)

    def _refusal(
        self, request: web.BaseRequest, why: str, error: str | None = "invalid_token"
    ) -> Unauthorized:
        text = None if error is None else f"The token was refused: {why}"
        challenge = bearer(error=error, text=text, scopes=self._scopes, metadata=self._metadata(request))
        return Unauthorized(why, challenge=challenge)

    def _metadata(self, request: web.BaseRequest) -> str:
        return self._addresses.metadata(request.headers.get(hdrs.HOST))


class KeyDoor:
    """`api_key`: who has one of these keys. Which keys there are is known by their hashes only."""

    def __init__(self, auth: Auth, name: Naming) -> None:
        self._known = [(bytes.fromhex(digest), key_name) for key_name, digest in auth.api_keys.items()]
        self._headers = auth.api_key_headers
        self._forwards = auth.forwards
        self._name = name
        own = frozenset(header.lower() for header in auth.api_key_headers)
        self.withheld = (own - {_AUTHORIZATION}) if auth.forwards else own | {_AUTHORIZATION}

    def admit(self, request: web.BaseRequest) -> Principal | None:
        """Whose key it is."""
        given = self._given(request)
        if given is None:
            raise Unauthorized("no API key", challenge=bearer())
        digest = hashlib.sha256(given.encode("utf-8", "surrogateescape")).digest()
        found: str | None = None
        for known, key_name in self._known:  # all of them: the time taken does not tell how many came before
            if hmac.compare_digest(known, digest):
                found = key_name
        if found is None:
            raise Unauthorized("unknown API key", challenge=bearer(error="invalid_token"))
        shown = request.headers.get(hdrs.AUTHORIZATION) if self._forwards else None
        return by_key(self._name, found, shown)

    async def admit_later(self, request: web.BaseRequest) -> Principal:
        """Never needed."""
        return self.admit(request) or NOBODY

    def _given(self, request: web.BaseRequest) -> str | None:
        found: list[str] = []
        for header in self._headers:
            value = only(request, header)
            if header.lower() == _AUTHORIZATION:
                value = bearer_in(value)
            if value:
                found.append(value)
        if len(set(found)) > 1:
            raise InvalidRequest(detail="Two different API keys in one request")
        if found and len(found[0]) > _MOST_CHARACTERS:
            raise Unauthorized("an API key of that length", challenge=bearer(error="invalid_token"))
        return found[0] if found else None


class MeshDoor:
    """`header`: whom the mesh or the ingress before us calls the caller. Believed from trusted peers only."""

    def __init__(self, auth: Auth, name: Naming) -> None:
        self._header = auth.identity_header
        self._peers = [ip_network(peer) for peer in auth.trusted_peers]
        self._forwards = auth.forwards
        self._name = name
        self.withheld = frozenset({auth.identity_header.lower()})
        if not auth.forwards:
            self.withheld |= {_AUTHORIZATION}
        self._verdicts: dict[str, bool] = {}

    def admit(self, request: web.BaseRequest) -> Principal | None:
        """Who that is."""
        if not self._is_trusted(request.remote):
            raise Forbidden("not from a trusted peer")
        identity = only(request, self._header)
        if not identity or len(identity) > _MOST_CHARACTERS:
            raise Unauthorized("no identity header, or one too long")
        shown = request.headers.get(hdrs.AUTHORIZATION) if self._forwards else None
        return by_header(self._name, identity, shown)

    async def admit_later(self, request: web.BaseRequest) -> Principal:
        """Never needed."""
        return self.admit(request) or NOBODY

    def _is_trusted(self, peer: str | None) -> bool:
        if peer is None:
            return False
        known = self._verdicts.get(peer)
        if known is None:
            if len(self._verdicts) >= _MOST_VERDICTS:
                self._verdicts.clear()
            address = _address(peer)
            known = self._verdicts[peer] = address is not None and any(
                address in network for network in self._peers
            )
        return known


def only(request: web.BaseRequest, header: str) -> str | None:
    """The header's one value.

    Raises:
        InvalidRequest: it came more than once: whoever reads on may take another one than we do.
    """
    values = request.headers.getall(header, ())
    if len(values) > 1:
        raise InvalidRequest(detail=f"More than one {header} header")
    return values[0].strip() if values else None


def bearer_in(authorization: str | None) -> str | None:
    """The token of an `Authorization: Bearer` header."""
    scheme, _, token = (authorization or "").partition(" ")
    return (token.strip() or None) if scheme.lower() == "bearer" else None


def _address(peer: str) -> IPv4Address | IPv6Address | None:
    # A listener of both families shows IPv4 peers as ::ffff:a.b.c.d; a zone is no part of an address.
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
