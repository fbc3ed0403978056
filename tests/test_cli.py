"""The command: what it prints, and how it ends."""

import hashlib
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gateway import __version__
from gateway.cli import main
from gateway.settings.keys import decode_key
from gateway.settings.load import ConfigInvalid
from gateway.settings.model import Settings
from gateway.settings.problems import Problem

ROOT = Path(__file__).parents[1]
KEY = "5f" * 32
Serve = Callable[[Settings, object], int]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("HOLDFAST_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The application is not started; what it would be started with is kept."""
    seen: list[Settings] = []

    def serve(settings: Settings, _reread: object) -> int:
        seen.append(settings)
        return 0

    _replace_process(monkeypatch, serve)
    return seen


def _replace_process(monkeypatch: pytest.MonkeyPatch, serve: Serve) -> None:
    process: Any = ModuleType("gateway.process")
    process.serve = serve
    monkeypatch.setitem(sys.modules, "gateway.process", process)


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gateway", *arguments],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=5,
        check=False,
    )


def test_version_as_a_real_process() -> None:
    done = _run("version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"holdfast {__version__}\n", "")


def test_check_config_as_a_real_process(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("upstreams: {crm: {sessions: {mode: poled}}}\nlistne: h:1\n", encoding="utf-8")
    done = _run("check-config", str(file))
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"{file}: upstreams.crm.sessions.mode: should be 'auto', 'pooled', 'fresh' or 'affinity'",
        f"{file}: listne: unknown key; did you mean listen?",
        f"{file}: upstreams.crm.url: is required, unless there is a command",
    ]
    assert done.stderr == ""


def test_importing_the_command_costs_nothing_heavy() -> None:
    program = (
        "import sys, gateway.cli; "
        "print([name for name in ('aiohttp', 'pydantic', 'yaml', 'msgspec', 'cryptography', 'structlog', "
        "'prometheus_client', 'asyncio') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=5, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["serve"],
        ["serve", "--upstream", "http://h", "--config", "f"],
        ["serve", "--upstream", "ftp://h"],
        ["serve", "--upstream", "http://user:hunter2@h"],
        ["serve", "--upstream", "http://h", "--listen", "hunter2"],
        ["serve", "--upstream", "http://h", "--log-level", "loud"],
        ["serve", "--upstream", "http://h", "--upstream", "http://hunter2"],
        ["serve", "--upst", "http://h"],
        ["check-config"],
        ["version", "--verbose"],
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: holdfast" in (told := capsys.readouterr().err)
    assert "hunter2" not in told


def test_an_unknown_option_is_told_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Ours: the usage of the whole command names none of them."""
    with pytest.raises(SystemExit):
        main(["serve", "--upstream", "http://h", "--port", "80"])
    told = capsys.readouterr().err
    assert "--listen HOST:PORT" in told
    assert told.endswith("holdfast serve: error: unrecognized arguments: --port 80\n")


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"], ["--version"]])
def test_help_ends_with_0(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    assert "holdfast" in capsys.readouterr().out


@pytest.mark.parametrize("file", sorted((ROOT / "config").glob("*.yaml")), ids=lambda file: file.name)
def test_check_config_accepts_every_shipped_example(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "HOLDFAST_SEAL_KEY" in file.read_text(encoding="utf-8"):
        monkeypatch.setenv("HOLDFAST_SEAL_KEY", KEY)
    assert main(["check-config", str(file)]) == 0
    told = capsys.readouterr()
    assert told.out.startswith(f"{file}: OK\n")
    assert KEY not in told.out + told.err


def test_check_config_tells_every_error_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    monkeypatch.setenv("HOLDFAST_TYPO", "hunter2")
    file = tmp_path / "bad.yaml"
    file.write_text("sealing: {keys: ['${SECRET}']}\nlog: {}\nlog: {}\n", encoding="utf-8")
    assert main(["check-config", str(file)]) == 1
    told = capsys.readouterr().out
    places = [line.removeprefix(f"{file}: ").split(":")[0] for line in told.splitlines()]
    assert places == ["log", "HOLDFAST_TYPO", "sealing.keys[0]", "upstreams"]
    assert "hunter2" not in told


def test_check_config_shows_no_url_because_it_may_carry_a_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "good.yaml"
    file.write_text("upstreams: {crm: {url: 'http://h/mcp?token=hunter2'}}", encoding="utf-8")
    assert main(["check-config", str(file)]) == 0
    assert capsys.readouterr().out == (
        f"{file}: OK\n"
        "  listen    127.0.0.1:8080\n"
        "  sealing   no keys: a random one at each start\n"
        "  upstream  crm at /mcp\n"
    )


def test_check_config_of_no_file_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-config", str(tmp_path / "absent")]) == 1
    assert capsys.readouterr().out == f"{tmp_path / 'absent'}: cannot be read: No such file or directory\n"


def test_schema_prints_the_published_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert capsys.readouterr().out == (ROOT / "config/holdfast.schema.json").read_text(encoding="utf-8")


def test_keygen_prints_a_new_key_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keygen"]) == 0
    assert main(["keygen"]) == 0
    one, other = capsys.readouterr().out.split()
    assert one != other
    assert len(decode_key(one)) == len(decode_key(other)) == 32


def test_serve_without_a_file(served: list[Settings], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SEALING__KEYS", KEY)
    arguments = [
        "--upstream",
        "http://h/mcp",
        "--listen",
        "[::1]:1",
        "--admin",
        "h:2",
        "--log-level",
        "debug",
    ]
    assert main(["serve", *arguments]) == 0
    [settings] = served
    assert settings.upstreams["default"].url == "http://h/mcp"
    assert (str(settings.listen), str(settings.admin), settings.log.level) == ("[::1]:1", "h:2", "debug")
    assert settings.sealing.keys[0].get_secret_value() == KEY


def test_serve_with_a_file_and_options_over_it(served: list[Settings], tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text("listen: h:1\nadmin: h:2\nupstreams: {crm: {url: 'http://h'}}", encoding="utf-8")
    assert main(["serve", "--config", str(file), "--listen", "h:3"]) == 0
    [settings] = served
    assert (str(settings.listen), str(settings.admin)) == ("h:3", "h:2")


def test_serve_with_a_wrong_file_does_not_start(
    served: list[Settings], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f.yaml"
    file.write_text("log: {level: loud}", encoding="utf-8")
    assert main(["serve", "--config", str(file)]) == 1
    assert served == []
    assert capsys.readouterr().err.splitlines() == [
        f"{file}: upstreams: is required",
        f"{file}: log.level: should be 'debug', 'info', 'warning' or 'error'",
    ]


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (
            OSError(98, "Address already in use"),
            "holdfast: cannot start: [Errno 98] Address already in use\n",
        ),
        (
            ConfigInvalid([Problem("sealing.keys_file", "cannot be read")]),
            "holdfast: sealing.keys_file: cannot be read\n",
        ),
    ],
)
def test_a_failed_start_is_one_line_and_1(
    failure: Exception, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def serve(_: Settings, _reread: object) -> int:
        raise failure

    _replace_process(monkeypatch, serve)
    assert main(["serve", "--upstream", "http://h"]) == 1
    assert capsys.readouterr().err == told


def test_the_application_s_exit_code_is_the_command_s(monkeypatch: pytest.MonkeyPatch) -> None:
    _replace_process(monkeypatch, lambda *_: 3)
    assert main(["serve", "--upstream", "http://h"]) == 3


@pytest.mark.parametrize(
    "command", [["schema"], ["keygen"], ["version"], ["check-config", "config/minimal.yaml"]]
)
def test_one_who_reads_no_further_gets_no_traceback(command: list[str]) -> None:
    """Ours: `holdfast schema | head`. As a shell counts a program that ended of a broken pipe."""
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "gateway", *command],
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin"},
            stdout=theirs,
            stderr=subprocess.PIPE,
            text=True,
            timeout=5,
            check=False,
        )
    finally:
        os.close(theirs)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("command", [["schema"], ["version"]])
def test_a_full_disk_is_told_in_a_line(command: list[str]) -> None:
    """Ours: `holdfast schema > FILE`."""
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "gateway", *command],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=20,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "holdfast: No space left on device\n")


@pytest.mark.parametrize("command", [["version"], ["check-config", "config/minimal.yaml"], ["hash-key"]])
@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_it_needs_no_standard_streams(command: list[str], closed: str) -> None:
    """Ours: some supervisors start programs without; then there is nobody to print to, and no reason to fail."""
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "gateway", *command],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=20,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_missing_library_is_told_in_a_line(tmp_path: Path) -> None:
    """Ours: `pip install .` leaves out what only replicas need; a traceback hid what to install."""
    file = tmp_path / "f.yaml"
    text = f"store: redis://h\nsealing: {{keys: [{KEY}]}}\nupstreams: {{crm: {{url: 'http://h'}}}}"
    file.write_text(text, encoding="utf-8")
    program = (
        "import sys; sys.modules['redis.asyncio'] = None; from gateway.cli import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "serve", "--config", str(file)],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == f"{file}: store: needs the Redis library: pip install 'redis[hiredis]>=5.2'\n"


def test_ctrl_c_is_not_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(_: Settings, _reread: object) -> int:
        raise KeyboardInterrupt

    _replace_process(monkeypatch, serve)
    assert main(["serve", "--upstream", "http://h"]) == 130


@pytest.mark.parametrize(("arguments", "serve"), [([], False), (["--serve"], True)])
def test_demo_runs_the_walk_through(
    arguments: list[str], serve: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[dict[str, Any]] = []

    def run(**options: Any) -> int:
        calls.append(options)
        return 4

    walkthrough: Any = ModuleType("gateway.demo.walkthrough")
    walkthrough.run = run
    monkeypatch.setitem(sys.modules, "gateway.demo.walkthrough", walkthrough)
    assert main(["demo", *arguments]) == 4
    assert calls == [{"serve": serve}]


def test_hash_key_makes_a_key_and_its_hash(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Issue: keys hashed in configuration, with a helper."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert main(["hash-key"]) == 0
    key, digest = (line.split()[1] for line in capsys.readouterr().out.splitlines())
    assert len(key) >= 43
    assert hashlib.sha256(key.encode()).hexdigest() == digest


def test_hash_key_hashes_a_key_and_does_not_show_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours: read from standard input: an argument would be in everybody's list of processes."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("a-key-of-somebody-else-0123456789\n"))
    assert main(["hash-key"]) == 0
    digest = hashlib.sha256(b"a-key-of-somebody-else-0123456789").hexdigest()
    assert capsys.readouterr().out == f"hash  {digest}\n"


def test_hash_key_refuses_what_can_be_guessed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours: the hash is a fast one, so the key must be a long one."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("hunter2\n"))
    assert main(["hash-key"]) == 1
    assert "hunter2" not in "".join(capsys.readouterr())
