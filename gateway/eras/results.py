"""A legacy server's result as a modern one. It knows no request but its method, and asks nobody anything.

Modern results say what they are (`resultType`), who made them (`serverInfo`)
and, for six methods, how long they keep (`ttlMs`, `cacheScope`); modern clients
refuse results that do not. Everything else goes on as the server wrote it,
unless a client could not take it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from msgspec.json import Decoder

from gateway.eras import lists
from gateway.eras.blocks import as_text, holds_something, is_whole, items, readable
from gateway.eras.shapes import (
    NULL,
    Block,
    Completion,
    Contents,
    Message,
    Role,
    attempt,
    fits,
    mend,
    mend_members,
)
from gateway.errors import UpstreamSpokeNonsense
from gateway.wire.jsonrpc import NotJson, Params, Raw, decode_members
from gateway.wire.versions import META_RELATED_TASK, META_SERVER_INFO, at_least

CacheScope = Literal["public", "private"]

CACHEABLE_METHODS: Final = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)
"""Whose complete results carry caching hints (server/utilities/caching)."""

_MODERN_ONLY: Final = frozenset(
    {"resultType", "ttlMs", "cacheScope", "inputRequests", "requestState", "inputResponses"}
)
"""Members that mean something to a modern client, but nothing a legacy server could have meant."""

_MOST_VALUES: Final = 100

_TEXT: Final = Decoder(str)
_BOOL: Final = Decoder(bool)
_ROLE: Final = Decoder(Role)
_BLOCK_LIST: Final = Decoder(list[Block])
_MESSAGES: Final = Decoder(list[Message])
_CONTENTS_LIST: Final = Decoder(list[Contents])
_COMPLETION: Final = Decoder(Completion)


def to_modern_result(
    method: str,
    result: Raw,
    *,
    server_info: Mapping[str, Any] | None,
    ttl_ms: int,
    cache_scope: CacheScope,
    version: str,
) -> dict[str, Any]:
    """The complete result, ready to be encoded. `version` is the revision that the upstream speaks.

    Raises:
        UpstreamSpokeNonsense: Not a result of this method, in any revision.
    """
    try:
        members = decode_members(result)
        if members is None:
            raise UpstreamSpokeNonsense(f"the result of {method} is not an object")
        return {
            "resultType": "complete",
            **_body(method, members, version),
            **stamp(method, members.get("_meta"), server_info, ttl_ms=ttl_ms, cache_scope=cache_scope),
        }
    except NotJson as error:
        raise UpstreamSpokeNonsense(str(error)) from None


def stamp(
    method: str,
    meta: Raw | None,
    server_info: Mapping[str, Any] | None,
    *,
    ttl_ms: int,
    cache_scope: CacheScope,
) -> dict[str, Any]:
    """What this revision puts on a complete result: who made it, and how long it keeps."""
    stamped: dict[str, Any] = {}
    merged: dict[str, Any] = dict((decode_members(meta) if meta is not None else None) or {})
    merged.pop(META_RELATED_TASK, None)
    if server_info is not None:
        merged[META_SERVER_INFO] = server_info
    if merged:
        stamped["_meta"] = merged
    if method in CACHEABLE_METHODS:
        stamped["ttlMs"] = ttl_ms
        stamped["cacheScope"] = cache_scope
    return stamped


def _body(method: str, members: Params, version: str) -> dict[str, Any]:
    """The result's own members, without those that clients would misread or refuse."""
    body: dict[str, Any] = {
        name: value
        for name, value in members.items()
        if name not in _MODERN_ONLY and name != "_meta" and value != NULL
    }
    listed = lists.member_of(method)
    if listed is not None:
        body[listed] = lists.sanitise(method, body.get(listed, NULL))
        _keep_if(_TEXT, body, "nextCursor")
        return body
    translate = _TRANSLATIONS.get(method)
    if translate is not None:
        translate(body, version)
    return body


def _tool_result(body: dict[str, Any], version: str) -> None:
    bare = None if at_least(version, "2025-03-26") else body.pop("toolResult", None)
    if bare is not None and "content" not in body:
        # From before content blocks; old servers still answer so.
        body["content"] = [as_text(bare)]
    else:
        body["content"] = _blocks(body.get("content", NULL))
    _keep_if(_BOOL, body, "isError")


def _prompt(body: dict[str, Any], _version: str) -> None:
    _keep_if(_TEXT, body, "description")
    raw = body.get("messages", NULL)
    messages = attempt(_MESSAGES, raw)
    if messages is None or not all(is_whole(message.content) for message in messages):
        body["messages"] = [_message(item) for item in items(raw)]


def _read(body: dict[str, Any], _version: str) -> None:
    if "contents" not in body:
        raise UpstreamSpokeNonsense("resources/read without contents")
    raw = body["contents"]
    contents = attempt(_CONTENTS_LIST, raw)
    if contents is None or not all(map(holds_something, contents)):
        body["contents"] = [_contents(item) for item in items(raw)]


def _completion(body: dict[str, Any], _version: str) -> None:
    raw = body.get("completion", NULL)
    if fits(_COMPLETION, raw):
        return
    members: dict[str, Any] = dict(decode_members(raw) or {})
    values = [value for value in items(members.get("values", NULL)) if fits(_TEXT, value)]
    members["values"] = values[:_MOST_VALUES]
    if len(values) > _MOST_VALUES:
        members["hasMore"] = True
    body["completion"] = mend_members(Completion, members)


_TRANSLATIONS: Final[Mapping[str, Callable[[dict[str, Any], str], None]]] = {
    "tools/call": _tool_result,
    "prompts/get": _prompt,
    "resources/read": _read,
    "completion/complete": _completion,
}


def _blocks(raw: Raw) -> Raw | list[Any]:
    blocks = attempt(_BLOCK_LIST, raw)
    if blocks is not None and all(map(is_whole, blocks)):
        return raw
    return [readable(item) for item in items(raw)]


def _message(raw: Raw) -> Any:
    members = decode_members(raw)
    if members is None:
        return {"role": "user", "content": as_text(raw)}
    role = members.get("role", NULL)
    return {
        **members,
        "role": role if fits(_ROLE, role) else "user",
        "content": readable(members.get("content", Raw(b'""'))),
    }


def _contents(raw: Raw) -> Any:
    mended = mend(Contents, raw)
    if mended is None:
        raise UpstreamSpokeNonsense("resource contents without a uri")
    members = decode_members(mended) if isinstance(mended, Raw) else mended
    if members is not None and "text" not in members and "blob" not in members:
        # A blob that is no base64 was meant as the text that it is.
        written = (decode_members(raw) or {}).get("blob", NULL)
        return {**members, "text": written if fits(_TEXT, written) else ""}
    return mended


def _keep_if(decoder: Decoder[Any], body: dict[str, Any], name: str) -> None:
    if name in body and not fits(decoder, body[name]):
        del body[name]
