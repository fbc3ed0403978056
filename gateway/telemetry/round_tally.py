"""Counts and times rounds in plain numbers, which become metrics when they are scraped; it knows no gateway.

There is a round with every call, and the library's own counters take a lock and
some checks for each number: here a round is one look-up and two additions.
"""

from bisect import bisect_left
from collections.abc import Container, Iterator
from itertools import accumulate
from typing import Final, TypeAlias

from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from gateway.telemetry.names import Outcome

_BOUNDS: Final = (
    0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0,
)  # fmt: skip
_EDGES: Final = [floatToGoString(bound) for bound in (*_BOUNDS, float("inf"))]  # type: ignore[no-untyped-call]

_Labels: TypeAlias = tuple[str | None, str | None, Outcome]


class _Series:
    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * len(_EDGES)
        self.seconds = 0.0


class RoundTally(Collector):
    """`holdfast_rounds_total` and `holdfast_round_seconds`. Labels outside the closed sets count as `other`."""

    def __init__(self, *, upstreams: Container[str], methods: Container[str], other: str) -> None:
        self._upstreams = upstreams
        self._methods = methods
        self._other = other
        self._series: dict[_Labels, _Series] = {}

    def add(self, upstream: str | None, method: str | None, outcome: Outcome, seconds: float) -> None:
        """One round is over."""
        series = self._series.get((upstream, method, outcome))
        if series is None:
            place = upstream if upstream in self._upstreams else self._other
            verb = method if method in self._methods else self._other
            series = self._series.setdefault((place, verb, outcome), _Series())
        series.buckets[bisect_left(_BOUNDS, seconds)] += 1
        series.seconds += seconds

    def collect(self) -> Iterator[Metric]:
        """What a scrape shows."""
        rounds = CounterMetricFamily(
            "holdfast_rounds", "Rounds answered.", labels=("upstream", "method", "outcome")
        )
        times = HistogramMetricFamily(
            "holdfast_round_seconds",
            "Time from a request's arrival to the end of its response.",
            labels=("upstream", "method"),
        )
        summed: dict[tuple[str, str], _Series] = {}
        for (place, verb, outcome), series in self._series.items():
            labels = (str(place), str(verb))
            rounds.add_metric((*labels, outcome.value), sum(series.buckets))
            total = summed.setdefault(labels, _Series())
            total.buckets = [one + other for one, other in zip(total.buckets, series.buckets, strict=True)]
            total.seconds += series.seconds
        for labels, total in summed.items():
            buckets = list(zip(_EDGES, map(float, accumulate(total.buckets)), strict=True))
            times.add_metric(labels, buckets, total.seconds)
        yield rounds
        yield times
