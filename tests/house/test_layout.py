"""The house rules that a machine can check: what stands where, how long it is, and how it begins."""

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "gateway").rglob("*.py"))
TOP_LEVEL = {
    "pyproject.toml",
    "README.md",
    "gateway",
    "tests",
    "config",
    "Dockerfile",
    "helm",
    "docs",
    "CHANGELOG.md",
    "LICENSE",
    "requirements.lock",
}
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "misc", "base"}
MOST_LINES = 400


def _tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


def test_the_top_level_holds_what_was_agreed_and_nothing_else() -> None:
    """Ours: a newcomer finds everything where it was said to be."""
    found = {path.split("/")[0] for path in _tracked()}
    assert {name for name in found if not name.startswith(".")} <= TOP_LEVEL


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_fits_on_a_few_screens_and_says_what_it_is(module: Path) -> None:
    """Ours: the one big file where everything meets is always the weakest."""
    source = module.read_text("utf-8")
    assert source.count("\n") <= MOST_LINES
    assert ast.get_docstring(ast.parse(source)), "the first line says what the module is"
    assert not {part.lstrip("_") for part in (*module.parts[:-1], module.stem)} & VAGUE


@pytest.mark.parametrize(
    "package", [path for path in MODULES if path.name == "__init__.py"], ids=lambda path: path.parent.name
)
def test_a_package_is_a_door_plate(package: Path) -> None:
    """Ours: a docstring (and the version), no re-exports; what is needed is imported from where it is."""
    tree = ast.parse(package.read_text("utf-8"))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def test_the_imports_keep_to_the_stairs() -> None:
    """Ours: DESIGN's layering; `pyproject.toml` has the contracts."""
    checked = subprocess.run(["lint-imports"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_every_module_that_decides_or_does_io_has_its_own_tests() -> None:
    """Ours: tests mirror the rooms. What only holds data, or is proved by running it whole, is listed here."""
    proved_whole = {
        "gateway/app.py",  # tests/conversations
        "gateway/__main__.py",
        "gateway/errors.py",
        "gateway/edge/mcp.py",  # tests/conversations, raw wire
        "gateway/edge/front.py",
        "gateway/edge/reply.py",
        "gateway/relay/relay.py",
        "gateway/relay/driver.py",
        "gateway/relay/legacy_call.py",
        "gateway/eras/vocabulary.py",
        "gateway/upstreams/transport.py",
        "gateway/telemetry/names.py",
    }
    missing = []
    for module in MODULES:
        path = module.relative_to(ROOT)
        if module.name == "__init__.py" or str(path) in proved_whole:
            continue
        folder = ROOT / "tests" / path.parent.relative_to("gateway")
        if not list(folder.glob(f"test_{module.stem}*.py")):
            missing.append(str(path))
    assert missing == []
