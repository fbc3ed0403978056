"""A legacy server's lists of tools, prompts, resources and templates, made safe for modern clients.

Modern clients throw away the whole list for one bad entry in it. A clean list
is passed on as the bytes it came in; in any other only what is wrong is taken
out, and an entry is dropped only if nothing can save it. It knows no result
around the list, and no upstream.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, Final

from msgspec import UNSET, DecodeError, Struct
from msgspec.json import Decoder

from gateway.eras import param_headers
from gateway.eras.shapes import (
    NULL,
    InputSchema,
    Prompt,
    Resource,
    ResourceTemplate,
    Tool,
    fits,
    mend_members,
)
from gateway.wire.jsonrpc import Raw, decode_members, encode

_ITEMS: Final = Decoder(list[Raw])
_TEXT: Final = Decoder(str)
_OBJECT_TYPE: Final = Raw(b'"object"')
_INPUT_SCHEMA: Final = Decoder(InputSchema)


@dataclass(frozen=True, slots=True)
class _Listing:
    member: str
    """The result member that holds the list."""
    key: str
    """The entry's member by which clients name it."""
    identity: Callable[[Any], str]
    """The same, of an entry that was read."""
    decoder: Decoder[Any]
    shape: type[Struct]
    rescue: Callable[[dict[str, Any]], None] = lambda _: None
    """What this kind of entry needs before its members are held against the shape."""
    is_clean: Callable[[list[Any], Raw], bool] = lambda _entries, _items: True
    """What the shape alone cannot tell."""


def sanitise(method: str, items: Raw) -> Raw | list[Any]:
    """The list of this method's result; the very same if a client can take it as it is.

    Something that is no list at all becomes an empty one: servers in Go say
    `null` where they mean that.
    """
    listing = _LISTINGS[method]
    try:
        entries = listing.decoder.decode(items)
    except (DecodeError, RecursionError):
        return _mended(listing, items)
    keys = {listing.identity(entry) for entry in entries}
    if len(keys) == len(entries) and listing.is_clean(entries, items):
        return items
    return _mended(listing, items)


def member_of(method: str) -> str | None:
    """The member of this method's result that holds a list of definitions, if it has one."""
    listing = _LISTINGS.get(method)
    return None if listing is None else listing.member


def _mended(listing: _Listing, items: Raw) -> list[Any]:
    if not fits(_ITEMS, items):
        return []
    mended: list[Any] = []
    seen: set[str] = set()
    for raw in _ITEMS.decode(items):
        written = decode_members(raw)
        if written is None or not fits(_TEXT, written.get(listing.key, NULL)):
            continue
        key = _TEXT.decode(written[listing.key])
        members: dict[str, Any] = dict(written)
        listing.rescue(members)
        entry = mend_members(listing.shape, members)
        if entry is None or key in seen:
            continue
        seen.add(key)
        is_untouched = entry.keys() == written.keys() and all(entry[name] is written[name] for name in entry)
        mended.append(raw if is_untouched else entry)
    return mended


def _rescue_tool(members: dict[str, Any]) -> None:
    members.pop("execution", None)
    members["inputSchema"] = param_headers.without_illegal(_input_schema(members.get("inputSchema", NULL)))


def _input_schema(raw: Raw) -> Raw:
    if fits(_INPUT_SCHEMA, raw):
        return raw
    # `type` keeps its place if it had one: the order is part of what the server wrote.
    members = {**(decode_members(raw) or {}), "type": _OBJECT_TYPE}
    return Raw(encode(mend_members(InputSchema, members)))


def _name_by(key: str, members: dict[str, Any]) -> None:
    """Without a name, the title or the address will do: it is only shown."""
    if not fits(_TEXT, members.get("name", NULL)):
        title = members.get("title", NULL)
        members["name"] = title if fits(_TEXT, title) else members[key]


def _clean_tools(tools: list[Tool], items: Raw) -> bool:
    return all(tool.execution is UNSET for tool in tools) and param_headers.KEYWORD.encode() not in bytes(
        items
    )


_LISTINGS: Final = {
    "tools/list": _Listing(
        member="tools",
        key="name",
        identity=attrgetter("name"),
        decoder=Decoder(list[Tool]),
        shape=Tool,
        rescue=_rescue_tool,
        is_clean=_clean_tools,
    ),
    "prompts/list": _Listing(
        member="prompts",
        key="name",
        identity=attrgetter("name"),
        decoder=Decoder(list[Prompt]),
        shape=Prompt,
    ),
    "resources/list": _Listing(
        member="resources",
        key="uri",
        identity=attrgetter("uri"),
        decoder=Decoder(list[Resource]),
        shape=Resource,
        rescue=partial(_name_by, "uri"),
    ),
    "resources/templates/list": _Listing(
        member="resourceTemplates",
        key="uriTemplate",
        identity=attrgetter("uri_template"),
        decoder=Decoder(list[ResourceTemplate]),
        shape=ResourceTemplate,
        rescue=partial(_name_by, "uriTemplate"),
    ),
}
