"""A limit for how long something is awaited, of which there may be thousands at once.

`asyncio.timeout` has a timer for each wait, and almost none of them ever ends one. Here a loop has
one timer, for the wait that ends first; when that is over already, it goes on to the next one.
"""

from __future__ import annotations

import asyncio
from math import inf
from types import TracebackType
from typing import ClassVar, Self


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
        loop, waits = task.get_loop(), _Waits.last
        if waits is None or waits.loop is not loop:
            waits = _Waits.last = _Waits(loop)
        self._waits = waits
        self.at = loop.time() + self._seconds
        waits.open.add(self)
        if self.at < waits.looks_at:
            waits.look_at(self.at)
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

    last: ClassVar[_Waits | None] = None
    """A process has one loop, and one after the other in tests."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.open: set[TimeLimit] = set()
        self.looks_at = inf
        self._timer: asyncio.TimerHandle | None = None

    def look_at(self, time: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.looks_at = time
        self._timer = self.loop.call_at(time, self._look)

    def _look(self) -> None:
        self.looks_at, self._timer = inf, None
        now = self.loop.time()
        for wait in [one for one in self.open if one.at <= now]:
            self.open.discard(wait)
            wait.end()
        if self.open:
            self.look_at(min(one.at for one in self.open))
