"""Batchers: concurrent calls on the event loop become one transaction on a thread.

A caller awaits its own result. While the thread is busy with one batch, the calls that arrive
form the next: under load the cost of a commit is shared, and a lone call waits for nobody.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar, cast

from sqlalchemy import Connection

from countersign.errors import CountersignError, Overloaded

T = TypeVar("T")
R = TypeVar("R")

Act: TypeAlias = Callable[[Connection, Sequence[T]], Sequence[R | CountersignError]]
"""Does something for many items in one transaction: one outcome per item, in the same order.

An outcome that is a CountersignError refuses that item alone. An act that raises has done nothing
for any of them.
"""

Call: TypeAlias = "tuple[Act[Any, Any], Any, asyncio.Future[Any]]"
Runner: TypeAlias = "Callable[[Sequence[tuple[Act[Any, Any], Any]]], Sequence[object]]"

_BATCH_MAX: Final = 512
_PENDING_MAX: Final = 10_000


def each(work: Callable[[Connection, T], R | CountersignError]) -> Act[T, R]:
    """An act that does its items one after the other, for calls that seldom come in crowds."""

    def act(connection: Connection, items: Sequence[T]) -> list[R | CountersignError]:
        return [work(connection, item) for item in items]

    return act


class Batcher:
    """Collects calls and hands them, a batch at a time, to `run` on a thread of its own.

    `run` gives one outcome per call: its result, or the exception it ended with.
    """

    def __init__(self, name: str, run: Runner, *, pending_max: int = _PENDING_MAX) -> None:
        self._run = run
        self._pending_max = pending_max
        self._queue: deque[Call] = deque()
        self._wake = threading.Semaphore(0)
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self.batches = 0
        self.calls = 0

    def start(self) -> None:
        """Begin; called on the event loop that the calls will come from."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    @property
    def pending(self) -> int:
        """How many calls wait for the next batch."""
        return len(self._queue)

    async def call(self, act: Act[T, R], item: T) -> R:
        """Have the act done for this item, and wait until its transaction has ended.

        Raises:
            Overloaded: too many calls are waiting, or the batcher is closing.
            CountersignError: the act's refusal of this item.
        """
        loop = self._loop
        if loop is None or self._closing or len(self._queue) >= self._pending_max:
            raise Overloaded
        future: asyncio.Future[Any] = loop.create_future()
        self._queue.append((act, item, future))
        self._wake.release()
        return cast("R", await future)

    async def close(self) -> None:
        """Finish what is waiting, then end the thread."""
        if self._loop is None:
            return
        self._closing = True
        self._wake.release()
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        queue, loop = self._queue, self._loop
        assert loop is not None  # noqa: S101 - start() sets it before the thread begins
        while True:
            self._wake.acquire()
            batch: list[Call] = []
            while queue and len(batch) < _BATCH_MAX:
                batch.append(queue.popleft())
            if batch:
                outcomes = self._run([(act, item) for act, item, _ in batch])
                self.batches += 1
                self.calls += len(batch)
                loop.call_soon_threadsafe(_deliver, batch, outcomes)
            if self._closing and not queue:
                return
            for _ in range(len(batch) - 1):
                self._wake.acquire(blocking=False)


def _deliver(batch: Sequence[Call], outcomes: Sequence[object]) -> None:
    for (_, _, future), outcome in zip(batch, outcomes, strict=True):
        if future.done():
            continue
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
