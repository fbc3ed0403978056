"""The log and whoever reads it: a reader that does not read must not stop the gateway."""

import asyncio
import contextlib
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

import pytest

from gateway.telemetry import logs, sink
from gateway.telemetry.names import LogEvent, Outcome
from tests.support.waiting import until

_SECONDS = 5.0


@dataclass
class Pipe:
    """Our standard output, and a program behind it that reads when it is told to; or at last, to end a test."""

    stream: TextIO
    source: int
    go: threading.Event = field(default_factory=threading.Event)
    has_waited: bool = False

    async def read(self) -> list[dict[str, Any]]:
        """All lines up to the one that says `stopped`."""
        async with asyncio.timeout(2 * _SECONDS):
            return await asyncio.to_thread(self._read)

    def _read(self) -> list[dict[str, Any]]:
        self.has_waited = not self.go.wait(_SECONDS)
        said = b""
        while b'"stopped"' not in said and (chunk := os.read(self.source, 65536)):
            said += chunk
        return [json.loads(line) for line in said.splitlines()]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    source, end = os.pipe()
    with os.fdopen(end, "w") as stream:
        logs.configure("info", "json", stream)
        yield Pipe(stream, source)
        with contextlib.suppress(OSError):
            os.close(source)


def finish(rounds: int) -> None:
    for number in range(rounds):
        line = logs.Round(
            upstream="crm",
            method="tools/call",
            status=200,
            outcome=Outcome.COMPLETE,
            duration_ms=1,
            round=number,
        )
        logs.round_finished(line)


async def test_nobody_waits_for_a_log_that_is_not_read(pipe: Pipe) -> None:
    """Ours: after 64 KiB of lines the gateway stood still, with its probes and its signals."""
    reading = asyncio.ensure_future(pipe.read())
    finish(3000)
    pipe.go.set()
    logs.get_logger().info(LogEvent.STOPPED)
    lines = await reading
    assert not pipe.has_waited
    assert [line.get("round") for line in lines] == [*range(3000), None]


async def test_what_is_not_read_for_long_is_counted_and_dropped(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: memory has an end as well."""
    monkeypatch.setattr(sink, "_MOST_KEPT", 100_000)
    finish(3000)
    pipe.go.set()
    reading = asyncio.ensure_future(pipe.read())

    async def is_read() -> bool:
        return not logs._sink._unread

    await until(is_read)
    logs.get_logger().info(LogEvent.STOPPED)
    lines = await reading
    [lost] = [line["lines"] for line in lines if line["event"] == "log_lines_lost"]
    rounds = [line["round"] for line in lines if line["event"] == "round"]
    assert len(rounds) + lost == 3000
    assert rounds == sorted(rounds)


def test_where_nothing_else_goes_on_a_reader_is_waited_for_and_not_for_ever(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the last lines of a process, after its loop has ended."""
    monkeypatch.setattr(sink, "_LAST_SECONDS", 0.01)
    finish(500)
    assert logs._sink._unread
    pipe.go.set()
    said = threading.Thread(target=pipe._read)
    monkeypatch.setattr(sink, "_LAST_SECONDS", _SECONDS)
    said.start()
    logs.get_logger().info(LogEvent.STOPPED)
    said.join(_SECONDS)
    assert not logs._sink._unread


def test_a_reader_that_is_gone_is_not_waited_for(pipe: Pipe) -> None:
    """Ours: `holdfast serve | head`."""
    os.close(pipe.source)
    finish(1000)
    assert not logs._sink._unread


async def test_a_line_that_comes_out_of_the_writing_itself_waits_for_its_turn(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the collector may run at any allocation, and what it collects may warn: that must neither hang nor mix."""
    take, is_first = sink._Reader.take, True

    def warn_and_take(reader: sink._Reader, piece: bytearray) -> int:
        nonlocal is_first
        if is_first:
            is_first = False
            logs.get_logger().warning(LogEvent.LIBRARY, detail="unclosed")
        return take(reader, piece)

    monkeypatch.setattr(sink._Reader, "take", warn_and_take)
    logs.get_logger().info(LogEvent.LISTENING)
    logs.get_logger().info(LogEvent.STOPPED)
    pipe.go.set()
    assert [line["event"] for line in await pipe.read()] == ["listening", "library", "stopped"]
