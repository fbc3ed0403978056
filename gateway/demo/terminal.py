"""How the walk-through looks in a terminal, and how an answer is typed. It knows nothing of MCP."""

import asyncio
import contextlib
import os
import shutil
import sys
import textwrap
import threading
from typing import Final, TextIO

_LABEL_WIDTH: Final = 22
_MARGIN: Final = "  "
_INDENT: Final = _MARGIN + " " * _LABEL_WIDTH
_WIDEST: Final = 100
_NARROWEST: Final = 50
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

    def __init__(
        self, out: TextIO | None = None, *, colour: bool | None = None, width: int | None = None
    ) -> None:
        self._out = out or sys.stdout
        self._is_read = True
        # https://no-color.org: any non-empty value, whatever it says.
        wanted = self._out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._colour = wanted if colour is None else colour
        self._width = width or (_shown_width() if self._out.isatty() else _WIDEST)
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
        first, *rest = self._wrapped(text) or [""]
        self._write(_MARGIN + self._styled(f"{label:<{_LABEL_WIDTH}}", style) + self._safe(first) + "\n")
        for line in rest:
            self._write(_INDENT + self._safe(line) + "\n")
        self.detail(detail)

    def detail(self, text: str, style: str = "dim") -> None:
        """Indented, wrapped and, unless it should be seen, quiet."""
        for line in self._wrapped(text):
            self._write(_INDENT + self._styled(line, style) + "\n")

    def _wrapped(self, text: str) -> list[str]:
        return textwrap.wrap(text, self._width - len(_INDENT), break_long_words=True, break_on_hyphens=False)

    async def ask(self, label: str, prompt: str, default: str, style: str = "") -> str:
        """A line typed by the user; an empty one, or the end of the input, is `default`."""
        shown = f"{prompt} [{default}]: " if default else f"{prompt}: "
        self._write(_MARGIN + self._styled(f"{label:<{_LABEL_WIDTH}}", style) + self._safe(shown))
        typed = ""
        try:
            typed = await _typed_line()
        finally:
            if not typed.endswith(
                "\n"
            ):  # the end of the input, or Ctrl-C: the terminal has not ended the line
                self._write("\n")
        return typed.strip() or default

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
        if not self._is_read:
            return
        try:
            self._out.write(text)
            self._out.flush()
        except BrokenPipeError:
            self._is_read = False  # `| head` has read enough; what goes on is not concerned


def _shown_width() -> int:
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((80, 24)).columns))


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
