"""A modern request's parameters as a legacy server wants them. It knows no session and no transport.

Modern requests carry in `_meta` what the legacy handshake said once. That part
goes into `initialize`; the rest is forwarded as the client wrote it.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from gateway.eras import capabilities as abilities
from gateway.eras.shapes import Implementation, mend
from gateway.errors import InvalidParams
from gateway.wire.jsonrpc import NotJson, Params, Raw, decode, decode_members, encode
from gateway.wire.versions import (
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_PROTOCOL_VERSION,
    at_least,
)

_SAID_IN_THE_HANDSHAKE: Final = frozenset(
    {META_PROTOCOL_VERSION, META_CLIENT_INFO, META_CLIENT_CAPABILITIES, META_LOG_LEVEL}
)

_OURS: Final = frozenset({"inputResponses", "requestState", "task"})
"""Rounds are between the client and us; `task` would start a 2025-11-25 task, which nobody asked for."""

ANONYMOUS_CLIENT: Final[Mapping[str, str]] = {"name": "unknown", "version": "0"}
"""Modern clients may keep their name to themselves; the legacy handshake requires one."""


def to_legacy_params(
    method: str, params: Params, *, version: str, progress_token: str | None
) -> dict[str, Any]:
    """The parameters to send upstream; members that need no change stay the client's bytes.

    `progress_token` replaces the client's own token, which is not unique among
    clients; it is not used if the client sent none.

    Raises:
        InvalidParams: `_meta` is not an object.
    """
    legacy: dict[str, Any] = {name: value for name, value in params.items() if name not in _OURS}
    if method == "completion/complete" and not at_least(version, "2025-06-18"):
        legacy.pop("context", None)
    if "_meta" in params:
        meta = _legacy_meta(params, progress_token)
        if meta:
            legacy["_meta"] = meta
        else:
            del legacy["_meta"]
    return legacy


def check_cursor(params: Params) -> None:
    """Let a list's parameters pass; what a cursor means only the server knows, but it is a string.

    Raises:
        InvalidParams: it is not.
    """
    cursor = params.get("cursor")
    if cursor is not None and not _is_text(cursor):
        raise InvalidParams(detail="params.cursor must be a string")


def _is_text(raw: Raw) -> bool:
    try:
        return isinstance(decode(raw), str)
    except NotJson:  # it was skipped until now, and skipping asks less of it than reading
        return False


def initialize_params(
    client_info: Mapping[str, Any] | None, capabilities: Mapping[str, Any], version: str
) -> dict[str, Any]:
    """The handshake that introduces this client to a legacy server."""
    return {
        "protocolVersion": version,
        "capabilities": abilities.for_legacy(capabilities, version),
        "clientInfo": _named(client_info),
    }


def _legacy_meta(params: Params, progress_token: str | None) -> Mapping[str, Any]:
    data = bytes(params["_meta"])
    if b"progressToken" not in data:
        return (_known_rest if len(data) <= _LONGEST_KEPT else _rest_of_meta)(data)
    meta = dict(_rest_of_meta(data))
    if "progressToken" in meta:
        if progress_token is None:
            del meta["progressToken"]
        else:
            meta["progressToken"] = progress_token
    return meta


def _rest_of_meta(data: bytes) -> Mapping[str, Any]:
    """What is left when that is taken out which the handshake says."""
    members = decode_members(data)
    if members is None:
        raise InvalidParams(detail="params._meta must be an object")
    return {name: value for name, value in members.items() if name not in _SAID_IN_THE_HANDSHAKE}


# A client sends the same `_meta` with every request, but for tokens.
_known_rest: Final = lru_cache(maxsize=256)(_rest_of_meta)
_LONGEST_KEPT: Final = 2048


def _named(client_info: Mapping[str, Any] | None) -> dict[str, Any]:
    """A complete Implementation: legacy servers refuse missing names, and the whole handshake for one wrong member."""
    info = {name: value for name, value in (client_info or {}).items() if value is not None}
    for name, unknown in ANONYMOUS_CLIENT.items():
        if not isinstance(info.get(name), str):
            info[name] = unknown
    written = Raw(encode(info))
    mended = mend(Implementation, written)
    return info if mended is written else decode(encode(mended))
