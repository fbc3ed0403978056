"""The image's recipe: linted, and held to what operators rely on. Builds nothing."""

import json
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

Instruction = tuple[str, str]


def instructions() -> list[Instruction]:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(word.upper(), rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def stages() -> list[list[Instruction]]:
    found: list[list[Instruction]] = []
    for instruction in instructions():
        if instruction[0] == "FROM":
            found.append([])
        found[-1].append(instruction)
    return found


def last(word: str) -> str:
    return [rest for name, rest in stages()[-1] if name == word][-1]


def test_hadolint_finds_nothing() -> None:
    binary = Path(sys.executable).with_name("hadolint")
    assert binary.is_file(), f"{binary} is missing: run tests/run"
    done = subprocess.run(
        [binary, "--no-color", ROOT / "Dockerfile"], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_what_builds_is_not_what_runs() -> None:
    build, run = stages()
    assert build[0] == ("FROM", "python:3.11-slim AS build")
    assert run[0] == ("FROM", "python:3.11-slim")
    assert not any("pip" in rest for name, rest in run if name == "RUN")


def test_the_user_is_a_number_so_that_kubernetes_can_see_that_it_is_not_root() -> None:
    assert last("USER") == "65532:65532"


def test_holdfast_is_process_one_and_gets_the_signals() -> None:
    assert json.loads(last("ENTRYPOINT")) == ["holdfast"]
    assert json.loads(last("CMD")) == ["serve", "--config", "/etc/holdfast/holdfast.yaml"]


def test_no_step_needs_a_shell() -> None:
    for name, rest in instructions():
        if name == "RUN":
            assert isinstance(json.loads(rest), list)


def test_every_dependency_is_checked_against_its_hash() -> None:
    installs = [json.loads(rest) for name, rest in instructions() if name == "RUN" and "install" in rest]
    locked, project = installs
    assert "--require-hashes" in locked
    assert locked[-2:] == ["-r", "requirements.lock"]
    assert project[-2:] == ["--no-deps", "."]


def test_no_variable_of_holdfast_is_baked_in() -> None:
    """Unknown HOLDFAST_* are errors, and known ones would overrule the configuration unseen."""
    assert not any("HOLDFAST_" in rest for name, rest in instructions() if name in {"ENV", "ARG"})


def copied() -> list[str]:
    copies = [rest.split() for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    return [source for words in copies for source in words[:-1]]


def test_only_what_the_image_is_made_of_enters_the_build() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert patterns[0] == "*"
    assert sorted(pattern[1:] for pattern in patterns if pattern.startswith("!")) == sorted(copied())
    assert any(fnmatch("gateway/wire/__pycache__", pattern) for pattern in patterns[1:])


@pytest.mark.parametrize("source", copied())
def test_what_the_dockerfile_copies_exists(source: str) -> None:
    assert (ROOT / source).exists()
