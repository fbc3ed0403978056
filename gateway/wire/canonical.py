"""One digest for all spellings of a JSON value. It does not know what is compared, nor why.

Member order, white space, escapes, and `1.0` for `1` do not change it; any
other difference does. Numbers are compared exactly, not as floats.
"""

import hashlib
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Final

from msgspec import Raw
from msgspec.json import Decoder, Encoder

_MOST_DIGITS: Final = 309
"""Of a number with exponent that is written out: as many as the largest double has. `1e999999999` is not."""

_exact: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def _number(text: str) -> int | Decimal:
    number = _exact.normalize(Decimal(text))
    if number != 0 and number.adjusted() >= _MOST_DIGITS:
        return number
    return int(number) if number == number.to_integral_value() else number


_decode: Final = Decoder(float_hook=_number).decode
_encode: Final = Encoder(order="deterministic", decimal_format="number").encode


def digest(raw: bytes | Raw | None) -> str:
    """SHA-256 in hex. None (absent) has a digest of its own, unlike that of `null` or `{}`."""
    return hashlib.sha256(_canonical(raw)).hexdigest()


def _canonical(raw: bytes | Raw | None) -> bytes:
    if raw is None:
        return b""
    try:
        return _encode(_decode(raw))
    except (ValueError, ArithmeticError, RecursionError):
        # No Python value holds it (an integer of ten thousand digits, say): only the same bytes are equal to
        # it. No JSON text starts with NUL, so it equals nothing else.
        return b"\0" + bytes(raw)
