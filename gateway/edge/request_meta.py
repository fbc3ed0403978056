"""Reads and checks what a modern request says about itself in `_meta`. It knows no header and no method.

Clients say the same in each request, so what one said is remembered by its bytes.
"""

from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from gateway.errors import InvalidParams
from gateway.wire.jsonrpc import Id, NotJson, Params, Raw, decode, decode_members
from gateway.wire.versions import (
    LOG_LEVELS,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_PROTOCOL_VERSION,
)

_MODERN: Final = (META_PROTOCOL_VERSION, META_CLIENT_CAPABILITIES, META_CLIENT_INFO)
_MOST_KEPT: Final = 256
_LONGEST_KEPT: Final = 2048
"""Bytes. Together they bound what clients can have us remember of their `_meta`."""


class RequestMeta(Struct, frozen=True):
    """What `_meta` says, before anybody asks whether it may say so."""

    members: Params
    is_modern: bool
    """Shows something of this era."""
    version: Any
    capabilities: Any
    client: Any


def meta_of(params: Params) -> RequestMeta | None:
    """`_meta`, if it is an object."""
    raw = params.get("_meta")
    if raw is None:
        return None
    data = bytes(raw)
    if len(data) > _LONGEST_KEPT or b"progressToken" in data:  # such a token never comes again
        return _read(data)
    return _known(data)


def required(meta: RequestMeta) -> tuple[str, dict[str, Any]]:
    """The revision and the capabilities, which every request must carry."""
    if not isinstance(meta.version, str):
        raise InvalidParams(detail=f"_meta must have {META_PROTOCOL_VERSION}, a string")
    if not isinstance(meta.capabilities, dict):
        raise InvalidParams(detail=f"_meta must have {META_CLIENT_CAPABILITIES}, an object")
    return meta.version, meta.capabilities


def client_info(meta: RequestMeta) -> dict[str, Any] | None:
    """Who the client is, if it says."""
    if meta.client is None or isinstance(meta.client, dict):
        return meta.client
    raise InvalidParams(detail=f"{META_CLIENT_INFO} must be an object")


def log_level(meta: RequestMeta) -> str | None:
    """From which level on it wants to see logs, if it wants to see any."""
    if META_LOG_LEVEL not in meta.members:
        return None
    level = plain_value(meta.members, META_LOG_LEVEL)
    if not isinstance(level, str) or level not in LOG_LEVELS:
        raise InvalidParams(detail=f"{META_LOG_LEVEL} must be one of {', '.join(LOG_LEVELS)}")
    return level


def progress_token(meta: RequestMeta) -> Id | None:
    """Under which it wants to hear of progress, if it does."""
    if "progressToken" not in meta.members:
        return None
    token = plain_value(meta.members, "progressToken")
    if isinstance(token, float) and token.is_integer():
        token = int(token)  # to JSON 1.0 is an integer
    # `True` is an int to Python, but not to JSON.
    if isinstance(token, bool) or not isinstance(token, int | str):
        raise InvalidParams(detail="progressToken must be a string or an integer")
    return token


def plain_value(members: Params, name: str) -> Any:
    """The member's value; None if it is null, absent, or nested beyond reason."""
    raw: Raw | None = members.get(name)
    try:
        return None if raw is None else decode(raw)
    except NotJson:
        return None


def _read(data: bytes) -> RequestMeta | None:
    try:
        members = decode_members(data)
    except NotJson:  # nested so deep that it could be skipped, but not taken apart
        return None
    if members is None:
        return None
    return RequestMeta(
        members=members,
        is_modern=not members.keys().isdisjoint(_MODERN),
        version=plain_value(members, META_PROTOCOL_VERSION),
        capabilities=plain_value(members, META_CLIENT_CAPABILITIES),
        client=plain_value(members, META_CLIENT_INFO),
    )


_known: Final = lru_cache(maxsize=_MOST_KEPT)(_read)
