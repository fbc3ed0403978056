"""Server-sent events, both ways. It does not know what an event's data means, nor where the bytes come from.

Three departures from a browser's EventSource, all because a reader resumes by
hand: an event with empty data is handed out (2025-11-25 primes a stream with
one that has only an id), so is one with only an id or a retry time, and each
event shows the id that it brought itself.
"""

import re
from typing import Final

from msgspec import Struct

_BOM: Final = b"\xef\xbb\xbf"
_LF: Final = 0x0A
_LONGEST_RETRY: Final = 15
"""Digits. More is no time to wait, and Python refuses to read some thousands of them."""


_LINE_ENDS: Final = (b"\n\n", b"\n\r\n")
_ONE_MESSAGE: Final = re.compile(rb"(?:event: message\r?\n)?data: ([^\r\n]*)\r?\n\r?\n")
"""The usual answer: one event, whole, in a chunk of its own. A shortcut, because nearly every call ends with one."""


class SseEvent(Struct, frozen=True):
    """One event as it was sent."""

    event: str = "message"
    data: bytes = b""
    """The data lines, joined by LF. Untouched but for that: it may hold U+2028, U+0085 or U+FEFF."""
    id: str | None = None
    """None if the event has no id of its own. Empty means: from here on there is nothing to resume from."""
    retry: int | None = None
    """Milliseconds."""


class EventTooLarge(ValueError):
    """A line, or the data of an event, is over the limit. The stream cannot be read any further."""

    def __init__(self, limit: int, events: list[SseEvent]) -> None:
        super().__init__(f"event over {limit} bytes")
        self.events = events
        """What was complete before it, in the same chunk."""


class SseParser:
    """Feed it chunks as they come; it hands out each event with the byte that completes it."""

    __slots__ = (
        "_after_cr",
        "_data",
        "_event",
        "_head",
        "_id",
        "_last_id",
        "_limit",
        "_line",
        "_retry",
    )

    def __init__(self, max_event_bytes: int) -> None:
        self._limit = max_event_bytes
        self._head: bytes | None = b""  # what may yet become a BOM; None once that is settled
        self._after_cr = False  # the chunk ended in CR: a LF that follows belongs to it
        self._line = bytearray()  # has not ended yet
        self._event = ""
        self._data: bytes | bytearray | None = None
        self._id: str | None = None
        self._retry: int | None = None
        self._last_id = ""

    @property
    def last_event_id(self) -> str | None:
        """The id to resume after: that of the last *complete* event that had one."""
        return self._last_id or None

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that this chunk completes.

        Raises:
            EventTooLarge: Do not feed it any more.
        """
        if chunk.endswith(_LINE_ENDS) and len(chunk) <= self._limit and self._is_between_events:
            whole = _ONE_MESSAGE.fullmatch(chunk)
            if whole is not None:
                self._head = None
                return [SseEvent(data=whole[1])]
        if self._head is not None:
            chunk = self._without_bom(self._head + chunk)
        if not chunk:
            return []
        if self._after_cr:
            self._after_cr = False
            if chunk[0] == _LF:
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = _with_lf(chunk)
        *lines, rest = chunk.split(b"\n")
        if lines and self._line:
            lines[0] = bytes(self._line) + lines[0]
            self._line.clear()
        events: list[SseEvent] = []
        for line in lines:
            if line:
                self._take(line, events)
            else:
                self._dispatch(events)
        self._line += rest
        self._check(self._line, events)
        return events

    @property
    def _is_between_events(self) -> bool:
        return (
            not self._line
            and self._data is None
            and self._id is None
            and self._retry is None
            and not (self._event or self._head or self._after_cr)
        )

    def _without_bom(self, start: bytes) -> bytes:
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._head = start
            return b""
        self._head = None
        return start.removeprefix(_BOM)

    def _take(self, line: bytes, events: list[SseEvent]) -> None:
        self._check(line, events)
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        match name:
            case b"data":
                self._add(value, events)
            case b"event":
                self._event = value.decode(errors="replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode(errors="replace")
            case b"retry" if value.isdigit() and len(value) <= _LONGEST_RETRY:
                self._retry = int(value)
            case _:  # a comment has an empty name; other fields are to be ignored
                pass

    def _add(self, value: bytes, events: list[SseEvent]) -> None:
        if self._data is None:
            self._data = value
            return
        if isinstance(self._data, bytes):
            # One growing buffer, not a list: a million tiny lines must not weigh more than their bytes.
            self._data = bytearray(self._data)
        self._data += b"\n"
        self._data += value
        self._check(self._data, events)

    def _dispatch(self, events: list[SseEvent]) -> None:
        if self._id is not None:
            self._last_id = self._id
        if self._data is not None or self._id is not None or self._retry is not None:
            events.append(SseEvent(self._event or "message", bytes(self._data or b""), self._id, self._retry))
        self._event, self._data, self._id, self._retry = "", None, None, None

    def _check(self, part: bytes | bytearray, events: list[SseEvent]) -> None:
        # Line and data apart, so that the verdict does not depend on how the stream was cut into chunks.
        if len(part) > self._limit:
            raise EventTooLarge(self._limit, events)


def encode_message(data: bytes) -> bytes:
    """An event that carries one JSON-RPC message; never an id, for nothing of ours can be resumed."""
    return b"event: message\ndata: " + _continued(data, b"data: ") + b"\n\n"


def encode_comment(text: str = "") -> bytes:
    """What keeps a connection alive and means nothing."""
    return b": " + _continued(text.encode(), b": ") + b"\n\n"


def _continued(data: bytes, prefix: bytes) -> bytes:
    """Line breaks in forwarded JSON (white space there) would end the field: go on in a new one."""
    if b"\n" not in data and b"\r" not in data:
        return data
    return _with_lf(data).replace(b"\n", b"\n" + prefix)


def _with_lf(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
