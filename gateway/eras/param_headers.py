"""`x-mcp-header` annotations in a tool's input schema: which are legal, and schemas without the others.

A client must drop a tool of which any annotation breaks the rules (basic/
transports/streamable-http, "Schema Extension"). A legacy server never meant a
header by that keyword, so we take the keyword out and keep the tool. Nothing
here looks at headers or arguments.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec.json import Decoder

from gateway.eras.shapes import fits
from gateway.wire.jsonrpc import Raw, decode, decode_members, encode

KEYWORD: Final = "x-mcp-header"

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES: Final = frozenset({"string", "integer", "boolean"})

# Where a schema can stand inside a schema, other than `properties`, the only way that a header may take.
# Keywords that hold data (`default`, `examples`, `enum`, `const`) are not among them.
_ONE: Final = frozenset(
    {
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_SEVERAL: Final = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties"})

_DEEPEST: Final = 64
"""Schemas nested deeper are left alone; all it costs is that a client may drop that tool."""

_ITEMS: Final = Decoder(list[Raw])


@dataclass(frozen=True, slots=True)
class ParamHeader:
    """An argument that clients repeat in a header."""

    name: str
    """What follows `Mcp-Param-`, in the annotation's own spelling."""
    path: tuple[str, ...]
    """Where in the arguments it stands: member by member, from the outside."""


def of_tools(tools: Raw | list[Any]) -> Mapping[str, tuple[ParamHeader, ...]]:
    """By tool, what a list asks clients to repeat; tools that ask for nothing are not in it.

    The list must be one that `lists.sanitise` gave out: all its annotations are legal.
    """
    if isinstance(tools, Raw):
        return {}  # passed on as it came, so there was nothing in it to look at
    asked: dict[str, tuple[ParamHeader, ...]] = {}
    for entry in tools:
        written = bytes(entry) if isinstance(entry, Raw) else encode(entry)
        tool = decode_members(Raw(written)) if KEYWORD.encode() in written else None
        if tool is not None:
            headers = tuple(_asked_in(tool["inputSchema"], (), 0))
            if headers:
                asked[decode(tool["name"])] = headers
    return asked


def _asked_in(schema: Raw, path: tuple[str, ...], depth: int) -> Iterator[ParamHeader]:
    members = decode_members(schema) if depth <= _DEEPEST else None
    if members is None:
        return
    if KEYWORD in members:
        yield ParamHeader(decode(members[KEYWORD]), path)
    properties = decode_members(members["properties"]) if "properties" in members else None
    for name, value in (properties or {}).items():
        yield from _asked_in(value, (*path, name), depth + 1)


def without_illegal(schema: Raw) -> Raw | dict[str, Any]:
    """The schema with only its legal annotations; the very same if all are. Of two alike the first stays."""
    if KEYWORD.encode() not in bytes(schema):
        return schema
    kept = _Walk().schema(schema, reachable=False, properties_reachable=True, depth=0)
    return kept if isinstance(kept, dict) else schema


class _Walk:
    """One pass over one tool's schema, in the order in which it is written."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def schema(self, raw: Raw, *, reachable: bool, properties_reachable: bool, depth: int) -> Any:
        """The schema at this place; `raw` itself if nothing had to go."""
        members = decode_members(raw) if depth <= _DEEPEST else None
        if members is None:
            return raw
        kept: dict[str, Any] = dict(members)
        if KEYWORD in kept and not (reachable and self._is_legal(members)):
            del kept[KEYWORD]
        for name, value in members.items():
            if name == "properties":
                kept[name] = self._named(value, reachable=properties_reachable, depth=depth)
            elif name in _SEVERAL and fits(_ITEMS, value):
                kept[name] = self._several(value, depth)
            elif name in _ONE:
                kept[name] = self.schema(value, reachable=False, properties_reachable=False, depth=depth + 1)
            elif name in _NAMED:
                kept[name] = self._named(value, reachable=False, depth=depth)
        return raw if _same(kept, members) else kept

    def _named(self, raw: Raw, *, reachable: bool, depth: int) -> Any:
        members = decode_members(raw)
        if members is None:
            return raw
        kept = {
            name: self.schema(value, reachable=reachable, properties_reachable=reachable, depth=depth + 1)
            for name, value in members.items()
        }
        return raw if _same(kept, members) else kept

    def _several(self, raw: Raw, depth: int) -> Any:
        items = _ITEMS.decode(raw)
        kept = [
            self.schema(item, reachable=False, properties_reachable=False, depth=depth + 1) for item in items
        ]
        return raw if all(new is old for new, old in zip(kept, items, strict=True)) else kept

    def _is_legal(self, members: dict[str, Raw]) -> bool:
        name = decode(members[KEYWORD])
        kind = decode(members["type"]) if "type" in members else None
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            return False
        if not isinstance(kind, str) or kind not in _TYPES or name.lower() in self._taken:
            return False
        self._taken.add(name.lower())
        return True


def _same(kept: dict[str, Any], members: dict[str, Raw]) -> bool:
    return len(kept) == len(members) and all(kept[name] is value for name, value in members.items())
