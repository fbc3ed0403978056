"""stdio, the client's half: a process per session, one message per line. No MCP meaning.

What real servers do that decides the shape of this file:

* Some print banners and debug lines to standard output, or log JSON there. What is
  not JSON-RPC is logged and passed over; what may have been meant as an answer and
  cannot be read fails the request that waits.
* Some never notice that their input was closed, some start others (`npx`): so
  the whole process group is ended, politely first.
* Universal newlines in Python servers break a line at CR too: neither CR nor LF
  may stand in what we write, though clients may format their JSON as they like.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from gateway.errors import GatewayError, UpstreamLost, UpstreamSpokeNonsense, UpstreamUnreachable
from gateway.telemetry.logs import Log
from gateway.telemetry.names import LogEvent
from gateway.telemetry.redact import Blackout
from gateway.upstreams.background import Background
from gateway.upstreams.courtesies import Courtesies
from gateway.upstreams.guard import Guard
from gateway.upstreams.last_words import Allowance, LastWords
from gateway.upstreams.one_stream import OneStream
from gateway.upstreams.process import ServerProcess
from gateway.upstreams.readable import may_answer
from gateway.upstreams.transport import Deliver, SessionGone
from gateway.wire.jsonrpc import Id, Message, NotJson, NotJsonRpc, Request, parse_many
from gateway.wire.lines import Line, LineSplitter

_ENDING_SECONDS: Final = 1.0


class Stdio:
    """One session's channel, once `open` has returned. The process is the session."""

    __slots__ = (
        "_background",
        "_courtesies",
        "_is_closing",
        "_is_introduced",
        "_last_words",
        "_lines",
        "_log",
        "_process",
        "_stream",
        "last_event_id",
        "session_id",
    )

    has_one_stream = True

    def __init__(self, *, max_line_bytes: int, log: Log, allowance: Allowance, blackout: Blackout) -> None:
        self.session_id: str | None = None
        self.last_event_id: str | None = None
        self._log = log
        self._lines = LineSplitter(max_line_bytes)
        self._last_words = LastWords(log, allowance, blackout)
        self._background = Background()
        self._courtesies = Courtesies(self._background)
        self._stream = OneStream()
        self._process: ServerProcess | None = None
        self._is_introduced = False
        self._is_closing = False

    async def open(
        self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path | None, guard: Guard
    ) -> None:
        """Start the process.

        Raises:
            UpstreamUnreachable: it cannot be started.
        """
        self._process = process = await ServerProcess.start(
            command, env=env, cwd=cwd, guard=guard, hear=self._hear, overhear=self._last_words.feed
        )
        self.session_id = f"pid-{process.pid}"
        self._log = self._last_words.log = self._log.bind(pid=process.pid)
        self._background.start(self._watch(process), "server-process")

    @property
    def is_running(self) -> bool:
        """Is there a process that could answer?"""
        return self._process is not None and self._process.is_running and not self._stream.has_ended

    def authorize(self, authorization: str) -> None:
        """Nothing on a line shows it."""

    def speak(self, version: str) -> None:  # noqa: ARG002 - nothing on a line names it
        """The handshake is over: from now on the end of the process may be the end of a call."""
        self._is_introduced = True

    async def request(self, request_id: Id, body: bytes, deliver: Deliver) -> None:
        """Write a request; its answer comes among all that the process writes."""
        try:
            answered = self._stream.expect(request_id, deliver)
            try:
                await self._write(body)
                await answered
            finally:
                self._stream.forget(request_id)
        except SessionGone:
            if self._is_introduced or self._process is None:
                raise
            # There never was a session. How it ended is known a moment after that it did.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_ENDING_SECONDS):
                    await self._process.ended()
            raise self._ending(self._process.ending) from None

    async def send(self, body: bytes) -> None:
        """Write a notification or an answer."""
        self._stream.check()
        await self._write(body)

    async def listen(self, deliver: Deliver, opened: Callable[[], None]) -> None:
        """Deliver what the server says of its own accord; raises when the process ends."""
        await self._stream.listen(deliver, opened)

    async def close(self) -> None:
        """End the process, politely first."""
        self._is_closing = True
        self._stream.end(UpstreamLost("closed by us"))
        try:
            if self._process is not None:
                await self._process.stop(patiently=self._is_introduced)
        finally:
            await self._background.close()

    # --- what the process says ---------------------------------------------------------

    def _hear(self, chunk: bytes) -> None:
        for line in self._lines.feed(chunk):
            self._hear_line(line)

    def _hear_line(self, line: Line) -> None:
        if line is None:
            self._stream.spoil(UpstreamSpokeNonsense("a line that is longer than limits.event"))
            self._last_words.warn("a line on standard output is longer than limits.event")
            return
        try:
            messages = parse_many(line)
        except NotJson:
            if b'"jsonrpc"' in line:
                self._stream.spoil(UpstreamSpokeNonsense("a line that is not JSON"))
                self._last_words.warn(f"a message of {len(line)} bytes on standard output is not JSON")
            else:
                self._last_words.quote("not JSON on standard output", line)
        except NotJsonRpc as error:
            if may_answer(line):
                self._stream.spoil(UpstreamSpokeNonsense(str(error)))
            self._last_words.warn(f"not JSON-RPC on standard output: {error}")
        else:
            for message in messages:
                self._hear_message(message)

    def _hear_message(self, message: Message) -> None:
        if isinstance(message, Request) and message.method == "ping" and not self._stream.has_listener:
            # A process that waits to be used has none for long: a server in Go that hears no pong ends.
            self._courtesies.pong(message, self.send)
        else:
            self._stream.hear(message)

    # --- its end -----------------------------------------------------------------------

    async def _watch(self, process: ServerProcess) -> None:
        await process.ended()
        for line in self._lines.finish():
            self._hear_line(line)
        if self._is_closing:
            return
        # What it left behind goes too, and one that only closed its output ends now.
        self._stream.end(self._ending(process.ending))
        await process.stop()
        self._log.warning(LogEvent.UPSTREAM_EXITED, detail=process.ending, stderr=self._last_words.finish())

    def _ending(self, how: str) -> GatewayError:
        if self._is_introduced:
            words = f"The upstream server's process ended ({how}) before it answered; the call may have run"
            return UpstreamLost(f"the process ended: {how}", detail=words)
        return UpstreamUnreachable(detail=f"The upstream server's process ended while starting ({how})")

    async def _write(self, body: bytes) -> None:
        if self._process is None:
            raise AssertionError("not open")
        # Inside a JSON text a bare CR or LF can only stand between tokens.
        line = body.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"
        try:
            await self._process.write(line)
        except BrokenPipeError:
            raise SessionGone("the process takes nothing any more") from None
