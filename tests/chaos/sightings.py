"""What the wires saw of sessions: who used each last, who knows its name, and what was lost on wires that were cut.

Pure. A session that is still open at the end is a leak, unless nobody is left who could have ended it: that has to be
shown for each, or it would hide the leaks of gateways that stop listening too early.
"""

import re
from dataclasses import dataclass, field
from typing import Final

_SESSION: Final = re.compile(rb"\r\nmcp-session-id: *([^\r\n]+)\r\n", re.IGNORECASE)
_OPENING: Final = re.compile(rb'"id":"([^"]+)","method":"initialize"')


@dataclass(slots=True)
class Passing:
    """What has passed on one wire."""

    process: str
    """Whose gateway's end it is."""
    openings: set[bytes] = field(default_factory=set)
    """The `initialize` requests."""
    opened: set[str] = field(default_factory=set)
    """Sessions whose name came here first: in the answer to one of these."""


@dataclass(slots=True)
class Sightings:
    """Of all wires together."""

    users: dict[str, str] = field(default_factory=dict)
    """Which process used a session last, or was told of it."""
    named: set[str] = field(default_factory=set)
    """Sessions that a gateway has spoken of: it knows them."""
    excused: set[str] = field(default_factory=set)
    """Sessions whose name was on a wire that was cut, and perhaps not read."""
    unanswered: list[str] = field(default_factory=list)
    """The processes of `initialize` requests whose answer was never seen."""
    cut: int = 0
    """How many of their answers were cut off."""

    def there(self, passing: Passing, data: bytes) -> None:
        """A gateway said this. What was said right before may be in it again."""
        passing.openings.update(_OPENING.findall(data))
        for name in _SESSION.findall(data):
            session = name.decode()
            self.users[session] = passing.process
            self.named.add(session)

    def back(self, passing: Passing, data: bytes) -> None:
        """A server said this."""
        for name in _SESSION.findall(data):
            session = name.decode()
            if session not in self.users:
                passing.opened.add(session)
            self.users[session] = passing.process

    def ended(self, passing: Passing, *, is_cut: bool) -> None:
        """Nothing more will pass."""
        unanswered = len(passing.openings) - len(passing.opened)
        if is_cut:
            self.excused |= passing.opened
            self.cut += max(0, unanswered)
        else:
            self.unanswered += [passing.process] * unanswered

    def leaked(self, still_open: list[str], killed: set[str]) -> tuple[list[str], int, int]:
        """Of the sessions still open: those that somebody should have ended; of killed users; never heard of."""
        leaks, orphans, unheard = [], 0, 0
        nameless = 0
        for session in still_open:
            user = self.users.get(session)
            if user is None:
                nameless += 1
            elif user in killed:
                orphans += 1
            elif session in self.excused and session not in self.named:
                unheard += 1
            else:
                leaks.append(f"{session}, last used by {user}")
        # A process that was killed, or whose wire was cut, cannot know the name. Any other has to wait for it.
        may_be_nameless = self.cut + sum(process in killed for process in self.unanswered)
        leaks += ["one whose name its gateway did not wait for"] * max(0, nameless - may_be_nameless)
        return leaks, orphans, unheard + min(nameless, may_be_nameless)
