"""How a legacy server introduces itself, and the `server/discover` result made of that. It calls nobody.

Discovery is answered from what is known, at once: a client that gets an error
here falls back to the legacy handshake without a word.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from gateway.eras.capabilities import carried
from gateway.eras.results import CacheScope, stamp
from gateway.eras.shapes import NULL, Implementation, mend
from gateway.errors import UpstreamSpokeNonsense
from gateway.wire.jsonrpc import NotJson, Params, Raw, decode, decode_members, encode
from gateway.wire.versions import MODERN_VERSIONS, at_least

METHOD: Final = "server/discover"

_LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "tools": ("listChanged",),
    "prompts": ("listChanged",),
    "resources": ("subscribe", "listChanged"),
}
"""Capabilities with flags, and the flags; each of them is a promise to notify."""

_PLAIN: Final = ("completions", "logging", "experimental")
"""Capabilities that mean the same in both eras. `tasks` is not: its successor is an extension."""

_LIKELY: Final[Mapping[str, Any]] = {"tools": {}}
"""What is declared of a server that nobody has met yet: clients keep "no tools" for good, and never ask."""

_COMPLETED: Final = frozenset({"prompts", "resources"})
"""Capabilities that have something to complete."""


@dataclass(frozen=True, slots=True)
class Introduction:
    """What an upstream said of itself in its `initialize` result."""

    version: str
    """The protocol revision that it chose to speak."""
    capabilities: Mapping[str, Any]
    server_info: Mapping[str, Any] | None
    """None if it has no usable name: then the gateway's own is shown."""
    instructions: str | None


def introduction(result: Raw) -> Introduction:
    """Read an `initialize` result.

    Raises:
        UpstreamSpokeNonsense: It is not one. Only the version is indispensable.
    """
    data = bytes(result)
    return (_known if len(data) <= _LONGEST_KEPT else _read)(data)


def _read(result: bytes) -> Introduction:
    try:
        members = decode_members(result)
        version = _decoded(members, "protocolVersion")
        capabilities = _decoded(members, "capabilities")
        instructions = _decoded(members, "instructions")
        info = mend(Implementation, (members or {}).get("serverInfo", NULL))
        named = None if info is None else decode(encode(info))
    except NotJson as error:
        raise UpstreamSpokeNonsense(str(error)) from None
    if not isinstance(version, str):
        raise UpstreamSpokeNonsense("initialize without a protocol version")
    return Introduction(
        version=version,
        capabilities=capabilities if isinstance(capabilities, dict) else {},
        server_info=named,
        instructions=instructions if isinstance(instructions, str) else None,
    )


# A server introduces itself to every session in the same words: one introduction serves them all.
_known: Final = lru_cache(maxsize=64)(_read)
_LONGEST_KEPT: Final = 64 * 1024


def discover_result(
    known: Introduction | None,
    *,
    gateway_info: Mapping[str, Any],
    ttl_ms: int,
    cache_scope: CacheScope,
    subscriptions: bool = False,
) -> dict[str, Any]:
    """The discovery result of the server behind us, as far as it is known.

    Args:
        known: Its introduction, if it ever made one.
        gateway_info: Who we are, for as long as the server has no name.
        ttl_ms: How long clients may keep this; nothing known keeps for no time at all.
        cache_scope: For whom.
        subscriptions: Whether we serve `subscriptions/listen`; without it nobody would deliver the changes.
    """
    result: dict[str, Any] = {"resultType": "complete", "supportedVersions": list(MODERN_VERSIONS)}
    info: Mapping[str, Any] = gateway_info
    if known is None:
        ttl_ms = 0
        result["capabilities"] = dict(_LIKELY)
    else:
        info = known.server_info or gateway_info
        result["capabilities"] = modern_capabilities(known.capabilities, subscriptions=subscriptions)
        if not at_least(known.version, "2025-03-26") and _COMPLETED & result["capabilities"].keys():
            # Servers complete since 2024-11-05, and can say so since 2025-03-26: who asks finds out.
            result["capabilities"].setdefault("completions", {})
        if known.instructions:
            result["instructions"] = known.instructions
    return result | stamp(METHOD, None, info, ttl_ms=ttl_ms, cache_scope=cache_scope)


def modern_capabilities(legacy: Mapping[str, Any], *, subscriptions: bool = False) -> dict[str, Any]:
    """The server capabilities that hold through us."""
    modern: dict[str, Any] = {}
    for name, flags in _LISTS.items():
        declared = legacy.get(name)
        if _says_no(declared):
            continue
        settings = declared if isinstance(declared, dict) else {}
        modern[name] = {flag: True for flag in flags if subscriptions and settings.get(flag) is True}
    for name in _PLAIN:
        declared = legacy.get(name)
        if not _says_no(declared):
            modern[name] = _of_objects(name, declared)
    extensions = carried(legacy.get("extensions"))
    return {**modern, "extensions": extensions} if extensions else modern


def _of_objects(name: str, declared: Any) -> dict[str, Any]:
    if not isinstance(declared, dict):
        return {}
    if name == "experimental":
        return {key: value for key, value in declared.items() if isinstance(value, dict)}
    return declared


def _says_no(declared: Any) -> bool:
    return declared is None or declared is False


def _decoded(members: Params | None, name: str) -> Any:
    return decode((members or {}).get(name, NULL))
