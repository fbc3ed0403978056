"""Who may call an upstream, and what credentials it is shown, as types. Verifies nothing and reads no file."""

from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, SecretStr

from gateway.settings.fields import Duration, HttpUrl, Listed, Named, PositiveDuration, Section
from gateway.settings.identity import (
    api_key_hash,
    header_name,
    header_value,
    network,
    plain_name,
    scope,
    secure_url,
)

Mode: TypeAlias = Literal["none", "passthrough", "jwt", "api_key", "header"]
Algorithm: TypeAlias = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"
]
"""Signatures that a public key verifies. One secret for signing and verifying (HS…) and none at all (`none`) cannot
be configured: with keys that everybody may read, both let everybody in."""

HeaderName: TypeAlias = Annotated[str, AfterValidator(header_name)]
HeaderSecret: TypeAlias = Annotated[SecretStr, AfterValidator(header_value)]
SecureUrl: TypeAlias = Annotated[HttpUrl, AfterValidator(secure_url)]
KeyHash: TypeAlias = Annotated[str, AfterValidator(api_key_hash)]
Network: TypeAlias = Annotated[str, AfterValidator(network)]
Scope: TypeAlias = Annotated[str, AfterValidator(scope)]
KeyName: TypeAlias = Annotated[str, AfterValidator(plain_name)]

_AUTHENTICATES: Final = frozenset({"jwt", "api_key", "header"})


class Jwt(Section):
    """Tokens that the gateway verifies: for `mode: jwt`, and optionally for `passthrough`.

    Under `passthrough` callers are then known by what their tokens say, so that a refreshed token keeps its calls.
    """

    issuer: SecureUrl | None = None
    """The exact `iss` that tokens must have."""
    audience: Listed[Annotated[str, Field(min_length=1)]] = ()
    """A token must be for one of these (`aud`). Default: the upstream's own address, `public_url` + its path."""
    jwks_url: SecureUrl | None = None
    """Where the issuer's public keys are: https, or http on loopback. Redirects are not followed."""
    jwks_file: Path | None = None
    """The same from a file, instead of `jwks_url`; relative to the configuration file."""
    jwks_ttl: PositiveDuration = 600.0
    """How often keys are read again. A token with an unknown key has them read at once, at most every ten seconds."""
    ca_file: Path | None = None
    """The authority that signed the certificate of the issuer's server, instead of the system's authorities."""
    algorithms: Listed[Algorithm] = ("RS256", "PS256", "ES256", "EdDSA")
    """Accepted signatures; others are refused, whatever the keys say."""
    leeway: Duration = 30.0
    """How far the issuer's clock may be off."""
    principal: Annotated[str, Field(min_length=1)] = "sub"
    """The claim that names the caller; together with the issuer it identifies a principal."""
    authorization_servers: Listed[SecureUrl] = ()
    """Where clients log in, as the protected-resource metadata tells them. Default: the issuer."""


class Auth(Section):
    """Who may call, and what credentials the upstream is shown."""

    mode: Mode = "none"
    """`none`: callers are not told apart. `passthrough`: the upstream decides who may call; the client's Authorization
    header goes there, and callers are kept apart by it. `jwt`: bearer tokens of one issuer, verified here. `api_key`:
    keys, known here by their hashes. `header`: an identity that a mesh or an ingress puts into a header."""
    jwt: Jwt = Jwt()
    scopes: Listed[Scope] = ()
    """The scopes that a token needs, all of them. Only with `jwt` tokens."""
    scope_includes: Named[Scope, Listed[Scope]] = {}  # noqa: RUF012 - the section is frozen
    """Broader scopes, each with those that it includes: `{crm:admin: [crm:use]}`."""
    api_keys: Named[KeyName, KeyHash] = {}  # noqa: RUF012 - the section is frozen
    """Callers by name, each with the SHA-256 of its key: `holdfast hash-key` makes both."""
    api_key_headers: Listed[HeaderName] = ("Authorization", "X-API-Key")
    """Headers that may carry the key; Authorization as `Bearer KEY`."""
    identity_header: HeaderName = "X-Forwarded-User"
    """The header that names the caller under `mode: header`. Whatever stands in front must always set or remove it."""
    trusted_peers: Listed[Network] = ()
    """The addresses from which that header is believed: 10.0.0.0/8, ::1. Nobody else is let in."""
    upstream: Literal["auto", "none", "forward", "headers"] = "auto"
    """What the upstream is shown: nothing, the client's own Authorization header, or `upstream_headers`. `auto`:
    `headers` if there are any, `forward` under `passthrough`, otherwise `none`. A token that was issued for this
    gateway must not be passed on (the specification forbids it), so `forward` under `jwt` is only for upstreams that
    belong to the token's audience themselves."""
    upstream_headers: Named[HeaderName, HeaderSecret] = {}  # noqa: RUF012 - the section is frozen
    """Sent to the upstream with every request, for every caller: `{Authorization: "Bearer ${CRM_TOKEN}"}`."""

    @property
    def authenticates(self) -> bool:
        """Does the gateway itself decide who a caller is?"""
        return self.mode in _AUTHENTICATES or (self.mode == "passthrough" and self.verifies)

    @property
    def verifies(self) -> bool:
        """Does the gateway verify tokens?"""
        return self.jwt.issuer is not None and self.mode in ("jwt", "passthrough")

    @property
    def forwards(self) -> bool:
        """Is the client's own credential sent upstream?"""
        if self.upstream == "auto":
            return self.mode == "passthrough" and not self.upstream_headers
        return self.upstream == "forward"
