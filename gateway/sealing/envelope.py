"""Seals what one replica writes to another. It does not know what a letter says, nor how it travels.

    letter = version 1 | key mark 4 | writer 16 | number 8 | AES-256-GCM( text ) | tag 16
             '---------------- bound, with the purpose and the addressee ------------'

Every process writes under a key of its own, derived from the ring's and from a
name that it draws at its start; so its letters are simply counted, and no
number of them wears out a key of the ring. A letter is no ticket and no ticket
a letter: neither the keys nor what is bound are the same.
"""

from collections import OrderedDict
from itertools import count
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.sealing.keyring import MARK_BYTES, Keyring, Random

VERSION: Final = b"\x01"
WRITER_BYTES: Final = 16
NUMBER_BYTES: Final = 8
TAG_BYTES: Final = 16

_PURPOSE: Final = b"mcp-holdfast/letter\0"
_MARK_END: Final = len(VERSION) + MARK_BYTES
_WRITER_END: Final = _MARK_END + WRITER_BYTES
_HEAD_BYTES: Final = _WRITER_END + NUMBER_BYTES
OVERHEAD_BYTES: Final = _HEAD_BYTES + TAG_BYTES

_MOST_WRITERS: Final = 256
"""Replicas whose keys are remembered; each restart is a new one."""


class LetterRefused(ValueError):
    """Not a letter that one of us wrote to this addressee. The text names what is wrong, never a value."""


class Envelope:
    """Seals letters and opens those that were sealed for one."""

    def __init__(self, keyring: Keyring, random: Random) -> None:
        self._keyring = keyring
        self._numbers = count()
        self._name = random(WRITER_BYTES)
        self._turn()
        self._writers: OrderedDict[bytes, AESGCM] = OrderedDict()

    def seal(self, letter: bytes, to: str) -> bytes:
        """The letter, closed; only the replica `to` can open it."""
        if self._key is not self._keyring.first:
            self._turn()
        head = self._head + next(self._numbers).to_bytes(NUMBER_BYTES, "big")
        return head + self._own.encrypt(_nonce(head), letter, _bound(head, to))

    def open(self, data: bytes, to: str) -> bytes:
        """What was sealed for `to`.

        Raises:
            LetterRefused: it was changed, is for another, or is not ours.
        """
        if len(data) < OVERHEAD_BYTES:
            raise LetterRefused("too short")
        head = data[:_HEAD_BYTES]
        if head[: len(VERSION)] != VERSION:
            raise LetterRefused("of another version")
        writer = self._writer(head)
        try:
            text = writer.decrypt(_nonce(head), data[_HEAD_BYTES:], _bound(head, to))
        except InvalidTag:
            raise LetterRefused("tag does not verify") from None
        # Remembered only now: names that somebody made up must not push out those of replicas.
        self._remember(head, writer)
        return text

    def _turn(self) -> None:
        """Write under the key that is the ring's first by now. Numbers go on: none comes twice under any key."""
        self._key = self._keyring.first
        self._head = VERSION + self._key.mark + self._name
        self._own = self._key.writer(self._name)

    def _writer(self, head: bytes) -> AESGCM:
        key = self._keyring.find(head[len(VERSION) : _MARK_END])
        if key is None:
            raise LetterRefused("sealed with a key that is not in the ring")
        known = self._writers.get(head[:_WRITER_END])
        if known is not None:
            return known
        return key.writer(head[_MARK_END:_WRITER_END])

    def _remember(self, head: bytes, writer: AESGCM) -> None:
        self._writers[head[:_WRITER_END]] = writer
        self._writers.move_to_end(head[:_WRITER_END])
        if len(self._writers) > _MOST_WRITERS:
            self._writers.popitem(last=False)


def _nonce(head: bytes) -> bytes:
    return b"\0\0\0\0" + head[_WRITER_END:]


def _bound(head: bytes, to: str) -> bytes:
    return _PURPOSE + head + to.encode("utf-8", "surrogatepass")
