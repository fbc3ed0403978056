"""What a fixture server saw, told apart by whose call it was: the server is shared, the tags are not."""

from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.support.peers import Running
from tests.support.waiting import until

Json = dict[str, Any]

_TAGS = count(1)


def unique(stem: str = "t") -> str:
    """A word that no other test of this process uses."""
    return f"{stem}{next(_TAGS)}"


@dataclass(frozen=True, slots=True)
class Seen:
    """The server's notes, in order."""

    http: list[Json]
    events: list[str]
    counters: dict[str, int]
    sessions: int

    def calls(self, **arguments: Any) -> list[Json]:
        """The `tools/call` POSTs with (at least) these arguments."""
        return [
            entry
            for entry in self.http
            if _method(entry) == "tools/call"
            and arguments.items() <= entry["body"]["params"].get("arguments", {}).items()
        ]

    def session(self, session_id: str) -> list[Json]:
        """Everything that came on this session after its `initialize`."""
        return [entry for entry in self.http if entry["session"] == session_id]

    def methods(self, session_id: str) -> list[str]:
        """The same, as words: a method, `answer`, or the HTTP verb of a request without a body."""
        return [_method(entry) for entry in self.session(session_id)]

    def sent(self, session_id: str, method: str) -> list[Json]:
        """The bodies of these messages on this session."""
        return [entry["body"] for entry in self.session(session_id) if _method(entry) == method]

    def authorized(self, authorization: str) -> list[Json]:
        """Everything that came under this credential."""
        return [entry for entry in self.http if entry["authorization"] == authorization]


def _method(entry: Json) -> str:
    body = entry.get("body")
    return str(entry["verb"]) if body is None else str(body.get("method", "answer"))


async def seen_by(server: Running) -> Seen:
    """All that it saw so far."""
    observed = await server.observed()
    return Seen(observed["http"], observed["events"], observed["counters"], observed["sessions"])


async def session_of(server: Running, **arguments: Any) -> str:
    """The session on which the call with these arguments came, once it did."""

    async def look() -> list[Json]:
        return (await seen_by(server)).calls(**arguments)

    (call,) = await until(look)
    return str(call["session"])


async def sent_on(server: Running, session_id: str, method: str) -> list[Json]:
    """Wait until this message came on this session."""

    async def look() -> list[Json]:
        return (await seen_by(server)).sent(session_id, method)

    return await until(look)


async def happened(server: Running, event: str) -> None:
    """Wait until the server notes this event."""

    async def look() -> bool:
        return event in (await seen_by(server)).events

    await until(look)
