"""Does a server remember what it sent? The ids of its events promise that, and some promise too much.

Java's SDK numbers what it tells and asks in a call, and keeps none of it: whoever
reads on hears nothing, for ever. Its answers give it away. A server that keeps
events gives every answer an id of its own, for that is what is read on for; the
answers of Java's have none, or that of the session. Servers in Go that keep events may
answer in JSON as long as they have nothing else to say: that speaks for neither.
"""


class Recall:
    """What the answers of one upstream say, in all of its sessions."""

    __slots__ = ("_has_bare", "is_kept")

    def __init__(self) -> None:
        self.is_kept: bool | None = None
        """Are answers kept? None: not known."""
        self._has_bare = False
        """Has an answer come as an event without an id, where no other event had one?"""

    @property
    def is_credible(self) -> bool:
        """Are ids of events to be believed, that another process has seen?"""
        return not self._has_bare if self.is_kept is None else self.is_kept

    def note_answer(self, event_id: str | None, *, session_id: str | None, is_numbered: bool) -> None:
        """An answer came as an event.

        Args:
            event_id: Its own.
            session_id: What names the session.
            is_numbered: Events with ids came before it.
        """
        if event_id:  # an empty one is none
            self.is_kept = event_id != session_id
        elif is_numbered:
            self.is_kept = False
        else:
            self._has_bare = True
