"""Tasks that outlive the call that started them, kept alive and watched. It does not know what they do."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from gateway.errors import GatewayError
from gateway.telemetry.logs import get_logger
from gateway.telemetry.names import LogEvent


class Background:
    """Owns tasks: none is garbage-collected in mid-flight, no exception is lost, all end together."""

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any], name: str | None = None) -> asyncio.Task[Any]:
        """Run `work` beside the caller. A `GatewayError` in it is an outcome; anything else is our bug, logged."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def settle(self, seconds: float) -> None:
        """Wait until what runs now has ended by itself, but no longer than this."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=seconds)

    async def close(self) -> None:
        """Cancel what still runs and wait until it has ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not isinstance(error, GatewayError):
            get_logger().error(LogEvent.INTERNAL_ERROR, where=task.get_name(), exc_info=error)
