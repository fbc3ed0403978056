"""What bandit has to say of the gateway: nothing, or a reason stands where it would."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_EXCUSED = re.compile(r"#\s*nosec\b(?P<rest>.*)")
_REASONED = re.compile(r"(?: B\d{3},?)+  # \S")


def test_bandit_finds_nothing() -> None:
    """Ours: every severity and confidence counts; what is meant is excused in its line, by its number."""
    command = [sys.executable, "-m", "bandit", "-r", "gateway", "-q", "--severity-level", "all"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stdout + checked.stderr


def test_an_excuse_names_what_it_excuses_and_why() -> None:
    """Ours: a bare `nosec` would excuse everything that its line will ever do."""
    excuses = [
        (module.name, excuse["rest"])
        for module in sorted((ROOT / "gateway").rglob("*.py"))
        for excuse in _EXCUSED.finditer(module.read_text("utf-8"))
    ]
    assert excuses, "the guard's process is one"
    assert [excuse for excuse in excuses if not _REASONED.match(excuse[1])] == []
