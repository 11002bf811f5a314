"""A limit for how long something is awaited, of which there may be thousands at once.

`asyncio.timeout` has a timer for each wait, and almost none of them ever ends one. Here a loop has
one timer, for the wait that ends first; when that is over already, it goes on to the next one.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self


class TimeLimit:
    """`with TimeLimit(seconds):` raises TimeoutError where its block awaits for longer."""

    __slots__ = ("_cancelling", "_seconds", "_task", "_waits", "at", "is_over")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.is_over = False

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a time limit needs a task")
        self._task, self._cancelling = task, task.cancelling()
        self._waits = waits = _of_loop(task.get_loop())
        self.at = waits.loop.time() + self._seconds
        waits.add(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._waits.open.discard(self)
        if (
            self.is_over
            and self._task.uncancel() <= self._cancelling
            and kind is not None
            and issubclass(kind, asyncio.CancelledError)
        ):
            raise TimeoutError from error

    def end(self) -> None:
        """The time is up."""
        self.is_over = True
        self._task.cancel()


class _Waits:
    """Those of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.open: set[TimeLimit] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, wait: TimeLimit) -> None:
        self.open.add(wait)
        timer = self._timer
        if timer is None or wait.at < timer.when():
            if timer is not None:
                timer.cancel()
            self._timer = self.loop.call_at(wait.at, self._look)

    def _look(self) -> None:
        self._timer = None
        now = self.loop.time()
        for wait in [one for one in self.open if one.at <= now]:
            self.open.discard(wait)
            wait.end()
        if self.open:
            self._timer = self.loop.call_at(min(one.at for one in self.open), self._look)


_last: _Waits | None = None


def _of_loop(loop: asyncio.AbstractEventLoop) -> _Waits:
    """Those of this loop; a process has one, and one after the other in tests."""
    global _last  # noqa: PLW0603 - kept for the next call
    waits = _last
    if waits is None or waits.loop is not loop:
        waits = _last = _Waits(loop)
    return waits
