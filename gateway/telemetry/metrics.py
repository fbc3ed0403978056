"""Every metric, with its labels kept within bounds; it knows nothing about who measures.

A label value chosen by a peer would let that peer fill our memory, so each
label is either a closed set (`names`), a configured name, or cut off after a
fixed number of distinct values: what does not fit is counted as `other`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

from gateway.telemetry.names import (
    AskDisposition,
    AskKind,
    DoorRefusal,
    HandshakeOutcome,
    HoldEnd,
    LetterKind,
    Outcome,
    Rung,
    SessionState,
)
from gateway.telemetry.round_tally import RoundTally

OTHER: Final = "other"

METHODS: Final = frozenset(
    {"server/discover", "tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list",
     "resources/templates/list", "resources/read", "completion/complete", "subscriptions/listen",
     "tasks/get", "tasks/update", "tasks/cancel", "initialize", "ping"},
)  # fmt: skip

# Held means that a person thinks: seconds to an hour.
_HOLD_BUCKETS: Final = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)

_MAX_WORDS: Final = 32
_WORD: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")

# A `_created` series next to each counter doubles what is scraped and is read by nobody.
disable_created_metrics()  # type: ignore[no-untyped-call]


class _Words:
    """A label of words that our own code chooses, cut off should a peer's text ever get into it."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def __call__(self, word: str) -> str:
        if word in self._known:
            return word
        if len(self._known) >= _MAX_WORDS or _WORD.fullmatch(word) is None:
            return OTHER
        self._known.add(word)
        return word


class Metrics:
    """All numbers of one gateway, in a registry of their own: two gateways in a process do not mix."""

    def __init__(self, *, version: str, upstreams: Iterable[str]) -> None:
        self.registry: Final = CollectorRegistry(auto_describe=True)
        self._upstreams = frozenset(upstreams)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"holdfast_{name}", text, labels, registry=self.registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"holdfast_{name}", text, labels, registry=self.registry)

        self._rounds = RoundTally(upstreams=self._upstreams, methods=METHODS, other=OTHER)
        self.registry.register(self._rounds)
        self._asks = counter(
            "asks_total",
            "Questions of legacy servers, by what became of them.",
            "upstream",
            "kind",
            "disposition",
        )
        self._holds_open = gauge("holds_open", "Exchanges parked while a client gathers answers.", "upstream")
        self._subscriptions = gauge("subscriptions_open", "Clients that listen for changes.", "upstream")
        self._holds = counter("holds_total", "Holds ended, by why.", "upstream", "end")
        self._hold_seconds = Histogram(
            "holdfast_hold_seconds",
            "Time that exchanges were parked.",
            ("upstream",),
            buckets=_HOLD_BUCKETS,
            registry=self.registry,
        )
        self._sessions = gauge("sessions", "Legacy sessions, by what they are doing.", "upstream", "state")
        self._handshakes = counter(
            "handshakes_total", "Attempts to open a legacy session.", "upstream", "outcome"
        )
        self._circuit = gauge(
            "circuit_open", "1 while calls are refused because the upstream cannot be reached.", "upstream"
        )
        self._state_rejected = counter(
            "state_rejected_total", "Echoed requestState that did not verify, by why.", "upstream", "why"
        )
        self._upstream_errors = counter(
            "upstream_errors_total", "Failures of upstreams.", "upstream", "reason"
        )
        self._rungs = counter(
            "rounds_by_rung_total",
            "Rounds of calls, by how they found their exchange.",
            "upstream",
            "rung",
        )
        self._turned_away = counter(
            "turned_away_total", "Clients turned away before their request belonged to any upstream.", "why"
        )
        self._letters = counter("letters_total", "Letters to other replicas.", "kind")
        self._store_available = gauge("store_available", "1 if the store was reached when last tried.")
        self._store_available.set(1)
        self._ready = gauge("ready", "1 if /readyz says so.")
        gauge("build_info", "Always 1; the labels say which build this is.", "version").labels(version).set(1)

        self._whys = _Words()
        self._reasons = _Words()
        # Gauges begin at zero: a series that is absent reads like one that was never scraped.
        for name in self._upstreams:
            self._holds_open.labels(name).set(0)
            self._circuit.labels(name).set(0)
            self._subscriptions.labels(name).set(0)
            for state in SessionState:
                self._sessions.labels(name, state.value).set(0)

    def round_finished(
        self, upstream: str | None, method: str | None, outcome: Outcome, seconds: float
    ) -> None:
        """One round is over."""
        self._rounds.add(upstream, method, outcome, seconds)

    def ask(self, upstream: str, kind: AskKind, disposition: AskDisposition) -> None:
        """Something became of an ask."""
        self._asks.labels(self._place(upstream), kind.value, disposition.value).inc()

    def hold_opened(self, upstream: str) -> None:
        """An exchange was parked."""
        self._holds_open.labels(self._place(upstream)).inc()

    def hold_ended(self, upstream: str, end: HoldEnd, seconds: float) -> None:
        """A parked exchange went on, or never will."""
        place = self._place(upstream)
        self._holds_open.labels(place).dec()
        self._holds.labels(place, end.value).inc()
        self._hold_seconds.labels(place).observe(seconds)

    def subscriptions(self, upstream: str, count: int) -> None:
        """So many clients listen now."""
        self._subscriptions.labels(self._place(upstream)).set(count)

    def watch_sessions(self, upstream: str, states: Callable[[], Mapping[SessionState, int]]) -> None:
        """Have the upstream's sessions counted at each scrape: a count kept beside them could drift from them."""
        for state in SessionState:
            counted = partial(_count_of, states, state)
            self._sessions.labels(self._place(upstream), state.value).set_function(counted)

    def handshake(self, upstream: str, outcome: HandshakeOutcome) -> None:
        """An attempt to open a session ended."""
        self._handshakes.labels(self._place(upstream), outcome.value).inc()

    def circuit(self, upstream: str, *, is_open: bool) -> None:
        """The upstream is left alone for a while, or is not any more."""
        self._circuit.labels(self._place(upstream)).set(is_open)

    def turned_away(self, why: DoorRefusal) -> None:
        """Count a client that spoke no HTTP, named no endpoint, or was one too many."""
        self._turned_away.labels(why.value).inc()

    def state_rejected(self, upstream: str, why: str) -> None:
        """An echoed `requestState` did not verify; `why` is a snake_case word, else it counts as `other`."""
        self._state_rejected.labels(self._place(upstream), self._whys(why)).inc()

    def round_found(self, upstream: str, rung: Rung) -> None:
        """A round of a call has found its exchange, or never will (`refused`)."""
        self._rungs.labels(self._place(upstream), rung.value).inc()

    def letter_sent(self, kind: LetterKind) -> None:
        """A letter to another replica was taken by the store."""
        self._letters.labels(kind.value).inc()

    def upstream_error(self, upstream: str, reason: str) -> None:
        """An upstream failed; `reason` is `GatewayError.reason`."""
        self._upstream_errors.labels(self._place(upstream), self._reasons(reason)).inc()

    def watch_ready(self, is_ready: Callable[[], bool]) -> None:
        """Have readiness asked for at each scrape, so that gauge and `/readyz` cannot disagree."""
        self._ready.set_function(lambda: float(is_ready()))

    def watch_store(self, is_available: Callable[[], bool]) -> None:
        """Have the store's state asked for at each scrape."""
        self._store_available.set_function(lambda: float(is_available()))

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """The scrape as bytes and their content type, in the format that the scraper asked for."""
        from prometheus_client.exposition import choose_encoder  # noqa: PLC0415 - most processes are never scraped

        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    def _place(self, upstream: str) -> str:
        return upstream if upstream in self._upstreams else OTHER


def _count_of(states: Callable[[], Mapping[SessionState, int]], state: SessionState) -> float:
    return float(states()[state])
