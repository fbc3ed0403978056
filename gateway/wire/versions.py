"""Protocol revisions and the names that the protocol reserves. It does not know what any of them changes."""

from typing import Final

MODERN: Final = "2026-07-28"
"""The one revision that clients speak to us natively."""

MODERN_VERSIONS: Final = (MODERN,)

LEGACY_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Newest first: what we can speak to an upstream."""

LATEST_LEGACY: Final = LEGACY_VERSIONS[0]

META_PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
META_CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
META_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
META_RELATED_TASK: Final = "io.modelcontextprotocol/related-task"

LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Least severe first, so that a level's index is its severity."""


def is_modern(version: str) -> bool:
    """Whether this is a stateless revision that we serve."""
    return version in MODERN_VERSIONS


def is_legacy(version: str) -> bool:
    """Whether this is a handshake-and-session revision that we can use upstream."""
    return version in LEGACY_VERSIONS


def at_least(version: str, floor: str) -> bool:
    """Whether `version` is `floor` or newer. Revisions are ISO dates, so their text sorts as they do."""
    return version >= floor
