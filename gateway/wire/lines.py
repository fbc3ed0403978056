"""Messages framed by line ends, as stdio servers send them. Pure; it does not know what a line says.

Only LF ends a line: U+2028, U+0085 and the like stand unescaped inside JSON of
real servers. A CR before it is dropped, empty lines are too.
"""

from typing import TypeAlias

Line: TypeAlias = bytes | None
"""None stands for a line that is longer than allowed; what it said is not kept."""


class LineSplitter:
    """Cuts a stream of bytes into lines, holding no more than `max_line_bytes` of an unfinished one."""

    __slots__ = ("_buffer", "_is_skipping", "_max")

    def __init__(self, max_line_bytes: int) -> None:
        self._max = max_line_bytes
        self._buffer = bytearray()
        self._is_skipping = False

    def feed(self, chunk: bytes) -> list[Line]:
        """The lines that are complete now. One that is too long is told as soon as that is certain."""
        lines: list[Line] = []
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._add(chunk[start:end], lines)
            self._end_line(lines)
            start = end + 1
        self._add(chunk[start:], lines)
        return lines

    def finish(self) -> list[Line]:
        """The stream has ended: what came after the last line end, if anything did."""
        lines: list[Line] = []
        self._end_line(lines)
        return lines

    def _add(self, part: bytes, lines: list[Line]) -> None:
        if self._is_skipping:
            return
        if len(self._buffer) + len(part) > self._max:
            self._buffer.clear()
            self._is_skipping = True
            lines.append(None)
        else:
            self._buffer += part

    def _end_line(self, lines: list[Line]) -> None:
        line = bytes(self._buffer).removesuffix(b"\r")
        if line:
            lines.append(line)
        self._buffer.clear()
        self._is_skipping = False
