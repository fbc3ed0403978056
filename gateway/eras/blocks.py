"""Blocks of content, each made readable for modern clients. It knows no method and no message around them.

A block that no client could read is shown as the text that it is: what a server
said is for a model or a person, who may well make sense of it.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.json import Decoder

from gateway.eras.shapes import BLOCKS, NULL, Contents, EmbeddedBlock, attempt, fits, mend
from gateway.wire.jsonrpc import Raw, encode

_ITEMS: Final = Decoder(list[Raw])
_TEXT: Final = Decoder(str)


class _Typed(Struct):
    type: str


_TYPED: Final = Decoder(_Typed)
_EMBEDDED: Final = Decoder(EmbeddedBlock)


def readable(raw: Raw, shapes: Mapping[str, type[Struct]] = BLOCKS) -> Any:
    """The block if a client can read it, mended if need be, or as text."""
    typed = attempt(_TYPED, raw)
    shape = None if typed is None else shapes.get(typed.type)
    mended = None if shape is None else mend(shape, raw)
    if mended is None or (shape is EmbeddedBlock and not is_whole(_EMBEDDED.decode(encode(mended)))):
        return as_text(raw)
    return mended


def as_text(raw: Raw) -> dict[str, Any]:
    """A text block with what the server wrote: the text itself if it is one, else its JSON."""
    text = raw if fits(_TEXT, raw) else bytes(raw).decode()
    return {"type": "text", "text": text}


def is_whole(block: Any) -> bool:
    """Has an embedded resource what it embeds? Of any other kind of block its shape says it all."""
    return not isinstance(block, EmbeddedBlock) or holds_something(block.resource)


def holds_something(contents: Contents) -> bool:
    """Is there a text or a blob?"""
    return isinstance(contents.text, str) or isinstance(contents.blob, bytes)


def items(raw: Raw) -> list[Raw]:
    """The entries of a list. Go writes an empty one as `null`; a lone object was meant as the only entry."""
    if raw == NULL:
        return []
    found = attempt(_ITEMS, raw)
    return [raw] if found is None else found
