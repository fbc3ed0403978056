"""A small and seeded part of `python -m tests.fuzz`, and that its report says what was found."""

from pathlib import Path

import pytest

from tests.fuzz import clients, live, parsers, tickets, upstreams
from tests.fuzz.report import BEGIN, DOCUMENT, END, Report, write


def test_no_mutated_ticket_is_taken_and_all_are_refused_alike() -> None:
    """Ours: one frozen answer for every cause."""
    found = tickets.fuzz(11, 5000)
    assert found.faults == []
    assert set(found.tried) == set(tickets.all_ways())


def test_no_ticket_serves_another_caller_or_another_call() -> None:
    """Ours: bound to principal, upstream, method, target, arguments and time."""
    found = tickets.fuzz_across(12, 50)
    assert found.faults == []
    assert found.tried.total() == 400


def test_no_event_breaks_the_parsers_or_the_machine() -> None:
    """Ours: a server's word may be refused; it may not break anything."""
    found = parsers.fuzz(13, 5000)
    assert found.faults == []
    assert found.total == 5000


async def test_no_malformed_request_is_our_fault(tmp_path: Path) -> None:
    """Ours: no 5xx, no hang, no error in the log, and good calls are served in between."""
    found = await clients.fuzz(14, 600, tmp_path)
    assert found.faults == []
    assert found.total == 600
    assert len(found.memory) == live.PARTS
    assert (found.held, found.sessions > 0) == (0, True)


async def test_no_answer_of_a_hostile_server_is_our_fault(tmp_path: Path) -> None:
    """Ours: the client hears of it in our words, and the next call is served."""
    found = await upstreams.fuzz(15, 150, tmp_path)
    assert found.faults == []


def test_a_report_goes_between_its_markers_and_nowhere_else(tmp_path: Path) -> None:
    """Ours: the rest of the document is written by people."""
    document = tmp_path / "security.md"
    document.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", "utf-8")
    report = Report(3, "Here.")
    report.add_requests(live.Findings(faults=["HTTP 500"]))
    write(report, document)
    text = document.read_text("utf-8")
    assert text.startswith(f"before\n{BEGIN}\n\nHere. Seed 3. 1 faults were found.")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text


def test_a_document_without_a_place_is_left_alone(tmp_path: Path) -> None:
    """Ours: nothing is guessed."""
    document = tmp_path / "security.md"
    document.write_text("nothing", "utf-8")
    with pytest.raises(ValueError, match="no place"):
        write(Report(1, ""), document)
    assert BEGIN in DOCUMENT.read_text("utf-8")
