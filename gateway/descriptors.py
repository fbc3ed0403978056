"""How many connections and files this process may have open at once: as many as the system allows. It opens none.

Most systems give a process a thousand or so unless it asks for more, and let it ask. A client takes one, a call
that is running or held one or two more: at a few hundred questions there would be nothing left to accept with.
"""

import resource
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from gateway.settings.upstream import Upstream

_ASKED_FOR: Final = 65_536
"""Not all that may be had: a program that we start inherits it, and some walk through all of it."""
_PER_HOLD: Final = 3
"""The pipes of a server's process; over HTTP two connections, the call's own and the session's GET stream."""
_BESIDE: Final = 4_096
"""For clients, sessions that are idle or at work, listeners, the store."""


def needed(upstreams: Iterable[Upstream]) -> int:
    """How many it takes if every call is held that may be."""
    return _BESIDE + _PER_HOLD * sum(upstream.holds.max for upstream in upstreams)


def ask_for_more(least: int) -> int:
    """Raise this process's own bound as far as is of use, to `least` if the system allows it; returns what it has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return max(soft, least)
    wanted = max(_ASKED_FOR, least)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft < wanted:
        with suppress(OSError, ValueError):  # then it is as it was
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return soft


def for_clients(configured: int) -> int:
    """How many connections clients may have, of so many that are configured: the other half is for servers."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return configured if soft == resource.RLIM_INFINITY else max(1, min(configured, soft // 2))
