"""The time that a request may wait for the database, in all its calls; and cheap timers.

Waits for other services, such as an identity provider, do not count.

`asyncio.timeout` creates a timer for each wait, and almost no timer ever fires. Here a loop has one
timer, for the earliest deadline; if that wait has ended already, the timer moves on to the next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Coroutine
from contextvars import ContextVar, copy_context
from math import inf
from types import TracebackType
from typing import Any, ClassVar, Final, Self

from msgspec import Struct

from countersign.base.errors import StorageUnavailable
from countersign.base.generics import T

DEADLINE_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 2
"""How long to ask a caller to wait before a retry."""


class TimeLeft(Struct, eq=False):
    """The time left for a request; each call on the database reduces it."""

    left: float
    has_written: bool = False
    """Whether a write was accepted for it: from then on it is not refused for overload."""


DEADLINE: Final[ContextVar[TimeLeft | None]] = ContextVar("deadline", default=None)
"""Time left for all calls of this task; None: no request is in progress."""


async def within_deadline(shared: Awaitable[T]) -> T:
    """Await a task shared with other requests; the wait counts as one for the database.

    Raises StorageUnavailable when the request has waited for too long.
    """
    deadline = DEADLINE.get()
    if deadline is None:
        return await shared
    began = time.monotonic()
    limit = TimeLimit(deadline.left)
    try:
        with limit:
            return await shared
    except TimeoutError:
        if limit.is_over:
            raise StorageUnavailable(retry_after=RETRY_SECONDS) from None
        raise
    finally:
        deadline.left -= time.monotonic() - began


def detached(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start work that outlives or serves more than this request: it does not use this deadline."""
    context = copy_context()
    context.run(DEADLINE.set, None)
    return asyncio.create_task(work, context=context)


def shared(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """The same for work shared by requests: all of them may give up before it ends."""
    task = detached(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


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
    """The open waits of one loop."""

    last: ClassVar[_Waits | None] = None
    """A process has one loop; tests have several in succession."""

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
