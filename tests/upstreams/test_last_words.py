"""What a process says beside the protocol: logged within reason, its end kept for when it fails."""

from structlog.testing import capture_logs

from gateway.telemetry.logs import get_logger
from gateway.telemetry.redact import Blackout
from gateway.upstreams.last_words import Allowance, LastWords


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_lines_are_logged_however_they_arrive() -> None:
    with capture_logs() as logged:
        words = LastWords(get_logger(), Allowance(Clock()), Blackout(()))
        words.feed(b"one\ntw")
        words.feed(b"o\r\n\n   \n\xff\xfe")
        assert words.finish() == ["one", "two", "\ufffd\ufffd"]
    assert [line["line"] for line in logged] == ["one", "two", "\ufffd\ufffd"]
    assert {line["event"] for line in logged} == {"upstream_stderr"}
    assert {line["log_level"] for line in logged} == {"info"}


def test_a_flood_is_cut_and_counted() -> None:
    clock = Clock()
    with capture_logs() as logged:
        words = LastWords(get_logger(), Allowance(clock), Blackout(()))
        words.feed(b"x\n" * 1000)
        shown = len(logged)
        assert 10 <= shown <= 100
        clock.seconds = 60.0
        words.feed(b"later\n")
    assert [line.get("dropped", line.get("line")) for line in logged[shown:]] == [1000 - shown, "later"]


def test_all_processes_of_an_upstream_share_one_allowance() -> None:
    """With a fresh session per call each call starts one, and each prints its banner."""
    allowance = Allowance(Clock())
    with capture_logs() as logged:
        for _ in range(500):
            words = LastWords(get_logger(), allowance, Blackout(()))
            words.feed(b"Server running on stdio\n")
            words.warn("not JSON on standard output: Welcome")
    assert len(logged) <= 100


def test_only_the_end_is_kept_and_no_line_is_long() -> None:
    with capture_logs():
        words = LastWords(get_logger(), Allowance(Clock()), Blackout(()))
        words.feed(b"".join(b"line %d\n" % number for number in range(100)))
        words.feed(b"y" * 5000 + b"\n" + b"z" * 100_000 + b"\n")
        kept = words.finish()
    assert len(kept) == 20
    assert kept[0] == "line 82"
    assert (kept[-2], kept[-1]) == ("y" * 500, "[a very long line]")


def test_what_the_server_was_given_is_taken_out_before_lines_are_cut() -> None:
    """Ours: a key on its own looks like nothing, and half of one is still too much of it."""
    with capture_logs() as logged:
        words = LastWords(get_logger(), Allowance(Clock()), Blackout(["correct horse"]))
        words.feed(b"I use correct horse today\n" + b"y" * 494 + b"correct horse\n")
        words.quote("not JSON on standard output", b"x" * 195 + b"correct horse")
        kept = words.finish()
    assert kept[0] == "I use [redacted] today"
    assert "corr" not in f"{kept} {logged}"
