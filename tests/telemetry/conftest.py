"""Puts the process-wide logging state back after each test of this room."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gateway.telemetry import logs


@pytest.fixture(autouse=True)
def _logging_put_back() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    logging.captureWarnings(capture=False)
    logs.configure()
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def written(stream: io.StringIO) -> Callable[[], list[dict[str, Any]]]:
    """Logging configured as in production, and what came out of it."""
    logs.configure("info", "json", stream)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
