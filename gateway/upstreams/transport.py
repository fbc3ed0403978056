"""The seam between a legacy session and the way its messages travel. Streamable HTTP is one way; others fit here.

A channel moves messages and keeps order. It does not know what they mean, which
exchange they belong to, or that there are clients.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

from gateway.errors import UpstreamLost, UpstreamSpokeNonsense
from gateway.wire.jsonrpc import Id, Message

Deliver: TypeAlias = Callable[[Message], bool]
"""Takes a message that arrived. True: that was the answer, nothing more needs to be read for it."""


class SessionGone(UpstreamLost):
    """The server does not know the session any more, and so did not run the request: sending it again is safe."""

    reason = "session_gone"
    public = "The upstream server does not know the session any more; a call that had begun may have run"


class SpeaksHttpSse(UpstreamSpokeNonsense):
    """A POST brought the stream of the other transport over HTTP, `endpoint` first: nothing was run."""


class OnlyTaken(UpstreamSpokeNonsense):
    """A request was taken like a notification (202): if there is an answer, it is to come on another stream."""


class Channel(Protocol):
    """One legacy session's way to its server and back."""

    session_id: str | None
    """What names the session at the server; None for a server that keeps no sessions."""

    @property
    def last_event_id(self) -> str | None:
        """The newest event id seen on the stream of the running call, for a later resume."""

    @property
    def has_one_stream(self) -> bool:
        """Does everything come on one stream, in the order in which the server said it?"""

    def speak(self, version: str) -> None:
        """The handshake agreed on this revision: use it from now on."""

    def authorize(self, authorization: str) -> None:
        """Show the server this credential from now on: the caller's, refreshed."""

    async def request(self, request_id: Id, body: bytes, deliver: Deliver) -> None:
        """Send a request and deliver all that comes for it, until its answer or the end of its stream."""

    async def send(self, body: bytes) -> None:
        """Send a notification, or the answer to an ask; returns when the server has taken it."""

    async def listen(self, deliver: Deliver, opened: Callable[[], None]) -> None:
        """Deliver what the server says of its own accord, until the channel is closed.

        Calls `opened` once the server can be heard, or it is certain that it has nothing to say here; and again
        when it can be heard again, after a time in which it could not.
        """

    async def close(self) -> None:
        """End the session, telling the server if there is a way to."""


@runtime_checkable
class Resumable(Protocol):
    """A channel whose server may remember what it sent: a stream can be read on by whoever knows the session."""

    @property
    def may_remember(self) -> bool:
        """Does nothing that it answered speak against that?"""

    def adopt(self, session_id: str, version: str) -> None:
        """Speak in a session that another process opened."""

    async def resume(self, last_event_id: str, deliver: Deliver) -> None:
        """Read a call's stream on from this event, to the answer."""
