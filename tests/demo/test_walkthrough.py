"""`holdfast demo` as a user runs it: in a pipe, at a terminal, and left running."""

import asyncio
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from gateway.demo import walkthrough
from gateway.demo.modern_client import Json, ModernClient
from gateway.demo.walkthrough import Chapter, curl_example

ROOT: Final = Path(__file__).parents[2]
DEMO: Final = [sys.executable, "-m", "gateway", "demo"]
START_SECONDS: Final = 20


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    return {**kept, "TERM": "xterm", **more}


def test_in_a_pipe_it_walks_through_all_three_kinds_and_exits_0() -> None:
    done = subprocess.run(
        DEMO,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )

    assert (done.returncode, done.stderr) == (0, "")
    for sight in (
        "asks on the POST stream: elicitation/create",
        "asks on the GET stream: sampling/createMessage",
        "InputRequiredResult",
        "(sealed, ",
        "Booked: Chez Ada, 2 guests, 20:45.",
        "Summary by stand-in-model",
        "3 days in Lisbon in May",
        "3 calls, 4 questions, 7 rounds",
    ):
        assert sight in done.stdout
    assert "\x1b" not in done.stdout


class Terminal:
    """A person at a terminal: reads what appears, types when asked."""

    def __init__(self, **more: str) -> None:
        self._screen, theirs = pty.openpty()
        self.process = subprocess.Popen(
            DEMO,
            cwd=ROOT,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment(**more),
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = ""

    def read_until(self, text: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        start = len(self.seen)
        while text not in self.seen[start:]:
            assert time.monotonic() < deadline, self.seen
            if not self._read_some():
                pytest.fail(f"the demo ended before {text!r}:\n{self.seen}")

    def read_to_the_end(self) -> int:
        while self._read_some():
            pass
        return self.process.wait(START_SECONDS)

    def _read_some(self) -> bool:
        try:
            data = os.read(self._screen, 4096)
        except OSError:  # the other end is closed
            return False
        self.seen += data.decode()
        return bool(data)

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._screen)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    yield terminal
    terminal.close()


def test_at_a_terminal_the_answers_are_typed_and_a_wrong_one_is_asked_again(terminal: Terminal) -> None:
    terminal.read_until("[20:45]: ")
    terminal.type("noon\n")
    terminal.read_until("[20:45]: ")
    assert "Holdfast asks again;" in terminal.seen
    terminal.type("18:30\n")
    for suggestion in ("pulled.]: ", "[Lisbon]: ", "[May]: "):
        terminal.read_until(suggestion)
        terminal.type("\n")

    assert terminal.read_to_the_end() == 0
    assert "2 guests, 18:30." in terminal.seen
    assert "\x1b[" in terminal.seen


def test_ctrl_c_at_a_question_ends_it_at_once(terminal: Terminal) -> None:
    terminal.read_until("[20:45]: ")
    terminal.process.send_signal(signal.SIGINT)

    assert terminal.read_to_the_end() == 130
    assert "Traceback" not in terminal.seen


@pytest.fixture
def served() -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """`holdfast demo --serve`, and everything that it printed up to the last line of its greeting."""
    process = subprocess.Popen(
        [*DEMO, "--serve"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if "Ctrl-C stops both" in line:
            break
    yield process, lines
    if process.poll() is None:
        process.kill()
    process.communicate()


def url_of(lines: list[str]) -> str:
    return next(line.split()[1] for line in lines if line.strip().startswith("holdfast "))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_left_running_it_serves_others_and_a_signal_ends_it_cleanly(
    served: tuple[subprocess.Popen[str], list[str]], number: signal.Signals
) -> None:
    process, lines = served

    async def answer(key: str, ask: Json) -> Json:
        return {"action": "accept", "content": {key: "18:30"}}

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http:
        result = await ModernClient(http, url_of(lines), answer=answer).call_tool(
            "book_table", {"restaurant": "B"}
        )
    assert result["content"][0]["text"] == "Booked: B, 2 guests, 18:30."

    process.send_signal(number)
    out, err = await asyncio.to_thread(process.communicate, timeout=START_SECONDS)
    assert (process.returncode, out.strip(), err) == (0, "stopped", "")


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_printed_curl_command_gets_an_input_required_result(
    served: tuple[subprocess.Popen[str], list[str]],
) -> None:
    _, lines = served
    first = next(number for number, line in enumerate(lines) if line.startswith("curl "))
    command = "\n".join(lines[first : first + len(curl_example("url"))])

    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=10, check=True)

    assert '"resultType":"input_required"' in done.stdout.replace(" ", "")
    assert '"requestState"' in done.stdout


@pytest.mark.parametrize(
    ("chapter", "reason"),
    [
        (Chapter("A tool that does not ask", "echo", {"text": "x"}), "no question"),
        (Chapter("A tool that is not there", "no_such_tool", {}), "Unknown tool"),
        (Chapter("A tool that fails", "echo", {}), "missing arguments"),
    ],
)
def test_a_walk_that_shows_nothing_fails_with_a_reason(
    chapter: Chapter, reason: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(walkthrough, "CHAPTERS", (chapter,))
    # The log's settings belong to the process; this one is pytest's.
    monkeypatch.setattr(walkthrough, "configure", lambda *_: None)

    assert walkthrough.run(serve=False, interactive=False) == 1
    assert reason in capsys.readouterr().err
