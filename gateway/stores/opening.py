"""Opens the store that an address names. The only place that knows which kinds there are."""

from collections.abc import Callable

from gateway.settings.load import ConfigInvalid
from gateway.settings.problems import Problem
from gateway.settings.store_url import StoreUrl
from gateway.stores.memory import MemoryStore
from gateway.stores.protocol import Store


def open_store(url: StoreUrl, *, now: Callable[[], float]) -> Store:
    """The store at this address, not yet started. `now` is a clock that only goes forward.

    Raises:
        ConfigInvalid: the library for it is not installed.
    """
    if not url.is_shared:
        return MemoryStore(now)
    try:
        # Half a second and ten megabytes that a gateway of one process does not need.
        from gateway.stores.redis import RedisStore  # noqa: PLC0415
    except ImportError:
        missing = Problem("store", "needs the Redis library: pip install 'redis[hiredis]>=5.2'")
        raise ConfigInvalid([missing]) from None
    return RedisStore(url)
