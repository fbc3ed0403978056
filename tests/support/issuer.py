"""A token issuer and a small authorization server: keys, JWKS, and the login of a public client (OAuth 2.1, PKCE).

Everybody who asks is logged in at once, as the user the test says; tokens are for the `resource` that the client
named, as RFC 8707 has it.
"""

import base64
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from aiohttp.test_utils import TestServer
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

Json = dict[str, Any]
SigningKey = RSAKey | ECKey | OKPKey

_RSA = RSAKey.generate_key(2048, {"kid": "rsa", "use": "sig"}, private=True)  # slow to make: once for all


def new_key(kid: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": kid, "use": "sig", "alg": "ES256"}, private=True)


@dataclass
class Issuer:
    """Makes tokens and publishes keys."""

    url: str = "https://issuer.example"
    key: SigningKey = field(default_factory=lambda: new_key("first"))
    published: list[SigningKey] = field(default_factory=list)
    """What is in the JWKS; empty: the key itself."""
    fetches: int = 0
    is_down: bool = False
    user: str = "ann"
    scope: str = ""
    resources: list[str] = field(default_factory=list)
    """What clients said that their tokens are for."""
    _codes: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def token(self, *, key: SigningKey | None = None, header: Json | None = None, **claims: Any) -> str:
        """A good token, but for what the test says; a claim that is None is left out."""
        key = key or self.key
        now = int(time.time())  # noqa: TID251 - tokens are of the real time
        all_claims = {"iss": self.url, "sub": "ann", "aud": "crm", "iat": now, "exp": now + 300, **claims}
        algorithm = {"RSA": "RS256", "EC": "ES256", "OKP": "Ed25519"}[key.key_type]
        said = {"alg": algorithm, "kid": key.kid, **(header or {})}
        kept = {name: value for name, value in all_claims.items() if value is not None}
        return jwt.encode(
            {name: value for name, value in said.items() if value is not None},
            kept,
            key,
            registry=JWSRegistry(algorithms=[said["alg"]], strict_check_header=False),
        )

    def bearer(self, **claims: Any) -> str:
        return f"Bearer {self.token(**claims)}"

    def jwks(self) -> Any:
        return KeySet([*(self.published or [self.key])]).as_dict(private=False)

    # --- over HTTP ---------------------------------------------------------------------

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/jwks", self._jwks)
        app.router.add_get("/.well-known/oauth-authorization-server", self._metadata)
        app.router.add_post("/register", self._register)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/token", self._token)
        return app

    async def _jwks(self, _: web.Request) -> web.Response:
        self.fetches += 1
        if self.is_down:
            raise web.HTTPServiceUnavailable
        return web.json_response(self.jwks())

    async def _metadata(self, _: web.Request) -> web.Response:
        return web.json_response(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "registration_endpoint": f"{self.url}/register",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "authorization_response_iss_parameter_supported": True,
            }
        )

    async def _register(self, request: web.Request) -> web.Response:
        asked = await request.json()
        return web.json_response(
            {**asked, "client_id": secrets.token_hex(8), "token_endpoint_auth_method": "none"}, status=201
        )

    async def _authorize(self, request: web.Request) -> web.Response:
        code = secrets.token_hex(8)
        self._codes[code] = dict(request.query)
        said = urlencode({"code": code, "state": request.query["state"], "iss": self.url})
        raise web.HTTPFound(f"{request.query['redirect_uri']}?{said}")

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        if form["grant_type"] == "authorization_code":
            asked = self._codes.pop(str(form["code"]))
            made = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
            assert base64.urlsafe_b64encode(made).decode().rstrip("=") == asked["code_challenge"]
            self.scope = asked.get("scope", "")
        resource = str(form["resource"])
        self.resources.append(resource)
        token = self.token(sub=self.user, aud=resource, scope=self.scope, jti=secrets.token_hex(4))
        return web.json_response(
            {"access_token": token, "token_type": "Bearer", "expires_in": 300, "refresh_token": "again"}
        )


def rsa_issuer() -> Issuer:
    return Issuer(key=_RSA)


@asynccontextmanager
async def issuing() -> AsyncIterator[Issuer]:
    """An issuer that listens; its `url` is where."""
    issuer = Issuer()
    async with TestServer(issuer.app()) as server:
        issuer.url = str(server.make_url("")).rstrip("/")
        yield issuer
