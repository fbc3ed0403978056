"""An HTTP request that is handed on as it is, and what comes back: words between the edge and the relay. No IO."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from gateway.wire import headers as names
from gateway.wire.jsonrpc import encode_error

HeaderLines: TypeAlias = Sequence[tuple[str, str]]

_BETWEEN_NEIGHBOURS: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


@dataclass(frozen=True, slots=True)
class Knock:
    """A client's request, free of what concerns only its connection to us."""

    verb: str
    path: str
    """Where the client came in."""
    query: str
    headers: HeaderLines = field(repr=False)
    """For the upstream."""
    body: bytes = field(repr=False)
    session_id: str | None = None
    authorization: str | None = field(default=None, repr=False)
    owner: str | None = field(default=None, repr=False)
    """Who is calling, where that is decided here: sessions are opened to nobody else. Not for anybody's eyes."""
    shows_version: bool = False
    """It names a revision in a header, as clients of Streamable HTTP do after their handshake, and not only they."""

    @property
    def claimant(self) -> str | None:
        """For whom a session of ours is opened: who is calling, or where nobody here says so, this credential."""
        return self.owner or self.authorization

    @property
    def renewed(self) -> str | None:
        """A credential that may be newer than the one a session was opened with; its owner stays the same."""
        return None if self.owner is None else self.authorization

    def is_visit(self, *, to_streamable_http: bool) -> bool:
        """Is it a GET with which a client of HTTP+SSE begins?

        In front of Streamable HTTP it may be a client of that, too, whose server gives out no session ids: such a
        client names its revision, or resumes. Elsewhere those have a session id of ours, and some that begin (that
        of the AI SDK) name a revision as well.
        """
        if self.verb != "GET" or self.session_id is not None:
            return False
        return not to_streamable_http or not (self.shows_version or self._resumes)

    @property
    def may_be_visit(self) -> bool:
        """In front of Streamable HTTP: may it be a visit after all, if the server wants a session id?"""
        return self.verb == "GET" and self.session_id is None and not self._resumes

    @property
    def _resumes(self) -> bool:
        return any(name.lower() == "last-event-id" for name, _ in self.headers)


@dataclass(frozen=True, slots=True)
class Passage:
    """A response on its way to the client. Its chunks end, or raise if the upstream broke off."""

    status: int
    headers: HeaderLines
    chunks: AsyncIterator[bytes]
    reason: str | None = None
    left: Callable[[], None] | None = None
    """To be told when nobody reads the chunks any more."""

    @classmethod
    def of(
        cls, status: int, body: bytes = b"", *, kind: str = names.JSON, headers: HeaderLines = ()
    ) -> "Passage":
        """One that is complete."""
        described = [("Content-Type", kind)] if body else []
        return cls(status, [*headers, *described, ("Content-Length", str(len(body)))], _once(body))

    @classmethod
    def refused(cls, status: int, code: int, message: str) -> "Passage":
        """The way legacy servers refuse a whole request."""
        return cls.of(status, encode_error(None, code, message))


async def _once(body: bytes) -> AsyncIterator[bytes]:
    if body:
        yield body


def end_to_end(lines: HeaderLines, *, without: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
    """The headers that are not between neighbours only (RFC 9110, 7.6.1), nor among those left out (lower case)."""
    named = {
        token.strip().lower()
        for name, value in lines
        if name.lower() == "connection"
        for token in value.split(",")
    }
    dropped = _BETWEEN_NEIGHBOURS | without | named
    return [(name, value) for name, value in lines if name.lower() not in dropped]
