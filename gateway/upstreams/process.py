"""A server's process: started, written to, read from, and ended with all that it started. It knows no MCP."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self, cast

from gateway.errors import UpstreamUnreachable
from gateway.upstreams.guard import Guard

_GOODBYE_SECONDS: Final = 2.0
"""How long a server may take to end after its input was closed, and again after SIGTERM."""
_HASTE_SECONDS: Final = 0.1
"""The same for one that has nothing to finish."""
_LAST_WORDS_SECONDS: Final = 0.5
"""Between the end of a process and that of its output, or the other way round."""
_REAP_SECONDS: Final = 1.0
_REAP_PAUSE_SECONDS: Final = 0.01
_INHERITED: Final = (
    "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
)  # fmt: skip

_STDIN, _STDOUT = 0, 1


def environment(inherited: Mapping[str, str], configured: Mapping[str, str]) -> dict[str, str]:
    """What a server's process sees: enough to find programs and to speak a language, and what was configured.

    The rest of our own environment is nobody's business: our keys are in it.
    """
    return {name: inherited[name] for name in _INHERITED if name in inherited} | dict(configured)


def _missing(program: str, cwd: Path | None) -> str:
    """Of which of the two does the system say that there is no such file?"""
    return program if cwd is None or cwd.is_dir() else f"cwd {cwd}"


class ServerProcess(asyncio.SubprocessProtocol):
    """One process and its group. Made by `start`; ended by `stop`."""

    def __init__(
        self, guard: Guard, hear: Callable[[bytes], None], overhear: Callable[[bytes], None]
    ) -> None:
        self.pid = 0
        self._guard = guard
        self._hear = hear
        self._overhear = overhear
        self._transport: asyncio.SubprocessTransport | None = None
        self._exited = asyncio.Event()
        self._fell_silent = asyncio.Event()
        self._said_last_words = asyncio.Event()
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._is_deaf = False
        self._is_cleared = False

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None,
        guard: Guard,
        hear: Callable[[bytes], None],
        overhear: Callable[[bytes], None],
    ) -> Self:
        """Start a command in a session, and so a process group, of its own.

        Args:
            command: The program and its arguments; no shell reads it.
            env: All that it sees of an environment, but for the guard's mark.
            cwd: Where it runs; None: where we do.
            guard: Who ends it if we cannot.
            hear: Takes what it writes to its standard output.
            overhear: Takes what it writes to its standard error.

        Raises:
            UpstreamUnreachable: there is no such program, or it may not be run.
        """
        loop = asyncio.get_running_loop()
        try:
            transport, process = await loop.subprocess_exec(
                lambda: cls(guard, hear, overhear),
                *command,
                env={**env, **guard.mark()},
                cwd=None if cwd is None else str(cwd),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            raise UpstreamUnreachable(
                f"{_missing(command[0], cwd)}: {why}",
                detail="The upstream server's command cannot be started",
            ) from error
        process._transport = transport  # noqa: SLF001 - its own
        process.pid = transport.get_pid()
        guard.watch(process.pid)
        return process

    @property
    def is_running(self) -> bool:
        """Has it not ended, and does it read? What it said before it did may still be on its way."""
        return not (self._exited.is_set() or self._is_deaf)

    @property
    def ending(self) -> str:
        """How the process ended, in words that anybody may read."""
        code = self._transport.get_returncode() if self._transport is not None else None
        if code is None:
            return "output closed" if self._fell_silent.is_set() else "input closed"
        if code >= 0:
            return f"exit code {code}"
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}"
        return f"ended by signal {-code}"

    async def write(self, data: bytes) -> None:
        """Write to its standard input; returns when there is room for more, or when there is nobody to write to.

        Raises:
            BrokenPipeError: nothing was written, it takes nothing any more.
        """
        if self._transport is None or self._is_deaf or self._exited.is_set():
            raise BrokenPipeError
        pipe = cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(_STDIN))
        if pipe is None or pipe.is_closing():
            raise BrokenPipeError
        pipe.write(data)
        await self._may_write.wait()

    async def ended(self) -> None:
        """Wait until the process has ended or can no longer be heard, and everything it said was heard."""
        ends = (self._exited, self._fell_silent, self._said_last_words)
        waits = [asyncio.ensure_future(end.wait()) for end in ends]
        try:
            await asyncio.wait(waits[:2], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait(waits, timeout=_LAST_WORDS_SECONDS)
        finally:
            for wait in waits:
                wait.cancel()

    async def stop(self, *, patiently: bool = True) -> None:
        """Close its input; if it does not end, SIGTERM; if that does not help, SIGKILL. Takes its children along."""
        if self._transport is None:
            return
        try:
            pipe = self._transport.get_pipe_transport(_STDIN)
            if pipe is not None:
                pipe.close()
            if not await self._ends_within(_GOODBYE_SECONDS if patiently else _HASTE_SECONDS):
                self._signal(signal.SIGTERM)
                await self._ends_within(_GOODBYE_SECONDS)
        finally:
            # Also when we are in a hurry, and always for those whom the server started and left behind.
            await self._clear()

    async def _clear(self) -> None:
        if self._is_cleared or self._transport is None:
            return
        self._is_cleared = True
        self._signal(signal.SIGKILL)
        await self._ends_within(_REAP_SECONDS)
        await self._reap_adopted()
        self._guard.release(self.pid)
        self._transport.close()

    async def _reap_adopted(self) -> None:
        """Where we are process 1, as in a container, the server's orphans are ours: leave no zombies."""
        deadline = asyncio.get_running_loop().time() + _REAP_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            try:
                found, _ = os.waitpid(-self.pid, os.WNOHANG)  # noqa: ASYNC222 - does not wait
            except ChildProcessError:
                return
            if found == 0:
                await asyncio.sleep(_REAP_PAUSE_SECONDS)

    async def _ends_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        except TimeoutError:
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    # --- told by the event loop --------------------------------------------------------

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """It said something."""
        (self._hear if fd == _STDOUT else self._overhear)(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - the loop's signature
        """One of its ends is closed."""
        match fd:
            case 0:
                self._is_deaf = True
                self._may_write.set()
            case 1:
                self._fell_silent.set()
            case _:
                self._said_last_words.set()

    def process_exited(self) -> None:
        """It has ended, and is no zombie."""
        self._exited.set()
        self._may_write.set()

    def pause_writing(self) -> None:
        """It does not read as fast as we write."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """It does again."""
        self._may_write.set()
