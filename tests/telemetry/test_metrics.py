"""Numbers as a scraper sees them, and labels that no peer can make grow."""

import pytest

from gateway.errors import UpstreamTimedOut
from gateway.telemetry.metrics import METHODS, Metrics
from gateway.telemetry.names import AskDisposition, AskKind, HandshakeOutcome, HoldEnd, Outcome, SessionState


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(version="1.2.3", upstreams=["crm", "wiki"])


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"holdfast_{name}", labels)


def series(metrics: Metrics, name: str) -> int:
    return sum(
        1
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == f"holdfast_{name}"
    )


def test_a_round_is_counted_and_timed(metrics: Metrics) -> None:
    metrics.round_finished("crm", "tools/call", Outcome.INPUT_REQUIRED, 0.03)
    metrics.round_finished("crm", "tools/call", Outcome.COMPLETE, 0.3)
    labels = {"upstream": "crm", "method": "tools/call"}
    assert value(metrics, "rounds_total", **labels, outcome="input_required") == 1
    assert value(metrics, "rounds_total", **labels, outcome="complete") == 1
    assert value(metrics, "round_seconds_count", **labels) == 2
    assert value(metrics, "round_seconds_sum", **labels) == pytest.approx(0.33)
    assert value(metrics, "round_seconds_bucket", **labels, le="0.05") == 1


def test_methods_and_upstreams_that_we_do_not_know_share_one_series(metrics: Metrics) -> None:
    for number in range(200):
        metrics.round_finished(f"u{number}", f"evil/{number}", Outcome.REFUSED, 0.001)
    metrics.round_finished(None, None, Outcome.REFUSED, 0.001)
    assert series(metrics, "rounds_total") == 1
    assert value(metrics, "rounds_total", upstream="other", method="other", outcome="refused") == 201


def test_every_method_that_the_gateway_serves_has_a_label(metrics: Metrics) -> None:
    for method in METHODS:
        metrics.round_finished("crm", method, Outcome.COMPLETE, 0.001)
    assert series(metrics, "rounds_total") == len(METHODS)


def test_reasons_are_cut_off_when_they_are_not_words_of_ours(metrics: Metrics) -> None:
    metrics.upstream_error("crm", UpstreamTimedOut.reason)
    metrics.upstream_error("crm", "HTTP 500: <html>")
    for number in range(500):
        metrics.state_rejected("crm", f"why_{number}")
    assert value(metrics, "upstream_errors_total", upstream="crm", reason="upstream_timed_out") == 1
    assert value(metrics, "upstream_errors_total", upstream="crm", reason="other") == 1
    assert series(metrics, "state_rejected_total") == 33
    assert value(metrics, "state_rejected_total", upstream="crm", why="other") == 500 - 32


def test_holds_are_counted_while_open_and_timed_when_they_end(metrics: Metrics) -> None:
    assert value(metrics, "holds_open", upstream="crm") == 0
    metrics.hold_opened("crm")
    metrics.hold_opened("crm")
    metrics.hold_ended("crm", HoldEnd.ANSWERED, 12.0)
    assert value(metrics, "holds_open", upstream="crm") == 1
    assert value(metrics, "holds_total", upstream="crm", end="answered") == 1
    assert value(metrics, "hold_seconds_bucket", upstream="crm", le="30.0") == 1


def test_sessions_are_counted_by_state_at_each_scrape(metrics: Metrics) -> None:
    """Ours: the pool is asked, so that the gauge cannot drift from what there is."""

    def states() -> dict[str, float | None]:
        return {state: value(metrics, "sessions", upstream="crm", state=state) for state in SessionState}

    assert set(states().values()) == {0}
    there = {SessionState.OPENING: 1, SessionState.IDLE: 2, SessionState.LEASED: 3, SessionState.HELD: 4}
    metrics.watch_sessions("crm", lambda: there)
    assert states() == there
    there[SessionState.HELD] = 0
    assert states() == there


def test_asks_and_handshakes_are_counted(metrics: Metrics) -> None:
    metrics.ask("crm", AskKind.ELICITATION, AskDisposition.RELAYED)
    metrics.handshake("wiki", HandshakeOutcome.UNREACHABLE)
    assert value(metrics, "asks_total", upstream="crm", kind="elicitation", disposition="relayed") == 1
    assert value(metrics, "handshakes_total", upstream="wiki", outcome="unreachable") == 1


def test_those_who_listen_are_counted_from_zero_on(metrics: Metrics) -> None:
    assert value(metrics, "subscriptions_open", upstream="wiki") == 0
    metrics.subscriptions("crm", 3)
    metrics.subscriptions("crm", 2)
    assert value(metrics, "subscriptions_open", upstream="crm") == 2


def test_readiness_is_asked_for_at_each_scrape(metrics: Metrics) -> None:
    answers = [True, False]
    metrics.watch_ready(lambda: answers.pop(0))
    assert value(metrics, "ready") == 1
    assert value(metrics, "ready") == 0


def test_the_exposition_is_text_with_the_build_and_the_process(metrics: Metrics) -> None:
    body, content_type = metrics.exposition()
    assert content_type.startswith("text/plain")
    assert b'holdfast_build_info{version="1.2.3"} 1.0' in body
    assert b"process_resident_memory_bytes" in body
    assert b"_created" not in body


def test_openmetrics_is_given_to_those_who_ask(metrics: Metrics) -> None:
    body, content_type = metrics.exposition("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


def test_two_gateways_in_one_process_do_not_mix(metrics: Metrics) -> None:
    other = Metrics(version="1.2.3", upstreams=["crm"])
    metrics.hold_opened("crm")
    assert value(other, "holds_open", upstream="crm") == 0
