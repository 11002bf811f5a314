"""The deadline of a request for the database, one sum for all that it asks; and timers for many.

What a request waits for elsewhere, such as an identity provider, does not count.

`asyncio.timeout` has a timer for each wait, and almost none of them ever ends one. Here a loop has
one timer, for the wait that ends first; when that is over already, it goes on to the next one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Coroutine
from contextvars import ContextVar, copy_context
from math import inf
from types import TracebackType
from typing import Any, ClassVar, Final, Self, TypeVar

from msgspec import Struct

from countersign.base.errors import StorageUnavailable

T = TypeVar("T")

DEADLINE_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 2
"""What a caller is asked to wait before its next attempt."""


class TimeLeft(Struct, eq=False):
    """What is left of a wait; each call on the database takes off how long it took."""

    left: float
    has_written: bool = False
    """Whether a write was accepted for it: from then on nothing of it is refused for overload."""


DEADLINE: Final[ContextVar[TimeLeft | None]] = ContextVar("deadline", default=None)
"""What is left for all calls of this task; None: no request is being answered."""


async def within_deadline(shared: Awaitable[T]) -> T:
    """Await what others may have begun: a wait for it is one for the database.

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
    """Begin what is not for this request alone: it does not use up this request's deadline."""
    context = copy_context()
    context.run(DEADLINE.set, None)
    return asyncio.create_task(work, context=context)


def shared(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """The same for what several requests wait for; all of them may leave before its end."""
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
