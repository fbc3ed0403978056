"""An event loop whose clock leaps to whatever is due next, in which parts can be frozen. It knows no gateway.

What a part of the test starts belongs to the part that `PART` names in its
context, and so does all that this starts in turn. A part that is frozen does
not run at all; it goes on where it was, like a process after SIGCONT. One that
is never thawed was killed.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any

PART: ContextVar[str | None] = ContextVar("PART", default=None)


class LeapingLoop(asyncio.SelectorEventLoop):
    """Nothing in it takes any time but what is waited for, and that no time of ours."""

    def __init__(self) -> None:
        self.now = 0.0
        self.failures: list[BaseException] = []
        """What went wrong in tasks, whoever looks after them."""
        self._asleep: dict[str, list[asyncio.Handle]] = {}
        self._tasks: dict[str | None, set[asyncio.Task[Any]]] = {}
        super().__init__(_Leap(self))

    def time(self) -> float:
        return self.now

    def freeze(self, part: str) -> None:
        """It does not run from now on."""
        self._asleep.setdefault(part, [])

    def thaw(self, part: str) -> None:
        """It goes on with all that came up meanwhile."""
        for handle in self._asleep.pop(part, ()):
            super().call_soon(handle._run)

    def is_frozen(self, part: str) -> bool:
        return part in self._asleep

    def tasks_of(self, part: str | None) -> list[asyncio.Task[Any]]:
        """What of it has not ended."""
        return [task for task in self._tasks.get(part, ()) if not task.done()]

    def spawn(self, part: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run `work` as that part."""
        context = Context()
        context.run(PART.set, part)
        return self.create_task(work, context=context)

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None) -> asyncio.Task[Any]:
        task = super().create_task(coro, name=name, context=context)
        part = (copy_context() if context is None else context).get(PART)
        owned = self._tasks.setdefault(part, set())
        owned.add(task)
        task.add_done_callback(owned.discard)
        task.add_done_callback(self._ended)
        return task

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        context = copy_context() if context is None else context
        waiting = self._asleep.get(context.get(PART) or "")
        if waiting is None:
            return super().call_soon(callback, *args, context=context)
        waiting.append(handle := asyncio.Handle(callback, args, self, context))
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        context = copy_context() if context is None else context
        part = context.get(PART) or ""

        def ring() -> None:
            if not handle.cancelled():  # it may be by now, if it could not ring in time
                callback(*args)

        def is_due() -> None:
            if part in self._asleep:
                self._asleep[part].append(asyncio.Handle(ring, (), self, context))
            else:
                ring()

        handle = super().call_at(when, is_due, context=context)
        return handle

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failures.append(error)


class _Leap(selectors.SelectSelector):
    def __init__(self, loop: LeapingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise AssertionError("waits for something that will never come")
        self._loop.now += max(0.0, timeout)
        return super().select(0)
