"""Which exchanges a ticket may still refer to: those held, those running again, those whose outcome is kept.

It counts and bounds; what an exchange is, and when it ends, is its owner's business.
"""

from collections import Counter, OrderedDict
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_MOST_KEPT_BYTES: Final = 64 * 1024**2
_MOST_KEPT: Final = 10_000


class Ledger(Generic[T]):
    """Exchanges by their id, in this process: the rung *live* of the ladder."""

    def __init__(self, max_held: int, max_each: int | None = None, max_bytes: int | None = None) -> None:
        self._max_held = max_held
        self._max_each = max_each
        self._max_bytes = max_bytes
        self._known: dict[str, T] = {}
        self._held: dict[str, tuple[str | None, int]] = {}
        """Whose each is, and its size."""
        self._held_bytes = 0
        self._of: Counter[str] = Counter()
        """How many each holder has."""
        self._kept: OrderedDict[str, int] = OrderedDict()
        self._kept_bytes = 0

    @property
    def held(self) -> int:
        """How many exchanges wait for their client."""
        return len(self._held)

    def everyone(self) -> list[T]:
        """All that is known, for an orderly end."""
        return list(self._known.values())

    def find(self, exchange_id: str) -> T | None:
        """The exchange, if this process still knows it."""
        return self._known.get(exchange_id)

    def know(self, exchange_id: str, exchange: T) -> None:
        """A ticket names it, though it does not wait now."""
        self._known[exchange_id] = exchange

    def has_room(self, exchange_id: str, holder: str | None = None, size: int = 0) -> bool:
        """Would it be let in?"""
        return exchange_id in self._known or not self._is_full(holder, size)

    def hold(self, exchange_id: str, exchange: T, holder: str | None = None, size: int = 0) -> bool:
        """The exchange waits for its client now. False: there is no room for one more, or for one more of `holder`.

        One that was held before is always let in: a user who has answered must not lose the call to newcomers.
        """
        if not self.has_room(exchange_id, holder, size):
            return False
        self._known[exchange_id] = exchange
        self._let_go(exchange_id)
        self._held[exchange_id] = (holder, size)
        self._held_bytes += size
        if holder is not None:
            self._of[holder] += 1
        return True

    def _is_full(self, holder: str | None, size: int) -> bool:
        has_most = holder is not None and self._max_each is not None and self._of[holder] >= self._max_each
        is_heavy = self._max_bytes is not None and self._held_bytes + size > self._max_bytes
        return has_most or is_heavy or len(self._held) >= self._max_held

    def _let_go(self, exchange_id: str) -> None:
        holder, size = self._held.pop(exchange_id, (None, 0))
        self._held_bytes -= size
        if holder is not None:
            self._of[holder] -= 1
            if not self._of[holder]:
                del self._of[holder]

    def resume(self, exchange_id: str) -> bool:
        """It waits no more. False: it did not wait."""
        if exchange_id not in self._held:
            return False
        self._let_go(exchange_id)
        return True

    def keep(self, exchange_id: str, size: int) -> None:
        """The exchange has ended; its outcome stays for a client that lost it. The oldest make room."""
        self._let_go(exchange_id)
        if exchange_id not in self._known:
            return
        self._kept_bytes -= self._kept.pop(exchange_id, 0)
        self._kept[exchange_id] = size
        self._kept_bytes += size
        while self._kept_bytes > _MOST_KEPT_BYTES or len(self._kept) > _MOST_KEPT:
            self.forget(next(iter(self._kept)))

    def forget(self, exchange_id: str) -> None:
        """No ticket finds it any more."""
        self._known.pop(exchange_id, None)
        self._let_go(exchange_id)
        self._kept_bytes -= self._kept.pop(exchange_id, 0)
