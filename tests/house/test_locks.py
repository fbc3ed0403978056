"""The lock files say what pyproject.toml and the peers' lists say, and nothing about where anything comes from."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "tests" / "peers"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

RUNTIME = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["speed"]]
DEVELOPMENT = [*RUNTIME, *PROJECT["dependency-groups"]["dev"]]
PYTHON_LOCKS = [ROOT / "requirements.lock", *sorted(PEERS.glob("*.lock"))]
NODE_LOCKS = sorted(PEERS.glob("node/*/package-lock.json"))


def _pins(lock: Path) -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==([^ ;\\]+)", lock.read_text("utf-8"), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def _lines(source: Path) -> list[str]:
    return [line for line in source.read_text("utf-8").splitlines() if line and not line.startswith("#")]


def _sources() -> list[tuple[Path, list[str]]]:
    peers = [(source.with_suffix(".lock"), _lines(source)) for source in sorted(PEERS.glob("*.in"))]
    return [(ROOT / "requirements.lock", RUNTIME), (PEERS / "dev.lock", DEVELOPMENT), *peers]


@pytest.mark.parametrize(("lock", "wanted"), _sources(), ids=lambda value: getattr(value, "name", ""))
def test_a_lock_pins_what_its_source_asks_for(lock: Path, wanted: list[str]) -> None:
    """After a change of dependencies: `bash tests/peers/lock`."""
    pins = _pins(lock)
    for line in wanted:
        requirement = Requirement(line)
        pinned = pins.get(canonicalize_name(requirement.name))
        assert pinned is not None, f"{requirement.name} is not in {lock.name}"
        assert requirement.specifier.contains(pinned, prereleases=True), (
            f"{line}, but {lock.name} has {pinned}"
        )


def test_the_tests_run_on_the_versions_that_the_image_installs() -> None:
    image, tests = _pins(ROOT / "requirements.lock"), _pins(PEERS / "dev.lock")
    assert {name: tests.get(name) for name in image} == image


@pytest.mark.parametrize("lock", PYTHON_LOCKS, ids=lambda path: path.name)
def test_every_python_pin_has_its_hashes_and_no_address(lock: Path) -> None:
    text = lock.read_text("utf-8")
    assert "://" not in text
    assert "--index" not in text
    entries = re.split(r"^(?=[\w.-]+(?:\[[^\]]*\])?==)", text, flags=re.MULTILINE)[1:]
    assert len(entries) >= 1
    assert all("--hash=sha256:" in entry for entry in entries)


@pytest.mark.parametrize("lock", NODE_LOCKS, ids=lambda path: path.parent.name)
def test_every_node_pin_has_its_integrity_and_no_address(lock: Path) -> None:
    text = lock.read_text("utf-8")
    assert "://" not in text
    packages: dict[str, dict[str, Any]] = json.loads(text)["packages"]
    manifest = json.loads((lock.parent / "package.json").read_text("utf-8"))
    assert packages[""].get("dependencies") == manifest.get("dependencies")
    assert all("integrity" in entry or entry.get("inBundle") for name, entry in packages.items() if name)
