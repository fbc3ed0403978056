"""The clients that wait for one running round: all hear the same, and one last word each. It decides nothing.

Nearly always it is one. A client that lost its connection and came back with the
same retry is a second one, for as long as the first was not seen to have left.
"""

from gateway.relay.listener import LARGEST_EVENT, Listener, Reply
from gateway.wire.jsonrpc import Notification


class Audience:
    """True while somebody listens."""

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def admit(self, listener: Listener) -> None:
        """One more."""
        self._listeners.append(listener)

    def leave(self, listener: Listener) -> bool:
        """It has closed its connection. True: it was the last one."""
        if listener not in self._listeners:
            return False
        self._listeners.remove(listener)
        return not self._listeners

    def tell(self, notification: Notification) -> None:
        """What happens in the call."""
        for listener in self._listeners:
            listener.tell(notification)

    def finish(self, reply: Reply) -> None:
        """The last word of the round."""
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener.finish(reply)

    @property
    def is_streaming(self) -> bool:
        """Is there somebody whose response has begun as a stream?"""
        return any(listener.is_streaming for listener in self._listeners)

    def can_read(self, size: int) -> bool:
        """Would everybody get to read so many bytes? In a stream that has begun they can only be one event."""
        return size <= LARGEST_EVENT or not self.is_streaming
