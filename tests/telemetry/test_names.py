"""Every name that is declared for operators is one that they can meet."""

from enum import StrEnum
from pathlib import Path

import pytest

from gateway.telemetry.names import (
    AskDisposition,
    DoorRefusal,
    HandshakeOutcome,
    HoldEnd,
    LetterKind,
    LogEvent,
    Outcome,
    Rung,
)

GATEWAY = Path(__file__).parents[2] / "gateway"
SOURCES = [file.read_text("utf-8") for file in GATEWAY.rglob("*.py") if file.name != "names.py"]


@pytest.mark.parametrize(
    "names", [AskDisposition, DoorRefusal, HandshakeOutcome, HoldEnd, LetterKind, LogEvent, Outcome, Rung]
)
def test_no_name_is_declared_that_nothing_ever_says(names: type[StrEnum]) -> None:
    """Ours: an alert on an event that never comes is worse than none."""
    said = [name for name in names if any(f"{names.__name__}.{name.name}" in source for source in SOURCES)]
    assert [*names] == said
