"""Who may hear what of `subscriptions/listen`, and in which words. Pure; it knows no stream and no session.

A client names what it wants to hear of. It is promised the part of it that the
server can tell, and hears exactly that: lists by their kind, resources by their
URI. Whatever a legacy server says besides is nobody's business here.

    Interest    what a client wants, or is promised
    Change      what a server told
    Hearing     one listener's ear: which changes it is told, under its own id

A URI is compared in the form that the SDKs' URL types give it, because they send
back what they read and not what they were sent; the listener gets its own
spelling. An update may name a part of what was subscribed to (server/resources,
"Subscriptions"), and then goes out under the name that the server gave it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from gateway.errors import InvalidParams
from gateway.wire.jsonrpc import Id, Notification, NotJson, Params, decode, decode_members
from gateway.wire.versions import META_SERVER_INFO, META_SUBSCRIPTION_ID

METHOD: Final = "subscriptions/listen"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
UPDATED: Final = "notifications/resources/updated"

_URIS: Final = "resourceSubscriptions"
_LISTS: Final[Mapping[str, tuple[str, str]]] = {
    "toolsListChanged": ("tools", "notifications/tools/list_changed"),
    "promptsListChanged": ("prompts", "notifications/prompts/list_changed"),
    "resourcesListChanged": ("resources", "notifications/resources/list_changed"),
}
"""Members of the filter: the capability each belongs to, and the notification that it lets through."""

_MEMBER_OF: Final = {method: member for member, (_, method) in _LISTS.items()}

_LIST_METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
}

_AS_WRITTEN: Final = "!#$%&'()*+,-./:;=?@[\\]^_|~"
"""What the URL types leave as it is, besides letters and digits."""
_WEB: Final = frozenset({"http", "https", "ws", "wss", "ftp", "file"})
"""Schemes whose host has no case, and whose empty path is `/`. In others every letter counts."""


@dataclass(frozen=True, slots=True)
class Interest:
    """What a client wants to hear of, or what it is promised."""

    lists: frozenset[str] = frozenset()
    """Members of the filter, such as `toolsListChanged`."""
    uris: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lists or self.uris)

    def as_filter(self) -> dict[str, Any]:
        """The same as a `SubscriptionFilter`."""
        wire: dict[str, Any] = {member: True for member in _LISTS if member in self.lists}
        if self.uris:
            wire[_URIS] = list(self.uris)
        return wire


@dataclass(frozen=True, slots=True)
class Change:
    """Something at the server is not what it was."""

    method: str
    uri: str | None = None
    """Of the resource, if one was updated."""
    params: Params | None = None
    """As the server sent them; None: it sent none, we conclude it."""

    @property
    def lists(self) -> tuple[str, ...]:
        """The methods whose results are out of date by it."""
        return _LIST_METHODS.get(self.method, ())


@dataclass(frozen=True, slots=True)
class Heard:
    """One notification for one listener. Of two with the same method and URI the later one says it all."""

    method: str
    uri: str | None
    params: Mapping[str, Any]


def parse_interest(params: Params, *, most_uris: int) -> Interest:
    """What a `subscriptions/listen` request wants. Members that this revision does not know are not honoured.

    Raises:
        InvalidParams: the filter is missing or malformed, or names too many resources.
    """
    members = _members(params, "notifications")
    if members is None:
        raise InvalidParams(detail="params.notifications must be an object")
    lists = frozenset(member for member in _LISTS if _flag(members, member))
    uris = _value(members, _URIS)
    if uris is None:
        return Interest(lists)
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        raise InvalidParams(detail=f"{_URIS} must be an array of strings")
    unique = tuple(dict.fromkeys(uris))
    if len(unique) > most_uris:
        raise InvalidParams(detail=f"{_URIS} may name {most_uris} resources at most")
    return Interest(lists, unique)


def offered(wanted: Interest, capabilities: Mapping[str, Any]) -> Interest:
    """The part that a server with these capabilities may be asked for.

    Lists need the server's own word that it tells of changes. Resources need
    only to exist: Python servers never declare `subscribe`, whatever they can
    do, so each URI is tried and the answer decides.
    """
    lists = frozenset(member for member in wanted.lists if _tells_of(capabilities, _LISTS[member][0]))
    has_resources = capabilities.get("resources") not in (None, False)
    return Interest(lists, wanted.uris if has_resources else ())


def change_of(notification: Notification) -> Change | None:
    """What a notification tells of; None if it is about no list and no resource."""
    if notification.method in _MEMBER_OF:
        return Change(notification.method, params=notification.params)
    if notification.method == UPDATED:
        uri = _value(notification.params, "uri")
        return Change(UPDATED, uri, notification.params) if isinstance(uri, str) else None
    return None


def acknowledgement(subscription: Id, promised: Interest) -> dict[str, Any]:
    """The parameters of the first message on the stream."""
    return {"_meta": {META_SUBSCRIPTION_ID: subscription}, "notifications": promised.as_filter()}


def closing_result(subscription: Id, server_info: Mapping[str, Any] | None) -> dict[str, Any]:
    """The response that ends a subscription gracefully."""
    meta: dict[str, Any] = {META_SUBSCRIPTION_ID: subscription}
    if server_info:
        meta[META_SERVER_INFO] = server_info
    return {"resultType": "complete", "_meta": meta}


class Hearing:
    """One listener's ear: it was promised this much and hears no more."""

    __slots__ = ("_id", "_lists", "_spellings", "_uris")

    def __init__(self, subscription: Id, promised: Interest) -> None:
        self._id = subscription
        self._lists = [_LISTS[member][1] for member in _LISTS if member in promised.lists]
        self._uris = promised.uris
        self._spellings: dict[str, list[str]] = {}
        for uri in promised.uris:
            self._spellings.setdefault(_same(uri), []).append(uri)

    def admit(self, change: Change) -> Iterator[Heard]:
        """What this listener is told of the change; nothing, if it was not promised that."""
        if change.uri is None:
            if change.method in self._lists:
                yield self._heard(change.method, None, change.params)
        elif self._spellings:
            for uri in self._names_for(change.uri):
                yield self._heard(UPDATED, uri, change.params)

    def everything(self) -> Iterator[Heard]:
        """What is told after a time in which nobody could hear: all of it may have changed."""
        for method in self._lists:
            yield self._heard(method, None, None)
        for uri in self._uris:
            yield self._heard(UPDATED, uri, None)

    def _names_for(self, uri: str) -> Iterable[str]:
        key = _same(uri)
        own = self._spellings.get(key)
        if own is not None:
            return own
        return (uri,) if any(above in self._spellings for above in _above(key)) else ()

    def _heard(self, method: str, uri: str | None, params: Params | None) -> Heard:
        told: dict[str, Any] = {name: raw for name, raw in (params or {}).items() if bytes(raw) != b"null"}
        if uri is not None:
            told["uri"] = uri
        told["_meta"] = {**(_members(params or {}, "_meta") or {}), META_SUBSCRIPTION_ID: self._id}
        return Heard(method, uri, told)


def _tells_of(capabilities: Mapping[str, Any], name: str) -> bool:
    declared = capabilities.get(name)
    return isinstance(declared, Mapping) and declared.get("listChanged") is True


def _same(uri: str) -> str:
    """Equal for spellings that URL types make equal: what is escaped, and on the web case and an empty path."""
    written = quote(uri, safe=_AS_WRITTEN, errors="replace")
    scheme, found, rest = written.partition("://")
    if not found:
        return written
    if scheme.lower() not in _WEB:
        return f"{scheme.lower()}://{rest}"
    end = next((place for place, letter in enumerate(rest) if letter in "/?#"), len(rest))
    path = "" if rest[end:] == "/" else rest[end:]
    return f"{scheme.lower()}://{rest[:end].lower()}{path}"


def _above(key: str) -> Iterator[str]:
    """All that this URI could be a part of."""
    for place, letter in enumerate(key):
        if letter in "/?#" and place:
            yield key[:place]
            if letter == "/":
                yield key[: place + 1]


def _flag(members: Params, name: str) -> bool:
    value = _value(members, name)
    if value is not None and not isinstance(value, bool):
        raise InvalidParams(detail=f"{name} must be a boolean")
    return bool(value)


def _members(params: Params, name: str) -> Params | None:
    raw = params.get(name)
    try:
        return None if raw is None else decode_members(raw)
    except NotJson:
        return None


def _value(params: Params, name: str) -> Any:
    raw = params.get(name)
    try:
        return None if raw is None else decode(raw)
    except NotJson:
        return None
