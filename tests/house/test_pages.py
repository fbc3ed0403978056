"""What the pages for users show is true: configurations load, links and named tests exist, commands are there."""

import argparse
import re
from pathlib import Path

import pytest

from gateway.cli import _parser
from gateway.settings.load import load
from gateway.telemetry import logs
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import (
    AskDisposition,
    DoorRefusal,
    HandshakeOutcome,
    HoldEnd,
    LogEvent,
    Outcome,
    Rung,
    SessionState,
)
from tests.support.certificates import Authority

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    (page.name, block)
    for page in PAGES
    for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
]


def by_page() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def test_there_are_configurations_to_try() -> None:
    """Ours: otherwise the next test would look at nothing."""
    assert {name for name, _ in BLOCKS} == {"README.md", "security.md"}


@pytest.mark.parametrize(("name", "block"), BLOCKS, ids=[name for name, _ in BLOCKS])
def test_every_configuration_shown_can_be_used(name: str, block: str, tmp_path: Path) -> None:
    """Ours: what a reader copies must start. Variables are set, and certificates are where they are said to be."""
    pair = Authority(tmp_path).client()
    for key, file in re.findall(r"\b(ca|cert|key)_file: ([\w.-]+)", block):
        source = {"ca": tmp_path / "ca.pem", "cert": pair.cert, "key": pair.key}[key]
        (tmp_path / file).write_bytes(source.read_bytes())
    file = tmp_path / name
    file.write_text(block, encoding="utf-8")
    load(file, environ=dict.fromkeys(re.findall(r"\$\{(\w+)\}", block), "5f" * 32))


@by_page()
def test_every_link_and_every_file_named_leads_somewhere(page: Path) -> None:
    """Ours: a table that names the tests behind its claims is worth what those names are."""
    text = page.read_text("utf-8")
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith("https:")]
    named = re.findall(r"`((?:tests|docs|gateway|config|helm)/[\w./*-]+)`", text)
    assert [link for link in links if not _leads_somewhere(page, link)] == []
    assert [name for name in named if not list(ROOT.glob(name))] == []


@by_page()
def test_every_command_named_is_one(page: Path) -> None:
    """Ours: a command that was renamed is renamed everywhere."""
    actions = _parser()._actions
    [known] = [action.choices for action in actions if isinstance(action, argparse._SubParsersAction)]
    named = set(re.findall(r"`holdfast ([a-z-]+)", page.read_text("utf-8")))
    assert named <= set(known)


def test_the_page_for_operators_has_every_event_metric_and_label_value() -> None:
    """Ours: what is not on the page is not noticed, and what is no more is waited for in vain."""
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    families = {family.name for family in Metrics(version="1", upstreams=["crm"]).registry.collect()}
    ours = {name for name in families if name.startswith("holdfast_")}
    named = {name.removesuffix("_total") for name in re.findall(r"^\| `(holdfast_\w+)`", page, re.MULTILINE)}
    assert named == {name.removesuffix("_total") for name in ours}
    for kind in (
        AskDisposition,
        DoorRefusal,
        HandshakeOutcome,
        HoldEnd,
        LogEvent,
        Outcome,
        Rung,
        SessionState,
    ):
        assert [name.value for name in kind if not re.search(rf"\b{name.value}\b", page)] == [], kind.__name__
    members = set(logs.Round.__struct_fields__) - {"ts", "level", "event"}
    assert [name for name in members if f"`{name}`" not in page] == []


def _leads_somewhere(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    if not target.exists():
        return False
    headings = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.MULTILINE) if anchor else []
    return not anchor or anchor in {
        re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in headings
    }
