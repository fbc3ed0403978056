"""How many connections and files this process may have open at once: as many as the system lets it. Opens none itself.

Most systems give a process a thousand or so unless it asks for more, and let it ask. A client takes one, a call
that is under way or held one or two more: at a few hundred questions there would be nothing left to accept with.
"""

import resource
from contextlib import suppress
from typing import Final

_WANTED: Final = 65_536
"""Not all that may be had: a program that we start gets it, too, and some walk through it to the end."""


def ask_for_more() -> None:
    """Raise this process's own bound as far as is of use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # then it is as it was
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def for_clients(configured: int) -> int:
    """How many connections clients may have, of so many that are configured: the other half is for servers."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return configured if soft == resource.RLIM_INFINITY else max(1, min(configured, soft // 2))
