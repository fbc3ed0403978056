"""How often callers may call: token buckets, per caller and for all together. Takes a clock; knows no HTTP.

A bucket holds up to `burst` tokens and gets `rate` of them back per second; a
request takes one. A refused request takes none, from neither bucket. Buckets
are kept for the callers seen last; one that was forgotten is full again, which
is what `total` is for: whoever can invent names is bounded by that.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from gateway.settings.upstream import Rate

MOST_BUCKETS: Final = 10_000
"""About 2 MiB. The caller not seen for longest is forgotten first."""


class Bucket:
    """One bucket, full at first."""

    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._at = now

    def wait(self, now: float) -> float:
        """Seconds until there is a token; 0: there is one."""
        elapsed = max(0.0, now - self._at)
        self._at = max(self._at, now)
        self._tokens = min(self._burst, self._tokens + elapsed * self._rate)
        return 0.0 if self._tokens >= 1.0 else (1.0 - self._tokens) / self._rate

    def take(self) -> None:
        """Take the token that `wait` has found."""
        self._tokens -= 1.0


class RateLimit:
    """The limits of one upstream."""

    def __init__(self, settings: Rate, now: Callable[[], float]) -> None:
        self._settings = settings
        self._now = now
        self._total = self._bucket(settings.total, settings.total_burst)
        self._callers: OrderedDict[str, Bucket] = OrderedDict()

    @property
    def is_on(self) -> bool:
        """Is there any limit?"""
        return self._total is not None or self._settings.per_principal is not None

    @property
    def known(self) -> int:
        """How many callers have a bucket."""
        return len(self._callers)

    def wait(self, caller: str) -> float:
        """Let this caller's request pass (0), or say after how many seconds to try again; then nothing was taken."""
        now = self._now()
        buckets = [bucket for bucket in (self._total, self._bucket_of(caller)) if bucket is not None]
        seconds = max((bucket.wait(now) for bucket in buckets), default=0.0)
        if seconds == 0.0:
            for bucket in buckets:
                bucket.take()
        return seconds

    def _bucket_of(self, caller: str) -> Bucket | None:
        bucket = self._callers.get(caller)
        if bucket is None:
            bucket = self._bucket(self._settings.per_principal, self._settings.burst)
            if bucket is None:
                return None
            self._callers[caller] = bucket
            if len(self._callers) > MOST_BUCKETS:
                self._callers.popitem(last=False)
        else:
            self._callers.move_to_end(caller)
        return bucket

    def _bucket(self, rate: float | None, burst: int | None) -> Bucket | None:
        if rate is None:
            return None
        return Bucket(rate, float(burst or max(1, round(2 * rate))), self._now())
