"""Base64 as every client reads it, out of what servers write in its place. It knows no block and no resource.

Clients in TypeScript, Go and C# throw away a whole result for one picture whose
data is not base64 to the letter. What servers write instead is mostly base64
all the same: in lines, in the alphabet for URLs, without padding, or as a data
URL. Whether it is a picture nobody asks here.
"""

import binascii
import re
from typing import Final

from gateway.wire.jsonrpc import NotJson, Raw, decode

_DATA_URL: Final = re.compile(r"\A\s*data:[^,]*;base64,", re.IGNORECASE)
_FOR_URLS: Final = str.maketrans("-_", "+/")


def as_base64(raw: Raw) -> str | None:
    """The same bytes as standard base64 with padding; None if it is no base64 of any kind."""
    try:
        written = decode(raw)
    except NotJson:
        return None
    if not isinstance(written, str):
        return None
    lines = _DATA_URL.sub("", written, count=1).strip().splitlines()
    bare = "".join(line.strip() for line in lines).translate(_FOR_URLS).rstrip("=")
    padded = bare + "=" * (-len(bare) % 4)
    try:
        binascii.a2b_base64(padded, strict_mode=True)
    except ValueError:  # binascii's own error is one, and so is what is not ASCII
        return None
    return padded
