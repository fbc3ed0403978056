"""The keys that seal tickets: how they are derived and ordered. It does not know what a ticket says.

Rotation, without a ticket refused on the way:

    [old]         everywhere
    [old, new]    every replica learns to open what the new key will seal
    [new, old]    the new key seals; tickets of the old one still open
    [new]         once the longest time to live has passed

No key leaves this module: others are given operations, not bytes.
"""

import hmac
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gateway.settings.keys import KEY_BYTES, decode_key

Random: TypeAlias = Callable[[int], bytes]
"""Gives that many unpredictable bytes."""

MARK_BYTES: Final = 4
"""Length of a key's mark in a token. Marks only find the key; the tag proves it."""


class Key:
    """One secret, as independent keys: for tickets, for letters, for fingerprints, and one that is its name."""

    __slots__ = ("_aead", "_fingerprint_key", "_letter_key", "_principal_key", "id", "mark")

    id: str
    """Eight hex digits. Says nothing about the secret; good for logs and metrics."""
    mark: bytes
    """The same as bytes: what a token carries."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) < KEY_BYTES:
            raise ValueError(f"a sealing key needs at least {KEY_BYTES} bytes, this one has {len(secret)}")
        self._aead = AESGCM(_derive(secret, b"seal"))
        self._fingerprint_key = _derive(secret, b"fingerprint")
        self._letter_key = _derive(secret, b"letter")
        self._principal_key = _derive(secret, b"principal")
        self.mark = _derive(secret, b"id")[:MARK_BYTES]
        self.id = self.mark.hex()

    def seal(self, nonce: bytes, plain: bytes, bound: bytes) -> bytes:
        """Encrypt `plain`; `bound` stays readable, and neither can be changed without breaking the tag."""
        return self._aead.encrypt(nonce, plain, bound)

    def open(self, nonce: bytes, sealed: bytes, bound: bytes) -> bytes:
        """Undo `seal`.

        Raises:
            cryptography.exceptions.InvalidTag: something was changed, or another key sealed it.
        """
        return self._aead.decrypt(nonce, sealed, bound)

    def writer(self, name: bytes) -> AESGCM:
        """What one process seals its letters with: a key of its own, so that its nonces may be a plain count."""
        return AESGCM(_derive(self._letter_key, b"writer/" + name))

    def fingerprint(self, material: bytes) -> str:
        """A keyed hash: equal for equal material, of no use to anybody without this key."""
        return hmac.digest(self._fingerprint_key, material, "sha256").hex()

    def principal(self, material: bytes) -> str:
        """What a caller is called inside a process.

        A process keeps the name-giving key that it started with, whatever becomes of the ring: sessions and
        holds stay with their owners through a rotation. Between processes nobody is called by this name. Tickets
        name their owner by `fingerprint`, under the key that sealed them, so they need no agreement on it.
        """
        return hmac.digest(self._principal_key, material, "sha256").hex()[:32]

    def __repr__(self) -> str:
        return f"Key(id={self.id!r})"

    def __reduce__(self) -> str:
        raise TypeError("a Key is not copied or pickled: it would carry the secret along")


class Keyring:
    """The first key seals, all open."""

    __slots__ = ("_by_mark", "keys")

    def __init__(self, keys: Sequence[Key]) -> None:
        self.keys: tuple[Key, ...] = ()
        self._by_mark: dict[bytes, Key] = {}
        self.turn(keys)

    def turn(self, keys: Sequence[Key]) -> None:
        """Have these keys from now on, for everybody who has this ring: a rotation, at once and as a whole.

        Raises:
            ValueError: they are no ring; it stays as it was.
        """
        if not keys:
            raise ValueError("a key ring needs at least one key")
        by_mark: dict[bytes, Key] = {}
        for place, key in enumerate(keys, 1):
            if key.mark in by_mark:
                # The same secret twice is a rotation that went wrong; say so before it is relied on.
                raise ValueError(f"sealing key {place} ({key.id}) is in the ring already")
            by_mark[key.mark] = key
        self.keys, self._by_mark = tuple(keys), by_mark

    @classmethod
    def from_secrets(cls, secrets: Sequence[str]) -> "Keyring":
        """A ring of secrets as they are written in the configuration, in that order.

        Raises:
            ValueError: one cannot be used; the text says which by its place, never by its content.
        """
        keys: list[Key] = []
        for place, text in enumerate(secrets, 1):
            try:
                keys.append(Key(decode_key(text)))
            except ValueError as refusal:
                raise ValueError(f"sealing key {place}: {refusal}") from None
        return cls(keys)

    @classmethod
    def ephemeral(cls, random: Random) -> "Keyring":
        """A ring that no other process has and that a restart forgets, with all tickets under it."""
        return cls([Key(random(KEY_BYTES))])

    @property
    def first(self) -> Key:
        """The key that seals."""
        return self.keys[0]

    def find(self, mark: bytes) -> Key | None:
        """The key whose mark a token carries, if it is (still) in the ring."""
        return self._by_mark.get(mark)

    def __repr__(self) -> str:
        return f"Keyring(ids={[key.id for key in self.keys]})"


def _derive(secret: bytes, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=b"mcp-holdfast/1/" + purpose).derive(secret)
