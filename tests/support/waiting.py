"""Waiting for something to become true, never longer than a bound; nothing else."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

SECONDS = 5.0
_PAUSE = 0.01


async def until(look: Callable[[], Awaitable[T]], seconds: float = SECONDS) -> T:
    """Look again and again until there is something true to see; what it was."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not (seen := await look()):
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"still not true after {seconds} s; last seen: {seen!r}")
        await asyncio.sleep(_PAUSE)
    return seen
