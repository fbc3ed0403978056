"""How the walk-through looks in a terminal, and how an answer is typed. It knows nothing of MCP."""

import asyncio
import contextlib
import os
import sys
import textwrap
import threading
from typing import Final, TextIO

_LABEL_WIDTH: Final = 22
_MARGIN: Final = "  "
_COLOURS: Final = {
    "bold": "1",
    "dim": "2",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
# For terminals that cannot show the real ones.
_PLAIN: Final = str.maketrans({"→": ">", "←": "<", "─": "-", "…": "~", "⇢": ">", "—": "-", "✓": "*"})


class Terminal:
    """Writes to `out`; colour only where it is seen, no character that `out` cannot show."""

    def __init__(self, out: TextIO | None = None, *, colour: bool | None = None, width: int = 100) -> None:
        self._out = out or sys.stdout
        # https://no-color.org: any non-empty value, whatever it says.
        wanted = self._out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._colour = wanted if colour is None else colour
        self._width = width
        encoding = (getattr(self._out, "encoding", None) or "ascii").lower().replace("-", "")
        self._is_plain = not encoding.startswith("utf")

    def line(self, text: str = "", style: str = "") -> None:
        """One line, as it is."""
        self._write(self._styled(text, style) + "\n")

    def title(self, text: str) -> None:
        """A chapter's heading, ruled."""
        self.line()
        self.line(text, "bold")
        self.line("─" * min(self._width, len(text)), "dim")

    def step(self, label: str, text: str, style: str = "", *, detail: str = "") -> None:
        """Who did something, what, and underneath what it said."""
        self._write(_MARGIN + self._styled(f"{label:<{_LABEL_WIDTH}}", style) + self._safe(text) + "\n")
        self.detail(detail)

    def detail(self, text: str) -> None:
        """Indented, wrapped and quiet."""
        indent = _MARGIN + " " * _LABEL_WIDTH
        for line in textwrap.wrap(
            text, self._width - len(indent), break_long_words=True, break_on_hyphens=False
        ):
            self._write(indent + self._styled(line, "dim") + "\n")

    async def ask(self, label: str, prompt: str, default: str, style: str = "") -> str:
        """A line typed by the user; an empty one, or the end of the input, is `default`."""
        shown = f"{prompt} [{default}]: " if default else f"{prompt}: "
        self._write(_MARGIN + self._styled(f"{label:<{_LABEL_WIDTH}}", style) + self._safe(shown))
        typed = (await _typed_line()).strip()
        return typed or default

    def _styled(self, text: str, style: str) -> str:
        text = self._safe(text)
        if not self._colour or not style or not text:
            return text
        return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m"

    def _safe(self, text: str) -> str:
        # What servers say must not move the cursor or set colours.
        text = "".join(c if c.isprintable() else " " for c in text)
        return text.translate(_PLAIN).encode("ascii", "replace").decode() if self._is_plain else text

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


async def _typed_line() -> str:
    """Wait for a line without holding up the event loop.

    A daemon thread and the bare descriptor: Ctrl-C must not wait for a thread
    that is stuck in `input()`, nor for the lock of a buffered reader.
    """
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[bytes] = loop.create_future()

    def deliver(data: bytes) -> None:
        if not typed.done():
            typed.set_result(data)

    def read() -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = os.read(sys.stdin.fileno(), 4096)
        with contextlib.suppress(RuntimeError):  # the loop is gone: nobody waits any more
            loop.call_soon_threadsafe(deliver, data)

    threading.Thread(target=read, name="typed-line", daemon=True).start()
    return (await typed).decode(errors="replace")
