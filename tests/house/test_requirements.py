"""Every requirement is proved by a test or has its gap written down; every citation names one that exists."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.requirements import REQUIREMENTS, Requirement

TESTS = Path(__file__).parents[1]
NOT_OURS = {"node_modules", "peers"}


def citations(source: str) -> Iterator[str]:
    """The ids in all `pytest.mark.requirement(...)` of a module: decorators, `pytestmark`, `marks=`."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="requirement", value=ast.Attribute(attr="mark")), args=[*args]
            ):
                for arg in args:
                    assert isinstance(arg, ast.Constant), (
                        f"line {arg.lineno}: cite requirements by their literal id"
                    )
                    assert isinstance(arg.value, str), f"line {arg.lineno}: an id is a string"
                    yield arg.value
            case _:
                pass


def cited_where() -> dict[str, set[str]]:
    where: dict[str, set[str]] = defaultdict(set)
    for path in TESTS.rglob("test_*.py"):
        if NOT_OURS.isdisjoint(path.relative_to(TESTS).parts):
            for id_ in citations(path.read_text(encoding="utf-8")):
                where[id_].add(str(path.relative_to(TESTS)))
    return where


CITED = cited_where()


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.id)
def test_each_requirement_is_cited_or_has_its_gap_written_down(requirement: Requirement) -> None:
    is_cited = requirement.id in CITED

    assert is_cited or requirement.gap, f"no test cites {requirement.id}: {requirement.sentence}"


def test_every_citation_names_a_requirement() -> None:
    known = {requirement.id for requirement in REQUIREMENTS}

    assert {id_: files for id_, files in CITED.items() if id_ not in known} == {}


def test_a_gap_that_tests_already_cite_is_no_gap() -> None:
    assert [entry.id for entry in REQUIREMENTS if entry.gap and entry.id in CITED] == []


def test_the_manifest_is_numbered_without_holes_and_links_to_the_specification() -> None:
    assert [entry.id for entry in REQUIREMENTS] == [f"R{number}" for number in range(1, 62)]
    assert all(entry.url.startswith("https://modelcontextprotocol.io/") for entry in REQUIREMENTS)
    assert all(entry.sentence.endswith(".") for entry in REQUIREMENTS)


def test_citations_are_found_wherever_pytest_takes_a_mark() -> None:
    source = """
pytestmark = [pytest.mark.requirement("R1")]
@pytest.mark.requirement("R2", "R3")
def test_a(): ...
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.requirement("R4"))])
class TestB:
    @pytest.mark.requirement("R5")
    async def test_c(self): ...
"""

    assert sorted(citations(source)) == ["R1", "R2", "R3", "R4", "R5"]
