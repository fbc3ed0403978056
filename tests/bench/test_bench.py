"""The parts of the benchmark, each seen to work before its numbers are believed. Nothing here is timed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench import report as reports
from tests.bench.holdfast import holdfast
from tests.bench.http1 import dechunk
from tests.bench.processes import BenchFailed, Process, started, started_on_port, wait_until_ready
from tests.bench.scenarios import HoldsLevel, HoldsRun, Measurement, Report

ROOT: Final = Path(__file__).parents[2]


@pytest.fixture
def log(tmp_path: Path) -> Any:
    with (tmp_path / "log").open("w+b") as log:
        yield log


def drive(
    driver: Process, op: str, *urls: str, seconds: float = 0.2, modern: bool = False, **more: Any
) -> Any:
    return driver.command(
        op=op, urls=urls, modern=modern, concurrency=4, seconds=seconds, limit_seconds=10, **more
    )


# --- the peers --------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["sse", "json"])
def test_plain_calls_and_questions_work_directly_and_through_the_bare_proxy(
    answer: str, log: IO[bytes]
) -> None:
    legacy = ("legacy", "-m", "tests.bench.legacy", "--answer", answer)
    with (
        started_on_port(*legacy, log=log) as (_, url),
        started_on_port("bare", "-m", "tests.bench.bare", url, log=log) as (bare, bare_url),
        started("driver", "-m", "tests.bench.driver", log=log) as driver,
    ):
        for endpoint in (url, bare_url):
            for op in ("load", "ask"):
                found = drive(driver, op, endpoint)
                assert found["calls"] > 0
                assert (found["faults"], found["first_fault"], found["mixed_up"]) == (0, None, 0)
                assert 0 < found["p50_ms"] <= found["p99_ms"]
        assert bare.usage().rss_bytes > 0


def test_calls_are_spread_over_the_addresses_of_the_server_and_each_answer_finds_its_own(
    tmp_path: Path, log: IO[bytes]
) -> None:
    """Ours: one address has too few ports for the streams of all holds."""
    with (
        started_on_port("legacy", "-m", "tests.bench.legacy", "--addresses", "2", log=log) as (_, url),
        holdfast(url, tmp_path, holds=10, log_level="info", log=log, addresses=2) as gateway,
        started("driver", "-m", "tests.bench.driver", log=log) as driver,
    ):
        urls = [target.url for target in gateway.by_address]
        held = drive(driver, "hold", *urls, modern=True, count=7)
        released = drive(driver, "release", *urls, modern=True)

    assert len(set(urls)) == 2
    assert (held["held"], held["faults"]) == (7, 0)
    assert (released["calls"], released["faults"], released["mixed_up"]) == (7, 0, 0)


def test_calls_that_fail_are_faults_and_not_calls_that_went_well(log: IO[bytes]) -> None:
    """A modern request at a legacy server: 404, unknown session."""
    with (
        started_on_port("legacy", "-m", "tests.bench.legacy", log=log) as (_, url),
        started("driver", "-m", "tests.bench.driver", log=log) as driver,
    ):
        found = drive(driver, "hold", url, modern=True, count=3)

    assert (found["calls"], found["held"], found["faults"]) == (0, 0, 3)


def test_a_process_that_dies_fails_the_run_and_does_not_hang_it(log: IO[bytes]) -> None:
    with (
        started("driver", "-c", "raise SystemExit(3)", log=log) as process,
        pytest.raises(BenchFailed, match="died"),
    ):
        process.line(5)
    with (
        started("gateway", "-c", "raise SystemExit(3)", log=log, is_spoken_to=False) as process,
        pytest.raises(BenchFailed, match="died while starting"),
    ):
        wait_until_ready(process, "http://127.0.0.1:9/readyz")


@given(st.lists(st.binary(min_size=1, max_size=50)), st.integers(min_value=0))
def test_a_chunked_body_is_whole_only_when_its_last_chunk_is_there(parts: list[bytes], cut: int) -> None:
    data = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"

    assert dechunk(data) == b"".join(parts)
    # Up to the last chunk's own line, nothing short of it counts as the end.
    assert dechunk(data[: cut % (len(data) - 4)]) is None


# --- the whole command --------------------------------------------------------------


def test_the_command_measures_the_gateway_and_prints_json() -> None:
    command = [
        sys.executable,
        "-m",
        "tests.bench",
        "--json",
        "--seconds",
        "0.2",
        "--rounds",
        "1",
        "--answers",
        "sse",
    ]
    done = subprocess.run(
        [*command, "ask"], cwd=ROOT, capture_output=True, text=True, timeout=50, check=False
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["measurements"]
    assert [one["proxy"] for one in found] == ["bare", "holdfast", "holdfast, settle 0"]
    assert all(one["per_second"] > 0 and not one["faults"] and not one["mixed_up"] for one in found)


def test_answers_at_another_gateway_are_measured_beside_those_at_the_one_that_holds() -> None:
    command = [sys.executable, "-m", "tests.bench", "--json", "--seconds", "0.1", "--rounds", "1", "routed"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=50, check=False)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["measurements"]
    assert [one["proxy"] for one in found] == ["live", "routed"] * 2
    assert all(one["per_second"] > 0 and not one["faults"] and not one["mixed_up"] for one in found)


def test_an_unknown_scenario_is_wrong_usage() -> None:
    command = [sys.executable, "-m", "tests.bench", "nonsense"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, timeout=20, check=False).returncode == 2


# --- the report -----------------------------------------------------------------------


def measured(proxy: str, per_second: float, concurrency: int = 16, *, p50: float = 1.0) -> Measurement:
    return Measurement("echo, SSE answers", concurrency, proxy, per_second, p50, 2.0, 0.1, 50 << 20, 0, 0)


def level(held: int, kib: float, *, p99: float = 5.0) -> HoldsLevel:
    return HoldsLevel(held, kib * 1024, 1.0, 0.2, 500.0, held + 50, 1000.0, 2.0, p99, 5.0, 0.1)


def held(*, kib: float = 20.0, p99: float = 5.0, answered: int = 100, mixed_up: int = 0) -> HoldsRun:
    levels = [level(0, 0), level(50, kib), level(100, kib, p99=p99)]
    return HoldsRun(
        get_is_stream=False,
        addresses=1,
        wanted=100,
        levels=levels,
        answered=answered,
        mixed_up=mixed_up,
        faults=0,
        first_fault=None,
        answer_ms_cpu=0.5,
        answered_per_second=900.0,
        rss_after_bytes=60 << 20,
        open_files_after=50,
    )


def missed(report: Report) -> list[str]:
    return [goal.text for goal in reports.goals(report) if not goal.is_met]


def test_a_report_that_reaches_everything_says_so() -> None:
    report = Report({}, [measured("bare", 1000), measured("holdfast", 700)], [held()], [0.5])

    assert missed(report) == []
    assert len(reports.goals(report)) == 6


@pytest.mark.parametrize(
    ("report", "goal"),
    [
        (Report({}, [measured("bare", 1000), measured("holdfast", 690)]), "0.70 x bare"),
        (Report({}, [measured("bare", 1000)]), "0.70 x bare"),
        (Report({}, [measured("live", 900), measured("routed", 290, p50=3.1)]), "3 x a live one"),
        (Report({}, [measured("live", 900)]), "3 x a live one"),
        (Report({}, holds=[held(kib=25.1)]), "25 KiB"),
        (Report({}, holds=[held(p99=7.6)]), "1.5 x"),
        (Report({}, holds=[held(mixed_up=1)]), "none mixed up"),
        (Report({}, holds=[held(answered=99)]), "all answered"),
        (Report({}, seconds_to_ready=[0.2, 1.1, 1.2]), "< 1 s"),
    ],
)
def test_each_goal_can_be_missed(report: Report, goal: str) -> None:
    [text] = missed(report)
    assert goal in text


def test_the_same_findings_are_text_markdown_and_json() -> None:
    report = Report({"cores": "2"}, [measured("bare", 1000), measured("holdfast", 712)], [held()], [0.5])

    assert "0.71" in reports.as_text(report)
    assert "| echo, SSE answers | 16 | holdfast | 712 | 0.71 |" in reports.as_markdown(report)
    assert json.loads(reports.as_json(report))["measurements"][1]["per_second"] == 712
