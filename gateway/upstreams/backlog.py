"""Messages of a server that wait for a reader, bounded in number and in bytes. It reads none.

What the server tells or asks goes when there is too much of it, the oldest
first: nobody may have the gateway keep gigabytes by talking to nobody. Answers
are waited for, so bytes never push one out, and the newest message always stays.
"""

from collections import deque
from typing import Final

from gateway.wire.jsonrpc import Failure, Message, Notification, Result

MOST_BYTES: Final = 4 * 1024**2


class Backlog:
    """In the order in which they came."""

    __slots__ = ("_bytes", "_most", "_most_bytes", "_waiting")

    def __init__(self, most: int, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._waiting: deque[Message] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, message: Message) -> None:
        """Keep one more."""
        kept = _alone(message)
        while len(self._waiting) >= self._most:
            self._drop(0)
        self._bytes += _size(kept)
        self._waiting.append(kept)
        if self._bytes > self._most_bytes:
            self._make_room()

    def take(self) -> Message:
        """The oldest, which waits no longer."""
        message = self._waiting.popleft()
        self._bytes -= _size(message)
        return message

    @property
    def is_one_answer(self) -> bool:
        """Does one answer wait, and nothing else?"""
        return len(self._waiting) == 1 and isinstance(self._waiting[0], Result | Failure)

    def _make_room(self) -> None:
        place = 0
        while self._bytes > self._most_bytes and place < len(self._waiting) - 1:
            if _size(self._waiting[place]):
                self._drop(place)
            else:
                place += 1

    def _drop(self, place: int) -> None:
        self._bytes -= _size(self._waiting[place])
        del self._waiting[place]


def _alone(message: Message) -> Message:
    """The same without the line that it was read from: a parameter of a few bytes would keep all of that."""
    if isinstance(message, Result | Failure):
        return message
    params = {name: raw.copy() for name, raw in message.params.items()}
    if isinstance(message, Notification):
        return Notification(message.method, params)
    return type(message)(message.id, message.method, params)


def _size(message: Message) -> int:
    """Bytes that count against the bound: an answer's do not."""
    if isinstance(message, Result | Failure):
        return 0
    return len(message.method) + sum(len(name) + len(memoryview(raw)) for name, raw in message.params.items())
