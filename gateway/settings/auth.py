"""Who may call an upstream, and as whom it is called, as types. Verifies nothing and reads no file."""

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
    """Tokens that are verified here: for `mode: jwt`, and if wanted for `passthrough`.

    There it makes callers known by what their tokens say, so that a refreshed token keeps its calls.
    """

    issuer: SecureUrl | None = None
    """The `iss` that tokens must have, to the letter."""
    audience: Listed[Annotated[str, Field(min_length=1)]] = ()
    """A token must be for one of these (`aud`). Default: the upstream's own address, `public_url` + its path."""
    jwks_url: SecureUrl | None = None
    """Where the issuer's public keys are: https, or http on loopback. Never followed to another host."""
    jwks_file: Path | None = None
    """The same from a file, instead of `jwks_url`; relative to the configuration file, read again as it changes."""
    jwks_ttl: PositiveDuration = 600.0
    """How often keys are fetched again. A token with an unknown key has them fetched at once, within reason."""
    ca_file: Path | None = None
    """Who vouches for the issuer's server, instead of the system's authorities."""
    algorithms: Listed[Algorithm] = ("RS256", "PS256", "ES256", "EdDSA")
    """Signatures that are accepted; others are refused, whatever the keys say."""
    leeway: Duration = 30.0
    """How far the issuer's clock may be off ours."""
    principal: Annotated[str, Field(min_length=1)] = "sub"
    """The claim that names the caller; with the issuer it is who somebody is."""
    authorization_servers: Listed[SecureUrl] = ()
    """Where clients log in, as the protected-resource metadata tells them. Default: the issuer."""


class Auth(Section):
    """Who may call, and as whom we call upstream."""

    mode: Mode = "none"
    """`none`: callers are not told apart. `passthrough`: the upstream says who may call; the client's Authorization
    header goes there, and callers are kept apart by it. `jwt`: bearer tokens, verified here. `api_key`: keys whose
    hashes are below. `header`: the identity that a mesh or an ingress has put into a header."""
    jwt: Jwt = Jwt()
    scopes: Listed[Scope] = ()
    """Scopes that a token needs, all of them. Only with `jwt` tokens."""
    scope_includes: Named[Scope, Listed[Scope]] = {}  # noqa: RUF012 - the section is frozen
    """Broader scopes, each with those that it stands for as well: `{crm:admin: [crm:use]}`."""
    api_keys: Named[KeyName, KeyHash] = {}  # noqa: RUF012 - the section is frozen
    """Callers by name, each with the SHA-256 of its key: `holdfast hash-key` makes both."""
    api_key_headers: Listed[HeaderName] = ("Authorization", "X-API-Key")
    """Where keys are looked for; in Authorization as `Bearer KEY`."""
    identity_header: HeaderName = "X-Forwarded-User"
    """Who is calling, under `mode: header`. It must be set or removed by whoever stands before us, always."""
    trusted_peers: Listed[Network] = ()
    """From which addresses that header is believed: 10.0.0.0/8, ::1. Nobody else is let in."""
    upstream: Literal["auto", "none", "forward", "headers"] = "auto"
    """What the upstream is shown: nothing, the client's own Authorization header, or `upstream_headers`. `auto`:
    `headers` where there are some, `forward` under `passthrough`, else `none`. A token that was issued for this
    gateway must not be passed on (the specification forbids it), so `forward` under `jwt` is for upstreams that are
    of the token's audience too."""
    upstream_headers: Named[HeaderName, HeaderSecret] = {}  # noqa: RUF012 - the section is frozen
    """Sent to the upstream with every request, for every caller: `{Authorization: "Bearer ${CRM_TOKEN}"}`."""

    @property
    def authenticates(self) -> bool:
        """Is it decided here who somebody is?"""
        return self.mode in _AUTHENTICATES or (self.mode == "passthrough" and self.verifies)

    @property
    def verifies(self) -> bool:
        """Are tokens verified here?"""
        return self.jwt.issuer is not None and self.mode in ("jwt", "passthrough")

    @property
    def forwards(self) -> bool:
        """Does the client's own credential go upstream?"""
        if self.upstream == "auto":
            return self.mode == "passthrough" and not self.upstream_headers
        return self.upstream == "forward"
