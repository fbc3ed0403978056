"""Where finished log lines go, at once or in bundles; it knows nothing about what they say."""

import asyncio
import atexit
import os
import select
import stat
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Generic, TextIO, TypeVar

T = TypeVar("T")

_PATIENCE_SECONDS: Final = 0.05
_MOST_WAITING: Final = 256
"""Lines. A system call each is what they would cost; in bundles they are almost free."""
_PIECE: Final = 4096
"""Bytes. What says that it is ready takes as many without making us wait (PIPE_BUF)."""
_MOST_KEPT: Final = 4 * 1024**2
"""Bytes that wait for a reader who does not read; further lines are counted and dropped."""
_LAST_SECONDS: Final = 1.0
"""How long a reader is waited for where nothing else goes on: at the end, and before the start."""


class Sink(Generic[T]):
    """Writes lines. A log that cannot be written must not fail the round that it tells about, nor hold it up.

    There is one, shared by all loggers, so that a change of stream reaches also
    those that were made before. What is not text yet becomes it when it is
    written: many in a row cost less than each in the middle of its call. Into a
    pipe or a terminal no more is written than it takes at the moment: behind it
    is a program that may have stopped reading, and we would stop with it.
    """

    def __init__(self, render: Callable[[T], bytes], on_loss: Callable[[int], None]) -> None:
        self._render = render
        self._on_loss = on_loss
        self._text: TextIO = sys.stdout
        self._binary: Any = None
        self._waiting: list[bytes | T] = []
        self._due_in: asyncio.AbstractEventLoop | None = None
        self._reader: _Reader | None = None
        self._unread = bytearray()
        self._lost = 0
        self._turn = threading.Lock()
        atexit.register(self.flush)

    def turn_to(self, stream: TextIO) -> None:
        """Write to this stream from now on."""
        self.flush()
        self._text = stream
        self._binary = getattr(stream, "buffer", None)
        self._reader = None if self._binary is None else _reader_of(stream)
        self._unread.clear()

    def write(self, line: bytes | T) -> None:
        """Write the line now, after those that wait."""
        self._waiting.append(line)
        self.flush()

    def write_soon(self, line: bytes | T) -> None:
        """Write the line within a moment, together with others. Without an event loop: now."""
        waiting = self._waiting
        waiting.append(line)
        if len(waiting) >= _MOST_WAITING or not self._comes_back():
            self.flush()

    def flush(self) -> None:
        """Write what waits, as far as it is taken."""
        waiting = list(self._waiting)
        self._waiting.clear()
        if waiting:
            texts = [line if isinstance(line, bytes) else self._render(line) for line in waiting]
            lines = b"\n".join((*texts, b""))
            if self._reader is None:
                self._write_all(lines)
            elif len(self._unread) + len(lines) > _MOST_KEPT:
                self._lost += len(texts)
            else:
                self._unread += lines
        if self._reader is not None and self._unread:
            self._hand_over(self._reader)

    def _write_all(self, lines: bytes) -> None:
        try:
            if self._binary is not None:
                self._binary.write(lines)
                self._binary.flush()
            else:
                self._text.write(lines.decode())
                self._text.flush()
        except (OSError, ValueError):
            pass  # a closed pipe, a full disk: there is nowhere left to say so

    def _hand_over(self, reader: "_Reader") -> None:
        # Never waited for: a line may come out of this very loop (a collected object warns), or from another thread.
        if not self._turn.acquire(blocking=False):
            return
        try:
            self._hand_over_now(reader)
        finally:
            self._turn.release()
        if self._unread:
            self._comes_back()
        elif self._lost:
            lost, self._lost = self._lost, 0
            self._on_loss(lost)

    def _hand_over_now(self, reader: "_Reader") -> None:
        until = 0.0 if _runs_a_loop() else time.monotonic() + _LAST_SECONDS
        while self._unread and reader.is_ready(until):
            try:
                written = reader.take(self._unread[:_PIECE])
            except BlockingIOError:
                return
            except OSError:
                self._unread.clear()  # gone for good
                return
            del self._unread[:written]

    def _comes_back(self) -> bool:
        """See to it that what waits is written within a moment. False: there is nobody who could."""
        if self._due_in is None or not self._due_in.is_running():
            try:
                self._due_in = asyncio.get_running_loop()
            except RuntimeError:
                return False
            self._due_in.call_later(_PATIENCE_SECONDS, self._on_time)
        return True

    def _on_time(self) -> None:
        self._due_in = None
        self.flush()

    debug = info = warning = error = critical = write


class _Reader:
    """The program behind a pipe, a socket or a terminal."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._poll = select.poll()
        self._poll.register(number, select.POLLOUT)

    def is_ready(self, until: float) -> bool:
        """Does it take something? Waits for that until then."""
        return bool(self._poll.poll(max(0.0, until - time.monotonic()) * 1000))

    def take(self, piece: bytes | bytearray) -> int:
        """Write; how much of it was taken."""
        return os.write(self._number, piece)


def _reader_of(stream: TextIO) -> _Reader | None:
    """None: it is a file, which takes whatever comes, or nothing that the system knows."""
    try:
        stream.flush()
        number = stream.fileno()
        return None if stat.S_ISREG(os.fstat(number).st_mode) else _Reader(number)
    except (OSError, ValueError):
        return None


def _runs_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
