"""Log lines: JSON, or columns for a person at a terminal; it knows nothing about what the events mean.

`configure` is called once, before the first line. A later call changes format
and stream for every logger, and the level for loggers made after it.
"""

import logging
import os
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol, TextIO, TypeAlias, cast

import msgspec

from gateway.telemetry.names import LogEvent, Outcome, Rung
from gateway.telemetry.plain_structlog import structlog
from gateway.telemetry.redact import redact, scrub
from gateway.telemetry.sink import Sink

Log: TypeAlias = structlog.typing.FilteringBoundLogger
Level: TypeAlias = Literal["debug", "info", "warning", "error"]
Format: TypeAlias = Literal["auto", "json", "console"]
_Line: TypeAlias = MutableMapping[str, Any]

_LEVELS: Final[dict[str, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_LEVEL_NAMES: Final[dict[int, str]] = {level: name for name, level in _LEVELS.items()}


class Round(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What is known about a round when it ends; what is None is left out of its line."""

    ts: datetime | None = None
    level: str | None = None
    event: str | None = None
    upstream: str | None
    method: str | None
    target: str | None = None
    status: int
    outcome: Outcome
    reason: str | None = None
    """`GatewayError.reason`: the word, also a metric label."""
    detail: str | None = None
    """`str(error)`: the true cause, for the log only."""
    duration_ms: float
    era: str | None = None
    exchange: str | None = None
    round: int | None = None
    rung: Rung | None = None
    error_id: str | None = None
    http_request_id: str | None = None
    """What the client finds in the answer's headers, whoever's the error is; not the `id` of its JSON-RPC request."""


_ROUND_LEVELS: Final[dict[Outcome, int]] = {
    Outcome.UPSTREAM_FAILED: logging.WARNING,
    Outcome.LOST: logging.WARNING,
    Outcome.SHED: logging.WARNING,
    Outcome.INTERNAL: logging.ERROR,
}


def get_logger() -> Log:
    """A logger for a module or an object; `bind` what stays the same for all its lines."""
    return cast("Log", structlog.get_logger())


def round_finished(line: Round) -> None:
    """The one line of a round.

    It does not take the way of other lines, for there is one with every call: its
    members are known, only three of them can hold a stranger's sentences, and it may
    wait a moment to become text and be written, together with others.
    """
    level = _ROUND_LEVELS.get(line.outcome, logging.INFO)
    if not _processors or _processors[-1] is not _render_json:
        # For a terminal, or captured by a test.
        members = msgspec.structs.asdict(_rounded(line))
        shown = {name: value for name, value in members.items() if value is not None}
        get_logger().log(level, LogEvent.ROUND, **shown)
    elif level >= _threshold[0]:
        line.ts, line.level, line.event = datetime.now(UTC), _LEVEL_NAMES[level], LogEvent.ROUND
        (_sink.write_soon if level == logging.INFO else _sink.write)(line)


# --- from an event to bytes ---------------------------------------------------------------------------------


class _Renderer(Protocol):
    def __call__(self, logger: Any, method: str, line: _Line, /) -> bytes: ...


_encode = msgspec.json.Encoder().encode


def _render_json(_logger: object, method: str, line: _Line) -> bytes:
    event = line.pop("event", "")
    ordered = {"ts": datetime.now(UTC), "level": method, "event": event, **line}
    try:
        return _encode(ordered)
    except UnicodeEncodeError:
        # aiohttp hands undecodable header bytes on as lone surrogates.
        return _encode({name: _printable(value) for name, value in ordered.items()})


def _round_json(line: Round) -> bytes:
    _rounded(line)
    if line.method is not None:
        line.method = scrub(line.method)  # whatever a legacy client asks a server for
    if line.target is not None:
        line.target = scrub(line.target)
    if line.detail is not None:
        line.detail = scrub(line.detail)
    try:
        return _encode(line)
    except UnicodeEncodeError:
        return _encode(_printable(msgspec.to_builtins(line)))


def _rounded(line: Round) -> Round:
    line.duration_ms = round(line.duration_ms, 3)
    return line


def _printable(value: object) -> object:
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {cast("str", _printable(name)): _printable(member) for name, member in value.items()}
        case list():
            return [_printable(member) for member in value]
        case _:
            return value


_COLOURS: Final = {"debug": "\x1b[2m", "warning": "\x1b[33m", "error": "\x1b[31m", "critical": "\x1b[31m"}
_DIM: Final = "\x1b[2m"
_OFF: Final = "\x1b[0m"


class _RenderConsole:
    """`12:30:05 info round upstream=crm …`; what a peer chose is quoted, so it cannot steer the terminal."""

    def __init__(self, *, coloured: bool) -> None:
        self._coloured = coloured

    def __call__(self, _logger: object, method: str, line: _Line, /) -> bytes:
        exception = line.pop("exception", None)
        event = _shown(line.pop("event", ""), bare_spaces=True)
        time, level = f"{datetime.now(UTC):%H:%M:%S}", f"{method:<8}"
        if self._coloured:
            time, level = f"{_DIM}{time}{_OFF}", f"{_COLOURS.get(method, '')}{level}{_OFF}"
        parts = [time, level, event, *(f"{name}={_shown(value)}" for name, value in line.items())]
        text = " ".join(parts)
        if isinstance(exception, dict):
            text += "".join(f"\n    {row}" for row in _exception_rows(exception))
        return text.encode("utf-8", "backslashreplace")


def _exception_rows(facts: dict[str, Any]) -> list[str]:
    rows = [
        *facts.get("frames", ()),
        f"{facts['type']}: {facts['text']}" if "text" in facts else facts["type"],
    ]
    for cause in facts.get("causes", ()):
        rows.append("caused by")
        rows.extend(_exception_rows(cause))
    return [_shown(row, bare_spaces=True) for row in rows]


def _shown(value: object, *, bare_spaces: bool = False) -> str:
    text = value if isinstance(value, str) else repr(value)
    if not text.isprintable():
        return ascii(text)
    return text if bare_spaces or (text and " " not in text and '"' not in text) else repr(text)


def _name_exception(_logger: object, _method: str, line: _Line) -> _Line:
    """`exc_info` in any of its three forms becomes one exception, which redaction then describes."""
    given = line.pop("exc_info", None)
    if given is True:
        given = sys.exc_info()[1]
    elif isinstance(given, tuple):
        given = given[1]
    if isinstance(given, BaseException):
        line["exception"] = given
    return line


# --- where lines go -----------------------------------------------------------------------------------------


def _tell_of_lost(lines: int) -> None:
    get_logger().warning(
        LogEvent.LOG_LINES_LOST, lines=lines, detail="standard output was not read: these lines were dropped"
    )


_sink: Final[Sink[Round]] = Sink(_round_json, _tell_of_lost)
# One list each for the life of the process, changed in place: loggers keep the list that they were made with.
_processors: Final[list[Any]] = []
_threshold: Final = [logging.INFO]


def configure(level: Level = "info", format: Format = "auto", stream: TextIO | None = None) -> None:  # noqa: A002
    """Send all lines, our own and those of libraries, to `stream` (standard output if none is given)."""
    target = sys.stdout if stream is None else stream
    _sink.turn_to(target)
    is_terminal = target.isatty()
    renderer: _Renderer = _render_json
    if format == "console" or (format == "auto" and is_terminal):
        renderer = _RenderConsole(coloured=is_terminal and "NO_COLOR" not in os.environ)
    _processors[:] = [_name_exception, redact, renderer]
    _threshold[:] = [_LEVELS[level]]
    structlog.configure(
        processors=_processors,
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        context_class=dict,
        logger_factory=lambda *_args: _sink,
        cache_logger_on_first_use=True,
    )
    _take_over_logging(_LEVELS[level])


# --- what libraries write -----------------------------------------------------------------------------------


class _LibraryLines(logging.Handler):
    """Gives lines written through `logging` or `warnings` the same form and the same redaction."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
        except (TypeError, ValueError):
            # Arguments that do not fit their format: a library's bug, and no reason to fail its caller.
            text = str(record.msg)
        # Below the first line asyncio and the parsers quote objects and input.
        message = text.strip().partition("\n")[0]
        level = max((known for known in _LEVELS.values() if known <= record.levelno), default=logging.DEBUG)
        line: dict[str, Any] = {"logger": record.name, "message": message}
        if record.exc_info:
            line["exc_info"] = record.exc_info
        get_logger().log(level, LogEvent.LIBRARY, **line)


def _take_over_logging(level: int) -> None:
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, _LibraryLines):
            root.removeHandler(handler)
    root.addHandler(_LibraryLines())
    # Libraries speak only when something is wrong: at `debug` we mean our own lines.
    root.setLevel(max(level, logging.WARNING))
    logging.captureWarnings(capture=True)
