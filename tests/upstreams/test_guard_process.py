"""The guard's own program: it needs nothing of the gateway, and starts fast."""

import ast
import subprocess
import sys
from pathlib import Path

from gateway.upstreams import guard_process

PROGRAM = Path(guard_process.__file__)


def test_it_imports_only_the_standard_library() -> None:
    """It runs with `-I -S`: there is no site, and no gateway on the path."""
    tree = ast.parse(PROGRAM.read_text("utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


def test_it_ends_with_its_input_and_groups_that_are_gone_do_not_trouble_it() -> None:
    words = b"+999999999\n-5\n+999999998\n-999999998\n"
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(PROGRAM), "A=b"],
        input=words,
        capture_output=True,
        timeout=10,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
