"""What reaches the terminal: no colour where it is not seen, nothing that the terminal cannot show."""

import asyncio
import io
import os
import pty
from collections.abc import Iterator

import pytest

from gateway.demo.terminal import Terminal


class Tty(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_no_colour() -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    Terminal(out).title("Heading")
    out.seek(0)
    assert out.read() == "\nHeading\n───────\n"


def test_a_terminal_gets_colour_unless_the_user_does_not_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured, plain = Tty(), Tty()
    Terminal(coloured).line("x", "green")
    monkeypatch.setenv("NO_COLOR", "1")
    Terminal(plain).line("x", "green")

    assert coloured.getvalue() == "\x1b[32mx\x1b[0m\n"
    assert plain.getvalue() == "x\n"


def test_a_terminal_without_unicode_gets_ascii() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    Terminal(out).step("a → b", "é…", detail="─")
    assert raw.getvalue().decode("ascii").split() == ["a", ">", "b", "?~", "-"]


def test_what_a_server_says_cannot_move_the_cursor() -> None:
    out = Tty()
    Terminal(out, colour=False).step("label", "\x1b[2Jgone\r\n")
    assert "\x1b" not in out.getvalue()
    assert "\r" not in out.getvalue()


def test_long_details_are_wrapped_under_their_label() -> None:
    out = Tty()
    Terminal(out, colour=False, width=60).step("label", "text", detail="word " * 30)
    assert all(len(line) <= 60 for line in out.getvalue().splitlines())


def test_steps_are_wrapped_as_well_and_in_eighty_columns_by_themselves() -> None:
    """Ours: most terminals are that wide, and one that wraps by itself breaks the columns."""
    out = Tty()
    Terminal(out, colour=False, width=80).step("client ← holdfast", "word " * 20)
    assert all(len(line) <= 80 for line in out.getvalue().splitlines())
    assert out.getvalue().splitlines()[1].startswith(" " * 24 + "word")


def test_no_more_is_written_than_the_terminal_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: it is asked how wide it is; a pipe is not."""
    monkeypatch.setenv("COLUMNS", "66")
    shown, piped = Tty(), io.StringIO()
    for out in (shown, piped):
        Terminal(out, colour=False).step("label", "word " * 30)
    assert max(map(len, shown.getvalue().splitlines())) <= 66
    assert 66 < max(map(len, piped.getvalue().splitlines())) <= 100


def test_one_who_reads_no_further_is_no_failure() -> None:
    """Ours: `holdfast demo | head`. The walk goes to its end all the same."""
    ours, theirs = os.pipe()
    os.close(ours)
    with open(theirs, "w", encoding="utf-8") as out:  # noqa: PTH123 - a descriptor
        terminal = Terminal(out)
        terminal.line("unread")
        terminal.line("unread")
        os.dup2(os.open(os.devnull, os.O_WRONLY), theirs)


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The user's end of a pseudo-terminal that is our standard input."""
    ours, theirs = pty.openpty()
    with open(theirs, closefd=True) as stdin:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr("sys.stdin", stdin)
        yield ours
    os.close(ours)


@pytest.mark.parametrize(("typed", "answer"), [(b"18:30\n", "18:30"), (b"\n", "20:45"), (b"\x04", "20:45")])
async def test_an_empty_line_or_the_end_of_input_is_the_suggestion(
    keyboard: int, typed: bytes, answer: str
) -> None:
    out = Tty()
    os.write(keyboard, typed)
    async with asyncio.timeout(5):
        assert await Terminal(out, colour=False).ask("you", "time", "20:45") == answer
    assert "time [20:45]: " in out.getvalue()
    # A terminal shows the end of a line that was typed; where none was, what follows must not stand beside it.
    assert out.getvalue().endswith("\n") == (typed == b"\x04")


async def test_what_follows_an_interrupted_question_begins_a_line(keyboard: int) -> None:
    """Ours: Ctrl-C in the middle of a question; the farewell to the server is told after it."""
    out = Tty()
    asking = asyncio.ensure_future(Terminal(out, colour=False).ask("you", "time", "20:45"))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    os.write(keyboard, b"\n")  # for the thread that still reads
    assert asking.cancelled()
    assert out.getvalue().endswith("[20:45]: \n")
