"""Numbers about replicas: rungs, letters, and whether the store is there."""

from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import LetterKind, Rung


def _value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"holdfast_{name}", labels)


def test_rounds_are_counted_by_the_rung_that_found_their_exchange() -> None:
    metrics = Metrics(version="0", upstreams=["crm"])
    metrics.round_found("crm", Rung.ROUTED)
    metrics.round_found("crm", Rung.ROUTED)
    metrics.round_found("no upstream of ours", Rung.LIVE)
    assert _value(metrics, "rounds_by_rung_total", upstream="crm", rung="routed") == 2
    assert _value(metrics, "rounds_by_rung_total", upstream="other", rung="live") == 1


def test_letters_are_counted_by_kind() -> None:
    metrics = Metrics(version="0", upstreams=[])
    metrics.letter_sent(LetterKind.SAID)
    assert _value(metrics, "letters_total", kind="said") == 1


def test_the_store_is_there_unless_it_says_otherwise() -> None:
    metrics = Metrics(version="0", upstreams=[])
    assert _value(metrics, "store_available") == 1
    is_available = [False]
    metrics.watch_store(lambda: is_available[0])
    assert _value(metrics, "store_available") == 0
    is_available[0] = True
    assert _value(metrics, "store_available") == 1
