"""What the fuzzer found, as tables for the terminal and for docs/security.md. It runs nothing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.fuzz import live, parsers, tickets

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "security.md"
BEGIN: Final = "<!-- written by `python -m tests.fuzz`: begin -->"
END: Final = "<!-- written by `python -m tests.fuzz`: end -->"
_MIB: Final = 1024 * 1024


@dataclass
class Report:
    """One run."""

    seed: int
    environment: str
    sections: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def add_tickets(
        self, mutated: tickets.Findings, across: tickets.Findings, times: list[tickets.Timing]
    ) -> None:
        rows = [(name, f"{count:,}") for name, count in sorted((mutated.tried + across.tried).items())]
        total = mutated.tried.total() + across.tried.total()
        self._table("Tickets", ("attempt", "tried"), rows)
        self._text(
            f"{mutated.tried.total():,} mutated tickets and {across.tried.total():,} good ones used by another caller, "
            f"elsewhere, for another call or too late: {total:,} refused with the same bytes, "
            f"{len(mutated.accepted) + len(across.accepted)} accepted, "
            f"{len(mutated.different) + len(across.different)} refused otherwise, "
            f"{len(mutated.crashed) + len(across.crashed)} crashes."
        )
        shown = [(one.name, f"{one.median:.2f}", f"{one.low:.2f} to {one.high:.2f}") for one in times]
        self._table(
            "Time to refuse a ticket of one length", ("what is wrong", "median µs", "quartiles µs"), shown
        )
        self.faults += [*mutated.faults, *across.faults]

    def add_requests(self, found: live.Findings) -> None:
        self._live("Malformed HTTP requests to a running gateway", "spoilt", found)

    def add_parsers(self, found: parsers.Findings) -> None:
        rows = [(name, f"{count:,}") for name, count in found.heard.most_common()]
        self._table("Malformed events to the parsers and the exchange machine", ("taken for", "events"), rows)
        self._text(f"{found.total:,} events, {len(found.faults)} crashes.")
        self.faults += found.faults

    def add_upstreams(self, found: live.Findings) -> None:
        self._live("A hostile server behind a running gateway", "what", found)

    def _live(self, title: str, what: str, found: live.Findings) -> None:
        rows = [(name, f"{count:,}") for name, count in sorted(found.sent.items())]
        self._table(title, (what, "sent"), rows)
        answers = ", ".join(f"{status}: {count:,}" for status, count in sorted(found.answers.items()))
        self._text(
            f"{found.total:,} sent. Answers to the client: {answers}. {found.good_calls:,} good calls in between. "
            f"Memory after each tenth, in MiB: {', '.join(f'{size / _MIB:.0f}' for size in found.memory)}. At the end "
            f"{found.held:,} held calls and {found.sessions:,} sessions. Faults (5xx, no answer, a failed good call, "
            f"an error in the log): {len(found.faults)}."
        )
        self.faults += found.faults

    def _table(self, title: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        rule = "| --- " + "| ---: " * (len(head) - 1) + "|"
        self.sections.append("\n".join([f"### {title}", "", "| " + " | ".join(head) + " |", rule, *lines]))

    def _text(self, text: str) -> None:
        self.sections.append(text)

    def as_markdown(self) -> str:
        verdict = "Nothing was found." if not self.faults else f"{len(self.faults)} faults were found."
        return "\n\n".join([f"{self.environment} Seed {self.seed}. {verdict}", *self.sections])


def write(report: Report, document: Path = DOCUMENT) -> None:
    """Put the report between its markers; everything else in the document stays as it is."""
    text = document.read_text("utf-8")
    section = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    if section.search(text) is None:
        raise ValueError(f"{document.name} has no place for the report")
    document.write_text(section.sub(lambda _: f"{BEGIN}\n\n{report.as_markdown()}\n\n{END}", text), "utf-8")
