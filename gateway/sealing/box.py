"""Seals claims into a token that only this gateway can read, and opens it again. It knows no HTTP and no clock.

    token = base64url( version 1 | key mark 4 | nonce 12 | AES-256-GCM( claims ) | tag 16 )
                       '------ bound -------'

Every token has its own random nonce. That is sound for 2**32 tokens under one key
(NIST SP 800-38D, 8.3): at a hundred questions a second, a new key each year.
"""

import binascii
import hmac
from dataclasses import dataclass, field
from typing import Final

from cryptography.exceptions import InvalidTag
from msgspec.structs import replace

from gateway.errors import StateRejected
from gateway.sealing import claims as codec
from gateway.sealing.claims import Claims, Packed
from gateway.sealing.keyring import MARK_BYTES, Key, Keyring, Random

VERSION: Final = b"\x01"
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16

_BOUND_BYTES: Final = len(VERSION) + MARK_BYTES
_PREFIX_BYTES: Final = _BOUND_BYTES + NONCE_BYTES
_OVERHEAD_BYTES: Final = _PREFIX_BYTES + TAG_BYTES

_TO_URL: Final = bytes.maketrans(b"+/", b"-_")
_FROM_URL: Final = bytes.maketrans(b"-_", b"+/")


class ClaimsTooLarge(ValueError):
    """The token would be longer than a token may be."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The request that a token came with. The token must have been sealed for exactly this."""

    principal: bytes = field(repr=False)  # may be a credential
    upstream: str
    method: str
    target: str
    arguments: str


class Box:
    """Seals claims and opens tokens."""

    def __init__(self, keyring: Keyring, random: Random, *, max_token_bytes: int = 65536) -> None:
        self._keyring = keyring
        self._random = random
        self._max_token_bytes = max_token_bytes

    def seal(self, claims: Claims, principal: bytes) -> str:
        """A token for `claims`, of use only to the caller that `principal` is the material of.

        `claims.principal` is not read: the fingerprint belongs to the key that seals.

        Raises:
            ClaimsTooLarge: over `max_token_bytes`.
        """
        key = self._keyring.first
        plain = codec.encode(replace(claims, principal=key.fingerprint(principal)))
        length = ((_OVERHEAD_BYTES + len(plain)) * 4 + 2) // 3
        if length > self._max_token_bytes:
            raise ClaimsTooLarge(f"a token of {length} bytes, at most {self._max_token_bytes} are allowed")
        bound = VERSION + key.mark
        nonce = self._random(NONCE_BYTES)
        return _to_text(bound + nonce + key.seal(nonce, plain, bound))

    def open(self, token: str, expected: Expected, now: float) -> Claims:
        """The claims of a token that we sealed for exactly this request, and in time.

        Raises:
            StateRejected: anything is wrong. Its text is for the log and names what is wrong, never a value.
        """
        if len(token) > self._max_token_bytes:
            raise StateRejected("token too long")
        data = _from_text(token)
        if data is None:
            raise StateRejected("token is not canonical base64url")
        if len(data) < _OVERHEAD_BYTES:
            raise StateRejected("token too short")
        bound, nonce, sealed = data[:_BOUND_BYTES], data[_BOUND_BYTES:_PREFIX_BYTES], data[_PREFIX_BYTES:]
        if bound[: len(VERSION)] != VERSION:
            raise StateRejected("token of another version")
        key = self._keyring.find(bound[len(VERSION) :])
        if key is None:
            raise StateRejected("sealed with a key that is not in the ring")
        try:
            packed = codec.read(key.open(nonce, sealed, bound))
        except InvalidTag:
            raise StateRejected("tag does not verify") from None
        except codec.Unreadable as why:
            raise StateRejected(f"unreadable claims: {why}") from None
        if wrong := _differences(packed, key, expected, now):
            raise StateRejected("ticket " + ", ".join(wrong))
        try:
            return packed.unpack()
        except codec.Unreadable as why:
            raise StateRejected(f"unreadable claims: {why}") from None


def _differences(packed: Packed, key: Key, expected: Expected, now: float) -> list[str]:
    # All are looked at whatever the first one says, so that the time taken does not tell which one failed.
    checks = (
        ("expired", now < packed.expires_at),
        ("of another principal", _same(packed.principal, key.fingerprint(expected.principal))),
        ("for another upstream", _same(packed.upstream, expected.upstream)),
        ("for another method", _same(packed.method, expected.method)),
        ("for another target", _same(packed.target, expected.target)),
        ("for other arguments", _same(packed.arguments, expected.arguments)),
    )
    return [name for name, holds in checks if not holds]


def _same(sealed: str, given: str) -> bool:
    # `surrogatepass`: a string from the caller may be no Unicode text, and is then simply another one.
    return hmac.compare_digest(
        sealed.encode("utf-8", "surrogatepass"), given.encode("utf-8", "surrogatepass")
    )


def _to_text(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).rstrip(b"=").translate(_TO_URL).decode("ascii")


def _from_text(text: str) -> bytes | None:
    if not text.isascii():
        return None
    digits = text.encode("ascii").translate(_FROM_URL)
    try:
        data = binascii.a2b_base64(digits + b"=" * (-len(digits) % 4))
    except binascii.Error:
        return None
    # The decoder forgives foreign characters, padding and stray bits at the end. Writing the bytes again
    # does not: one text, and no other, stands for them.
    return data if _to_text(data) == text else None
