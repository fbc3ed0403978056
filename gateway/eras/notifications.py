"""What a legacy server tells in mid-call, as one round's client may hear it. Pure; it knows no stream.

Each client of a round has its own progress token and its own log level, so each
has its own filter; a new round starts with a new one.
"""

from collections.abc import Mapping
from typing import Any, Final

from gateway.wire.jsonrpc import Id, Notification, decode
from gateway.wire.versions import LOG_LEVELS

PROGRESS: Final = "notifications/progress"
LOG: Final = "notifications/message"
CANCELLED: Final = "notifications/cancelled"


class RoundFilter:
    """Decides for one client in one round what is passed on, and under which token."""

    __slots__ = ("_level", "_reached", "_token")

    def __init__(self, progress_token: Id | None, log_level: str | None) -> None:
        self._token = progress_token
        self._level = None if log_level is None else LOG_LEVELS.index(log_level)
        self._reached: float | None = None

    def admit(self, notification: Notification) -> Mapping[str, Any] | None:
        """The parameters to send to this client, or None if it is not to hear of it."""
        if notification.method == PROGRESS:
            return self._admit_progress(notification)
        if notification.method == LOG:
            return self._admit_log(notification)
        return None

    def _admit_progress(self, notification: Notification) -> Mapping[str, Any] | None:
        raw = notification.params.get("progress")
        progress = None if raw is None else decode(raw)
        if self._token is None or isinstance(progress, bool) or not isinstance(progress, int | float):
            return None
        # basic/patterns/progress: the value MUST increase with each notification.
        if self._reached is not None and progress <= self._reached:
            return None
        self._reached = progress
        kept = {name: value for name, value in notification.params.items() if bytes(value) != b"null"}
        return {**kept, "progressToken": self._token}

    def _admit_log(self, notification: Notification) -> Mapping[str, Any] | None:
        raw = notification.params.get("level")
        level = None if raw is None else decode(raw)
        if self._level is None or level not in LOG_LEVELS or "data" not in notification.params:
            return None
        return notification.params if LOG_LEVELS.index(level) >= self._level else None
