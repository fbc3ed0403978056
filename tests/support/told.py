"""Lines that a test wants to see in the output of the whole run, whichever process it ran in."""

from collections.abc import Callable, Sequence
from typing import Any

KEY = "told"


def tell(record_property: Callable[[str, object], None], title: str, lines: Sequence[str]) -> None:
    """Show these lines under this title when all tests have run; takes pytest's fixture of that name."""
    record_property(KEY, [title, *lines])


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The hook behind `tell`; a property travels from the workers with the test's report."""
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    for report in reports:
        if getattr(report, "when", None) != "call":
            continue
        for name, value in report.user_properties:
            if name == KEY:
                terminalreporter.section(value[0])
                for line in value[1:]:
                    terminalreporter.write_line(line)
