"""What a legacy server tells in mid-call, as one round's client may hear it. Pure; it knows no stream.

Each client of a round has its own progress token and its own log level, so each
has its own filter; a new round starts with a new one.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType, field

from gateway.eras.shapes import Text, Whatever, mend_members
from gateway.wire.jsonrpc import Id, Notification, NotJson, Params, Raw, decode
from gateway.wire.versions import LOG_LEVELS

PROGRESS: Final = "notifications/progress"
LOG: Final = "notifications/message"
CANCELLED: Final = "notifications/cancelled"
TOOLS_CHANGED: Final = "notifications/tools/list_changed"
CHANGES: Final = frozenset(
    {
        TOOLS_CHANGED,
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    }
)
"""What a server tells of itself, whoever is calling: no part of any call."""


def is_of_call(notification: Notification, request_id: Id | None) -> bool:
    """Could this be about the call of this id? Progress of an earlier call of the session may come late."""
    if notification.method != PROGRESS or "progressToken" not in notification.params:
        return True
    return bool(_value(notification.params, "progressToken") == request_id)


class _Progress(Struct):
    progress: float
    total: float | UnsetType = UNSET
    message: Text = UNSET
    meta: Whatever = field(name="_meta", default=UNSET)


class _LogMessage(Struct):
    level: str
    data: Raw
    logger: Text = UNSET
    meta: Whatever = field(name="_meta", default=UNSET)


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
        progress = _value(notification.params, "progress")
        if self._token is None or isinstance(progress, bool) or not isinstance(progress, int | float):
            return None
        # basic/patterns/progress: the value MUST increase with each notification.
        if self._reached is not None and progress <= self._reached:
            return None
        told = mend_members(_Progress, dict(notification.params))
        if told is None:
            return None  # an integer that no float holds
        self._reached = progress
        return {**told, "progressToken": self._token}

    def _admit_log(self, notification: Notification) -> Mapping[str, Any] | None:
        level = _value(notification.params, "level")
        if self._level is None or level not in LOG_LEVELS or LOG_LEVELS.index(level) < self._level:
            return None
        return mend_members(_LogMessage, dict(notification.params))


def _value(params: Params, name: str) -> Any:
    raw = params.get(name)
    try:
        return None if raw is None else decode(raw)
    except NotJson:
        return None  # a number beyond all bounds, say: whatever it was, it is not what it should be
