"""Waiting for something to become true, or to be over, never longer than a bound; nothing else."""

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


async def turns(number: int = 20) -> None:
    """Let everything that can go on go on."""
    for _ in range(number):
        await asyncio.sleep(0)


async def stop_accepting(server: asyncio.Server) -> None:
    """Close a server, once everyone whom it has accepted has a handler.

    asyncio (3.11) forgets a connection that was accepted in the moment in which its
    server is closed: the socket stays open until the garbage collector comes by.
    """
    loop = asyncio.get_running_loop()
    for listener in server.sockets:
        loop.remove_reader(listener.fileno())
    await turns()
    server.close()
    await turns()
