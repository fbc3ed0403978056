"""Where finished log lines go, at once or in bundles; it knows nothing about what they say."""

import asyncio
import atexit
import sys
from collections.abc import Callable
from typing import Any, Final, Generic, TextIO, TypeVar

T = TypeVar("T")

_PATIENCE_SECONDS: Final = 0.05
_MOST_WAITING: Final = 256
"""Lines. A system call each is what they would cost; in bundles they are almost free."""


class Sink(Generic[T]):
    """Writes lines. A log that cannot be written must not fail the round that it tells about.

    There is one, shared by all loggers, so that a change of stream reaches also
    those that were made before. What is not text yet becomes it when it is
    written: many in a row cost less than each in the middle of its call.
    """

    def __init__(self, render: Callable[[T], bytes]) -> None:
        self._render = render
        self._text: TextIO = sys.stdout
        self._binary: Any = None
        self._waiting: list[bytes | T] = []
        self._due_in: asyncio.AbstractEventLoop | None = None
        atexit.register(self.flush)

    def turn_to(self, stream: TextIO) -> None:
        """Write to this stream from now on."""
        self.flush()
        self._text = stream
        self._binary = getattr(stream, "buffer", None)

    def write(self, line: bytes | T) -> None:
        """Write the line now, after those that wait."""
        self._waiting.append(line)
        self.flush()

    def write_soon(self, line: bytes | T) -> None:
        """Write the line within a moment, together with others. Without an event loop: now."""
        waiting = self._waiting
        waiting.append(line)
        if len(waiting) >= _MOST_WAITING:
            self.flush()
        elif self._due_in is None or not self._due_in.is_running():
            try:
                self._due_in = asyncio.get_running_loop()
            except RuntimeError:
                self.flush()
            else:
                self._due_in.call_later(_PATIENCE_SECONDS, self._on_time)

    def flush(self) -> None:
        """Write what waits."""
        if not self._waiting:
            return
        waiting = list(self._waiting)
        self._waiting.clear()
        texts = [line if isinstance(line, bytes) else self._render(line) for line in waiting]
        lines = b"\n".join((*texts, b""))
        try:
            if self._binary is not None:
                self._binary.write(lines)
                self._binary.flush()
            else:
                self._text.write(lines.decode())
                self._text.flush()
        except (OSError, ValueError):
            pass  # a closed pipe, a full disk: there is nowhere left to say so

    def _on_time(self) -> None:
        self._due_in = None
        self.flush()

    debug = info = warning = error = critical = write
