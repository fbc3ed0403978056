"""The house rules that a machine can check: what stands where, how long it is, and how it begins."""

import ast
import re
import subprocess
import sys
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


@pytest.mark.parametrize(
    "package",
    [path for path in MODULES if path.name == "__init__.py" and path.parent.name != "gateway"],
    ids=lambda path: path.parent.name,
)
def test_a_door_plate_names_only_what_is_behind_the_door(package: Path) -> None:
    """Ours: a plate that sends a newcomer to a file that is gone is worse than none."""
    plate = ast.get_docstring(ast.parse(package.read_text("utf-8"))) or ""
    named = {
        *re.findall(r"`([a-z_0-9]+)(?:\.\w+)?`", plate),
        *re.findall(r"^    (\w+) {2,}", plate, re.MULTILINE),
    }
    rooms = {path.parent.name for path in MODULES}
    assert {name for name in named - rooms if not (package.parent / f"{name}.py").exists()} == set()


def test_the_imports_keep_to_the_stairs() -> None:
    """Ours: DESIGN's layering; `pyproject.toml` has the contracts."""
    linter = Path(sys.executable).with_name("lint-imports")
    checked = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


# Modules whose own behaviour shows only when the whole runs, and the tests in which it does.
PROVED_BY = {
    "gateway/__main__.py": "tests/test_cli.py",
    "gateway/app.py": "tests/test_serving.py",
    "gateway/settings/fields.py": "tests/settings/test_model.py",
    "gateway/settings/upstream.py": "tests/settings/test_model.py",
    "gateway/errors.py": "tests/conversations/test_failures.py",
    "gateway/demo/legacy_tools.py": "tests/demo/test_legacy_server.py",
    "gateway/edge/doorway.py": "tests/edge/test_doors.py",
    "gateway/edge/metadata.py": "tests/conversations/test_login.py",
    "gateway/edge/refusals.py": "tests/conversations/test_login.py",
    "gateway/edge/turn.py": "tests/conversations/test_front_door.py",
    "gateway/relay/early_asks.py": "tests/conversations/test_odd_servers.py",
    "gateway/relay/speaker.py": "tests/relay/test_outbox.py",
    "gateway/reload.py": "tests/test_rotation.py",
    "gateway/settings/auth.py": "tests/settings/test_check_auth.py",
    "gateway/settings/identity.py": "tests/settings/test_check_auth.py",
    "gateway/settings/tls.py": "tests/settings/test_certificates.py",
    "gateway/edge/front.py": "tests/conversations/test_front_door.py",
    "gateway/edge/mcp.py": "tests/conversations/test_front_door.py",
    "gateway/edge/passthrough.py": "tests/conversations/test_legacy_clients.py",
    "gateway/edge/reply.py": "tests/conversations/test_rounds.py",
    "gateway/eras/states.py": "tests/eras/test_exchange_any_order.py",
    "gateway/eras/vocabulary.py": "tests/eras/test_exchange.py",
    "gateway/relay/driver.py": "tests/conversations/test_rounds.py",
    "gateway/relay/era.py": "tests/conversations/test_modern_upstream.py",
    "gateway/relay/greeter.py": "tests/conversations/test_sessions.py",
    "gateway/relay/handover.py": "tests/conversations/test_drain.py",
    "gateway/relay/holding.py": "tests/conversations/test_rounds.py",
    "gateway/relay/ladder.py": "tests/conversations/test_ladder.py",
    "gateway/relay/legacy_call.py": "tests/conversations/test_sessions.py",
    "gateway/relay/legacy_sessions.py": "tests/conversations/test_legacy_clients.py",
    "gateway/relay/legacy_streams.py": "tests/conversations/test_legacy_clients.py",
    "gateway/relay/machines.py": "tests/conversations/test_rounds.py",
    "gateway/edge/request_meta.py": "tests/edge/test_classify.py",
    "gateway/relay/passage.py": "tests/conversations/test_legacy_clients.py",
    "gateway/relay/passport.py": "tests/conversations/test_drain.py",
    "gateway/relay/passthrough.py": "tests/conversations/test_legacy_clients.py",
    "gateway/relay/probe.py": "tests/test_probe.py",
    "gateway/relay/probe_report.py": "tests/test_probe.py",
    "gateway/relay/relay.py": "tests/conversations/test_python_surface.py",
    "gateway/relay/upgrade.py": "tests/conversations/test_upgrades.py",
    "gateway/settings/check.py": "tests/settings/test_load.py",
    "gateway/settings/problems.py": "tests/settings/test_load.py",
    "gateway/stores/memory.py": "tests/stores/test_contract.py",
    "gateway/stores/protocol.py": "tests/stores/test_contract.py",
    "gateway/telemetry/names.py": "tests/telemetry/test_logs.py",
    "gateway/telemetry/plain_structlog.py": "tests/telemetry/test_logs.py",
    "gateway/telemetry/round_tally.py": "tests/telemetry/test_metrics.py",
    "gateway/telemetry/sink.py": "tests/telemetry/test_logs.py",
    "gateway/upstreams/era_probe.py": "tests/conversations/test_modern_upstream.py",
    "gateway/upstreams/forwarding.py": "tests/conversations/test_legacy_clients.py",
    "gateway/upstreams/http_refusals.py": "tests/upstreams/test_streamable_http_faults.py",
    "gateway/upstreams/transport.py": "tests/upstreams/test_streamable_http.py",
}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_has_tests_of_its_own_or_says_who_proves_it(module: Path) -> None:
    """Ours: tests mirror the rooms; what they cannot mirror is named."""
    path = module.relative_to(ROOT)
    if module.name == "__init__.py":
        return
    folder = ROOT / "tests" / path.parent.relative_to("gateway")
    mirrored = list(folder.glob(f"test_{module.stem}*.py"))
    named = PROVED_BY.get(str(path))
    assert mirrored or (named is not None and (ROOT / named).exists())


def test_nothing_is_named_that_is_gone() -> None:
    """Ours: the list above shrinks with the house."""
    assert [path for path in PROVED_BY if not (ROOT / path).exists()] == []
