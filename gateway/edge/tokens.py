"""Is this bearer token good, and what does it say? It fetches no keys and lets nobody in.

Pinned by configuration: the issuer, the audience, the algorithms. Never taken
from the token: where keys come from (`jku`, `x5u`, `jwk`), or whether it has to
be signed at all. What else issuers put into a header is passed over, unless it
is marked as critical (RFC 7515, section 4): many have members of their own.
"""

import binascii
import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gateway.edge.jwks import Jwks
from gateway.settings.auth import Jwt

if TYPE_CHECKING:
    from joserfc.jwk import Key
    from joserfc.jws import JWSRegistry

MOST_CHARACTERS: Final = 16 * 1024
_MOST_REMEMBERED: Final = 4096
_MOST_TRIED: Final = 8
"""Keys tried for a token that names none."""
_CURVES_OF_NO_SIGNATURE: Final = frozenset({"X25519", "X448"})


class TokenRefused(ValueError):
    """It is not good. The text says why in our words, and quotes nothing of it."""


class KeyUnknown(TokenRefused):
    """It names a key that the issuer did not have when it was asked last."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What a good token says."""

    issuer: str
    subject: str
    scopes: frozenset[str]
    until: float


class Verifier:
    """Verifies the tokens of one issuer, for one audience. Good ones are remembered until they end."""

    def __init__(
        self, settings: Jwt, jwks: Jwks, *, audience: Collection[str], now: Callable[[], float]
    ) -> None:
        self._settings = settings
        self._jwks = jwks
        self._audience = frozenset(audience)
        self._now = now
        self._known: OrderedDict[str, Verified] = OrderedDict()
        self._generation = jwks.generation

    def verify(self, token: str) -> Verified:
        """What the token says.

        Raises:
            KeyUnknown: perhaps it is good: the issuer may have new keys.
            TokenRefused: it is not.
        """
        if self._generation != self._jwks.generation:
            self._generation = self._jwks.generation
            self._known.clear()
        known = self._known.get(token)
        if known is not None and self._now() < known.until:
            return known
        verified = self._verify(token)
        self._known[token] = verified
        if len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)
        return verified

    def _verify(self, token: str) -> Verified:
        from joserfc import jwt  # noqa: PLC0415 - only where tokens are verified
        from joserfc.errors import BadSignatureError, JoseError  # noqa: PLC0415

        algorithm, kid = _header(token)
        if algorithm not in self._settings.algorithms:
            raise TokenRefused("its algorithm is not accepted")
        registry = _registry(algorithm)
        candidates = self._candidates(registry, algorithm, kid)
        if not candidates:
            raise KeyUnknown("signed with a key that is not known")
        for key in candidates:
            try:
                claims = jwt.decode(token, key, registry=registry).claims
            except BadSignatureError:
                continue
            except (JoseError, ValueError, TypeError, RecursionError):
                raise TokenRefused("it cannot be read") from None
            return self._judge(claims)
        if kid is None:
            raise KeyUnknown("its signature does not verify, and it does not say which key would")
        raise TokenRefused("its signature does not verify")

    def _candidates(self, registry: "JWSRegistry", algorithm: str, kid: str | None) -> Sequence["Key"]:
        named = [key for key in self._jwks.keys if kid in (None, key.get("kid"))]
        return [key for key in named if _fits(key, registry, algorithm)][:_MOST_TRIED]

    def _judge(self, claims: Any) -> Verified:
        now, leeway = self._now(), self._settings.leeway
        if not isinstance(claims, dict):
            raise TokenRefused("it has no claims")
        if claims.get("iss") != self._settings.issuer:
            raise TokenRefused("another issuer's")
        if not self._audience & _words(claims.get("aud"), split=False):
            raise TokenRefused("for another audience")
        until = _time(claims, "exp")
        if until is None:
            raise TokenRefused("it never expires")
        if now >= until + leeway:
            raise TokenRefused("it has expired")
        for name in ("nbf", "iat"):
            begin = _time(claims, name)
            if begin is not None and now < begin - leeway:
                raise TokenRefused("it is not valid yet")
        subject = claims.get(self._settings.principal)
        if not isinstance(subject, str) or not subject:
            raise TokenRefused("it names nobody")
        scopes = _words(claims.get("scope"), split=True) | _words(claims.get("scp"), split=True)
        return Verified(str(self._settings.issuer), subject, scopes, until + leeway)


def _registry(algorithm: str) -> "JWSRegistry":
    """What may stand in a token: this algorithm, and any header, of any length that a token may have."""
    from joserfc.jws import JWSRegistry  # noqa: PLC0415

    registry = JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    registry.max_header_length = registry.max_signature_length = MOST_CHARACTERS
    return registry


def _fits(key: "Key", registry: "JWSRegistry", algorithm: str) -> bool:
    """Can this key verify such a signature? Its kind, its curve, and what it says it is for."""
    from joserfc.errors import JoseError  # noqa: PLC0415

    try:
        registry.algorithms[algorithm].check_key(key)
        key.check_key_op("verify")
    except (JoseError, TypeError):
        return False
    return key.get("crv") not in _CURVES_OF_NO_SIGNATURE


def _header(token: str) -> tuple[str, str | None]:
    """Algorithm and key name. Nothing else in a header is of any interest."""
    if len(token) > MOST_CHARACTERS or token.count(".") != 2 or not token.isascii():
        raise TokenRefused("it is no signed token")
    text = token.partition(".")[0]
    try:
        header = msgspec.json.decode(binascii.a2b_base64(text.translate(_STANDARD) + "=" * (-len(text) % 4)))
    except (binascii.Error, msgspec.DecodeError, ValueError, RecursionError):
        raise TokenRefused("its header cannot be read") from None
    match header:
        case {"alg": str(algorithm), "kid": str(kid)}:
            return algorithm, kid
        case {"alg": str(algorithm)} if "kid" not in header:
            return algorithm, None
        case _:
            raise TokenRefused("its header is malformed")


_STANDARD: Final = str.maketrans("-_", "+/")


def _time(claims: dict[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    try:
        if not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise TokenRefused(f"its {name} is no time")


def with_included(scopes: frozenset[str], includes: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """These scopes, and those that they stand for, over as many steps as there are."""
    granted: set[str] = set()
    waiting = list(scopes)
    while waiting:
        scope = waiting.pop()
        if scope not in granted:
            granted.add(scope)
            waiting += includes.get(scope, ())
    return frozenset(granted)


def _words(value: Any, *, split: bool) -> frozenset[str]:
    match value:
        case str():
            return frozenset(value.split()) if split else frozenset({value})
        case list():
            return frozenset(item for item in value if isinstance(item, str))
        case _:
            return frozenset()
