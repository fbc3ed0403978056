"""Finds authentication and TLS settings that are fine one by one and wrong together. Uses no network."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from gateway.settings.auth import Jwt
from gateway.settings.certificates import CertificateUnusable, faults, unreadable
from gateway.settings.model import Settings
from gateway.settings.problems import Problem, show
from gateway.settings.tls import UpstreamTls
from gateway.settings.upstream import Upstream

_LEAST_TOKEN: Final = 16
"""Characters of an admin token: fewer can be guessed over a network."""


def check_process(settings: Settings) -> Iterator[Problem]:
    """What concerns the listeners."""
    tls = settings.tls
    if tls.key_file is not None and tls.cert_file is None:
        yield Problem("tls.cert_file", "is required with tls.key_file")
    elif tls.is_on:
        for fault in faults(tls):
            yield Problem(f"tls.{fault.key}", fault.message)
    if settings.admin_token is not None:
        if settings.admin is None:
            yield Problem("admin_token", "only applies with admin")
        if len(settings.admin_token.get_secret_value()) < _LEAST_TOKEN:
            yield Problem("admin_token", f"should have at least {_LEAST_TOKEN} characters")
    if settings.public_url is not None and urlsplit(settings.public_url).query:
        yield Problem("public_url", "should have no query")


def check_upstream(name: str, upstream: Upstream, settings: Settings) -> Iterator[Problem]:
    """What concerns one upstream."""
    yield from _tls(name, upstream)
    yield from _tokens(name, upstream, settings)
    yield from _others(name, upstream)
    yield from _credentials(name, upstream)


def _tls(name: str, upstream: Upstream) -> Iterator[Problem]:
    tls = upstream.tls
    if not tls.is_set:
        return
    if upstream.url is None or not upstream.url.lower().startswith("https:"):
        yield Problem(_at(name, "tls"), "only applies with an https url")
    if tls.key_file is not None and tls.cert_file is None:
        yield Problem(_at(name, "tls", "cert_file"), "is required with tls.key_file")
        return
    for fault in faults(tls):
        yield Problem(_at(name, "tls", fault.key), fault.message)


def _tokens(name: str, upstream: Upstream, settings: Settings) -> Iterator[Problem]:
    auth, jwt = upstream.auth, upstream.auth.jwt
    if auth.mode not in ("jwt", "passthrough"):
        if jwt.issuer is not None:
            yield Problem(_at(name, "auth", "jwt"), "only applies with mode: jwt or passthrough")
        if auth.scopes:
            yield Problem(_at(name, "auth", "scopes"), "only applies to jwt tokens")
        return
    if auth.scope_includes and not auth.scopes:
        yield Problem(_at(name, "auth", "scope_includes"), "only applies with scopes")
    if jwt.issuer is None:
        if auth.mode == "jwt":
            yield Problem(_at(name, "auth", "jwt", "issuer"), "is required with mode: jwt")
        elif jwt.jwks_url is not None or jwt.jwks_file is not None:
            yield Problem(_at(name, "auth", "jwt", "issuer"), "is required with the other jwt settings")
        elif auth.scopes:
            yield Problem(_at(name, "auth", "scopes"), "only applies to jwt tokens")
        return
    if (jwt.jwks_url is None) == (jwt.jwks_file is None):
        yield Problem(
            _at(name, "auth", "jwt", "jwks_url"), "should be set, or jwks_file instead, but not both"
        )
    if not jwt.audience and settings.public_url is None:
        yield Problem(_at(name, "auth", "jwt", "audience"), "is required, unless there is a public_url")
    if not jwt.algorithms:
        yield Problem(_at(name, "auth", "jwt", "algorithms"), "should name at least one")
    yield from _files(name, jwt)


def _files(name: str, jwt: Jwt) -> Iterator[Problem]:
    found: list[CertificateUnusable] = []
    if jwt.jwks_file is not None and jwt.jwks_url is None:
        found += unreadable("jwks_file", jwt.jwks_file)
    if jwt.ca_file is not None:
        found += faults(UpstreamTls(ca_file=jwt.ca_file))
    for fault in found:
        yield Problem(_at(name, "auth", "jwt", fault.key), fault.message)


def _others(name: str, upstream: Upstream) -> Iterator[Problem]:
    auth = upstream.auth
    if auth.mode == "api_key":
        if not auth.api_keys:
            yield Problem(
                _at(name, "auth", "api_keys"), "is required with mode: api_key; otherwise nobody could call"
            )
        if not auth.api_key_headers:
            yield Problem(_at(name, "auth", "api_key_headers"), "should name at least one header")
        if len(set(auth.api_keys.values())) < len(auth.api_keys):
            yield Problem(_at(name, "auth", "api_keys"), "contains the same key under two names")
    elif auth.api_keys:
        yield Problem(_at(name, "auth", "api_keys"), "only applies with mode: api_key")
    if auth.mode == "header" and not auth.trusted_peers:
        # Without it, whoever can reach the listener is whoever they say they are.
        yield Problem(_at(name, "auth", "trusted_peers"), "is required with mode: header")
    if auth.mode == "header" and any(peer.endswith("/0") for peer in auth.trusted_peers):
        yield Problem(
            _at(name, "auth", "trusted_peers"),
            "trusts everybody; list only the proxies in front of this gateway",
        )
    if auth.mode != "header" and auth.trusted_peers:
        yield Problem(_at(name, "auth", "trusted_peers"), "only applies with mode: header")


def _credentials(name: str, upstream: Upstream) -> Iterator[Problem]:
    auth = upstream.auth
    if upstream.command and (auth.upstream_headers or auth.upstream in ("forward", "headers")):
        yield Problem(
            _at(name, "auth", "upstream"), "does not apply with command: a process gets no headers; use env"
        )
    if auth.upstream == "headers" and not auth.upstream_headers:
        yield Problem(_at(name, "auth", "upstream_headers"), "is required with upstream: headers")
    if auth.upstream in ("none", "forward") and auth.upstream_headers:
        yield Problem(_at(name, "auth", "upstream_headers"), f"does not apply with upstream: {auth.upstream}")
    if auth.upstream == "forward" and auth.mode == "none":
        # Sessions would be shared by callers of different credentials.
        yield Problem(_at(name, "auth", "upstream"), "cannot be forward with mode: none; that is passthrough")
    if auth.mode == "passthrough" and not auth.forwards:
        # Nobody would check the credentials: every caller with any token at all would be let in.
        yield Problem(_at(name, "auth", "upstream"), "can only be forward with mode: passthrough")


def _at(upstream: str, *keys: str) -> str:
    return show(("upstreams", upstream, *keys))
