"""Reads sealing keys from text and from files, and checks their length. Does no cryptography."""

import binascii
import re
from pathlib import Path
from typing import Final

KEY_BYTES: Final = 32
"""The least that a key may have: the strength of AES-256."""
_HEX: Final = re.compile(r"(?:[0-9A-Fa-f]{2})+", re.ASCII)
_BASE64: Final = re.compile(r"([A-Za-z0-9+/]+|[A-Za-z0-9_-]+)(={0,2})", re.ASCII)
_STANDARD: Final = str.maketrans("-_", "+/")
_LARGEST_FILE: Final = 1024**2
_MOST_FILES: Final = 64


class KeysFileUnusable(ValueError):
    """The keys file cannot be read, or holds something else than keys. The text never shows a key."""


def decode_key(text: str) -> bytes:
    """Return the bytes of a key in base64url, base64 or hex, padded or not, white space around it ignored.

    Text that is hex as a whole is hex: random bytes do not look like that in base64.

    Raises:
        ValueError: it is none of them, or too short. The text is not repeated.
    """
    text = text.strip()
    if not text:
        raise ValueError("is empty; `holdfast keygen` prints a key")
    if _HEX.fullmatch(text):
        key = bytes.fromhex(text)
    elif (found := _BASE64.fullmatch(text)) and _is_whole(len(found[1]), len(found[2])):
        key = binascii.a2b_base64(found[1].translate(_STANDARD) + "=" * (-len(found[1]) % 4))
    else:
        raise ValueError("is not a key in base64url, base64 or hex; `holdfast keygen` prints one")
    if len(key) < KEY_BYTES:
        raise ValueError(
            f"is too short: {len(key)} bytes where {KEY_BYTES} are needed; see `holdfast keygen`"
        )
    return key


def read_keys_file(path: Path) -> list[str]:
    """Return the keys in a file, or in the files of a folder by their names.

    One per line; empty lines and lines that begin with `#` are skipped. In a folder, what begins with a dot is
    skipped too: that is how Kubernetes keeps the past of a mounted secret.
    """
    try:
        if not path.is_dir():
            return _read_one(path)
        files = sorted(file for file in path.iterdir() if not file.name.startswith("."))
    except OSError as error:
        raise KeysFileUnusable(f"cannot be read: {error.strerror or type(error).__name__}") from None
    except ValueError as error:
        if isinstance(error, KeysFileUnusable):
            raise
        raise KeysFileUnusable("cannot be the path of a file") from None
    if not files or len(files) > _MOST_FILES:
        raise KeysFileUnusable("is a folder without keys" if not files else "is a folder with too many files")
    keys: list[str] = []
    for file in files:
        try:
            keys += _read_one(file)
        except KeysFileUnusable as error:
            raise KeysFileUnusable(f"its file {file.name!r}: {error}") from None
    return keys


def _read_one(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise KeysFileUnusable(f"cannot be read: {error.strerror or type(error).__name__}") from None
    except ValueError:
        raise KeysFileUnusable("cannot be the path of a file") from None
    if len(content) > _LARGEST_FILE:
        raise KeysFileUnusable("is too large for a file of keys")
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise KeysFileUnusable("is not text; write each key as a line of base64url") from None
    keys: list[str] = []
    for number, line in enumerate(map(str.strip, lines), start=1):
        if not line or line.startswith("#"):
            continue
        try:
            decode_key(line)
        except ValueError as error:
            raise KeysFileUnusable(f"line {number} {error}") from None
        keys.append(line)
    if not keys:
        raise KeysFileUnusable("contains no key")
    return keys


def _is_whole(digits: int, padding: int) -> bool:
    missing = -digits % 4
    return missing != 3 and padding in {0, missing}
