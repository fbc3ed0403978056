"""What an operator reads, and what nobody may read there."""

import asyncio
import io
import logging
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.errors import UpstreamLost
from gateway.telemetry import logs
from gateway.telemetry.names import LogEvent, Outcome, Rung

Written = Callable[[], list[dict[str, Any]]]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def finish(
    outcome: Outcome = Outcome.COMPLETE, target: str = "update_work_item", method: str = "tools/call"
) -> None:
    line = logs.Round(
        exchange="x1",
        round=2,
        upstream="crm",
        method=method,
        target=target,
        era="2025-11-25",
        status=200,
        outcome=outcome,
        rung=Rung.LIVE,
        duration_ms=12.34567,
        error_id=None,
        reason=None,
    )
    logs.round_finished(line)


def test_a_round_is_one_json_line_with_time_level_and_event_in_front(written: Written) -> None:
    finish()
    [line] = written()
    assert list(line)[:3] == ["ts", "level", "event"]
    assert line["ts"].endswith("Z")
    del line["ts"]
    assert line == {
        "level": "info",
        "event": "round",
        "exchange": "x1",
        "round": 2,
        "upstream": "crm",
        "method": "tools/call",
        "target": "update_work_item",
        "era": "2025-11-25",
        "status": 200,
        "outcome": "complete",
        "rung": "live",
        "duration_ms": 12.346,
    }


@pytest.mark.parametrize(
    ("outcome", "level"),
    [
        (Outcome.COMPLETE, "info"),
        (Outcome.INPUT_REQUIRED, "info"),
        (Outcome.REFUSED, "info"),
        (Outcome.UPSTREAM_FAILED, "warning"),
        (Outcome.INTERNAL, "error"),
    ],
)
def test_the_level_of_a_round_tells_whether_somebody_should_look(
    written: Written, outcome: Outcome, level: str
) -> None:
    finish(outcome)
    assert written()[0]["level"] == level


def test_rounds_can_be_captured_in_tests(written: Written) -> None:
    with capture_logs() as captured:
        finish()
    assert captured[0]["event"] == LogEvent.ROUND
    assert captured[0]["target"] == "update_work_item"
    assert written() == []


@pytest.mark.parametrize("format_", ["json", "console"])
def test_the_words_of_strangers_in_a_round_are_redacted(stream: io.StringIO, format_: logs.Format) -> None:
    logs.configure("info", format_, stream)
    finish(target="https://me:HUSH@crm/?token=HUSH")
    assert "crm" in stream.getvalue()
    assert "HUSH" not in stream.getvalue()


@pytest.mark.parametrize("format_", ["json", "console"])
def test_a_method_is_a_stranger_s_word_too(stream: io.StringIO, format_: logs.Format) -> None:
    """Ours: a legacy client may ask its server for whatever it likes, in as many words as a body holds."""
    logs.configure("info", format_, stream)
    finish(method="Bearer HUSHHUSHHUSH")
    finish(method="token: HUSH")
    finish(method="x y" * 1_000_000)
    assert "HUSH" not in stream.getvalue()
    assert len(stream.getvalue()) < 5000


def test_a_round_about_something_that_is_not_unicode_is_not_lost(written: Written) -> None:
    finish(target="caf\udce9")
    assert written()[0]["target"] == "caf\\udce9"


def test_rounds_below_the_level_are_not_written(stream: io.StringIO) -> None:
    logs.configure("warning", "json", stream)
    finish()
    assert stream.getvalue() == ""


async def test_rounds_wait_a_moment_for_each_other_but_not_for_what_went_wrong(written: Written) -> None:
    finish(target="one")
    finish(target="two")
    assert written() == []
    finish(Outcome.UPSTREAM_FAILED, target="three")
    assert [line["target"] for line in written()] == ["one", "two", "three"]


async def test_rounds_that_wait_are_written_by_themselves() -> None:
    was_written = asyncio.Event()

    class Noticing(io.StringIO):
        def flush(self) -> None:
            was_written.set()

    logs.configure("info", "json", Noticing())
    finish()
    async with asyncio.timeout(5):
        await was_written.wait()


async def test_many_rounds_do_not_wait_for_the_moment_to_pass(written: Written) -> None:
    for _ in range(256):
        finish()
    assert len(written()) == 256


def test_lines_below_the_level_are_not_written(stream: io.StringIO) -> None:
    logs.configure("warning", "json", stream)
    log = logs.get_logger()
    log.info(LogEvent.LISTENING)
    log.warning(LogEvent.EPHEMERAL_KEY)
    assert '"event":"ephemeral_key"' in stream.getvalue()
    assert "listening" not in stream.getvalue()


def test_configuring_again_turns_loggers_that_exist_to_the_new_stream(written: Written) -> None:
    log = logs.get_logger()
    log.info(LogEvent.LISTENING)
    second = io.StringIO()
    logs.configure("info", "console", second)
    log.info(LogEvent.STOPPED)
    assert [line["event"] for line in written()] == ["listening"]
    assert "stopped" in second.getvalue()


def test_secrets_and_answers_under_their_names_never_reach_the_stream(
    written: Written, stream: io.StringIO
) -> None:
    logs.get_logger().bind(requestState="HUSH-1").info(
        LogEvent.LISTENING,
        headers={"Authorization": "HUSH-2", "Cookie": "HUSH-3", "Accept": "text/html"},
        inputResponses={"a": {"action": "accept", "content": {"name": "HUSH-4"}}},
        nested=[{"arguments": "HUSH-5", "client_secret": "HUSH-6", "apiKey": "HUSH-7"}],
        raw=b"HUSH-8",
        error_id="e-123",
    )
    assert "HUSH" not in stream.getvalue()
    [line] = written()
    assert line["error_id"] == "e-123"
    assert line["headers"]["Accept"] == "text/html"
    assert line["raw"] == "[6 bytes]"


def test_an_exception_is_written_with_its_place_and_without_a_text_that_may_quote_an_answer(
    written: Written, stream: io.StringIO
) -> None:
    log = logs.get_logger()
    try:
        int("HUSH")
    except ValueError:
        log.exception(LogEvent.INTERNAL_ERROR, error_id="e-1")
    [line] = written()
    assert line["level"] == "error"
    assert line["error_id"] == "e-1"
    assert line["exception"]["type"] == "ValueError"
    assert "test_logs.py" in line["exception"]["frames"][-1]
    assert "HUSH" not in stream.getvalue()


def test_our_own_errors_keep_their_text(written: Written) -> None:
    error = UpstreamLost("stream ended after 3 events")
    logs.get_logger().warning(LogEvent.UPSTREAM_EXITED, exc_info=error)
    assert written()[0]["exception"] == {"type": "UpstreamLost", "text": "stream ended after 3 events"}


def test_text_that_is_not_unicode_does_not_lose_the_line(written: Written) -> None:
    """Ours: aiohttp hands on undecodable header bytes as lone surrogates, and JSON cannot carry those."""
    logs.get_logger().info(LogEvent.ROUND, target="caf\udce9", nested={"\udce9": ["\udce9"]})
    assert written()[0]["target"] == "caf\\udce9"


def test_a_stream_that_is_closed_does_not_fail_the_caller(stream: io.StringIO) -> None:
    logs.configure("info", "json", stream)
    stream.close()
    finish()


def test_a_full_disk_does_not_fail_the_caller() -> None:
    class Full(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError(28, "No space left on device")

    logs.configure("info", "json", Full())
    finish()


def test_bytes_go_straight_to_a_stream_that_has_them() -> None:
    raw = io.BytesIO()
    logs.configure("info", "json", io.TextIOWrapper(raw, encoding="ascii"))
    logs.get_logger().info(LogEvent.ROUND, target="naïve")
    assert "naïve" in raw.getvalue().decode()


def test_standard_output_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")
    logs.get_logger().info(LogEvent.LISTENING)
    assert '"event":"listening"' in capsys.readouterr().out


def test_a_terminal_gets_columns_and_a_pipe_gets_json_when_the_format_is_auto(stream: io.StringIO) -> None:
    terminal = Terminal()
    logs.configure("info", "auto", terminal)
    logs.get_logger().info(LogEvent.LISTENING, upstream="crm")
    logs.configure("info", "auto", stream)
    logs.get_logger().info(LogEvent.LISTENING, upstream="crm")
    assert "listening upstream=crm\n" in terminal.getvalue()
    assert stream.getvalue().startswith('{"ts":')


def test_colour_is_for_terminals_only_and_can_be_refused(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal, plain = Terminal(), Terminal()
    monkeypatch.delenv("NO_COLOR", raising=False)
    logs.configure("info", "console", terminal)
    logs.get_logger().warning(LogEvent.EPHEMERAL_KEY)
    logs.configure("info", "console", stream)
    logs.get_logger().warning(LogEvent.EPHEMERAL_KEY)
    monkeypatch.setenv("NO_COLOR", "1")
    logs.configure("info", "console", plain)
    logs.get_logger().warning(LogEvent.EPHEMERAL_KEY)
    assert "\x1b[33m" in terminal.getvalue()
    assert "\x1b" not in stream.getvalue() + plain.getvalue()


def test_what_a_peer_chose_cannot_steer_the_terminal(stream: io.StringIO) -> None:
    """Ours: a tool's name with escape sequences or line ends must not forge or hide lines."""
    logs.configure("info", "console", stream)
    logs.get_logger().info(LogEvent.ROUND, target="a\x1b[2Jb\nround ok", other="two words", empty="")
    [line] = stream.getvalue().splitlines()
    assert "\x1b" not in line
    assert "other='two words' empty=''" in line


def test_an_exception_on_the_console_is_rows_below_its_line(stream: io.StringIO) -> None:
    logs.configure("info", "console", stream)
    try:
        try:
            int("HUSH")
        except ValueError as error:
            raise UpstreamLost("stream ended") from error
    except UpstreamLost:
        logs.get_logger().exception(LogEvent.INTERNAL_ERROR)
    text = stream.getvalue()
    assert "    UpstreamLost: stream ended\n    caused by\n" in text
    assert text.endswith("    ValueError\n")
    assert "HUSH" not in text


def test_warnings_of_libraries_come_in_the_same_form_and_their_chatter_does_not(
    written: Written, stream: io.StringIO
) -> None:
    logging.getLogger("aiohttp.server").warning(
        "bad request, Authorization: Bearer %s\nbelow: %s", "HUSH-1", "HUSH-2"
    )
    logging.getLogger("aiohttp.access").info("GET /mcp 200")
    [line] = written()
    assert line["event"] == LogEvent.LIBRARY
    assert line["logger"] == "aiohttp.server"
    assert line["level"] == "warning"
    assert "HUSH" not in stream.getvalue()


def test_an_exception_in_a_library_is_described_like_our_own(written: Written) -> None:
    try:
        int("HUSH")
    except ValueError:
        logging.getLogger("aiohttp.server").exception("Error handling request")
    [line] = written()
    assert line["message"] == "Error handling request"
    assert line["exception"]["type"] == "ValueError"
    assert "text" not in line["exception"]


def test_a_library_that_formats_wrongly_does_not_fail_its_caller(written: Written) -> None:
    [handler] = (each for each in logging.getLogger().handlers if isinstance(each, logs._LibraryLines))
    handler.emit(logging.LogRecord("aiohttp.server", logging.ERROR, "server.py", 1, "%d of %d", ("x",), None))
    assert written()[0]["message"] == "%d of %d"


def test_levels_that_we_do_not_have_are_rounded_down(written: Written) -> None:
    logging.getLogger("odd").log(35, "between")
    logging.getLogger("odd").critical("worst")
    assert [line["level"] for line in written()] == ["warning", "error"]


def test_python_warnings_are_lines_too(written: Written) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=False)
        logging.captureWarnings(capture=True)
        warnings.warn("old thing", DeprecationWarning, stacklevel=1)
    [line] = written()
    assert line["logger"] == "py.warnings"
    assert "DeprecationWarning: old thing" in line["message"]


def test_configuring_twice_does_not_double_lines_of_libraries(written: Written, stream: io.StringIO) -> None:
    logs.configure("info", "json", stream)
    logging.getLogger("aiohttp.server").error("once")
    assert len(written()) == 1


def test_event_names_are_unique_snake_case_words() -> None:
    names = [event.value for event in LogEvent]
    assert len(set(names)) == len(names)
    assert all(name.replace("_", "").isalnum() and name == name.lower() for name in names)


def test_the_log_room_does_not_pull_in_the_metrics_library() -> None:
    """Ours: `holdfast version` and `check-config` should start fast."""
    probe = "import sys, gateway.telemetry.logs; sys.exit('prometheus_client' in sys.modules)"
    subprocess.run([sys.executable, "-c", probe], check=True, timeout=5, cwd=Path(__file__).parents[2])
