"""Batchers: concurrent calls on the event loop become one transaction or one query.

A caller awaits its own outcome. The calls that arrive while one batch is being worked on form the
next: under load the cost of a commit is shared, and a lone call waits for nobody. Why there are
three kinds, and which engine uses which, is told in docs/decisions/0011.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection

from countersign.errors import CountersignError, Overloaded

T = TypeVar("T")
R = TypeVar("R")

BatchAct: TypeAlias = Callable[[Connection, Sequence[T]], Sequence[R | CountersignError]]
"""Does something for many items in one transaction: one outcome per item, in the same order.

An outcome that is a CountersignError refuses that item alone. An act that raises has done nothing
for any of them.
"""

QueuedCall: TypeAlias = "tuple[BatchAct[Any, Any], Any, asyncio.Future[Any]]"
"""An act, its item, and the future of the caller."""
Outcomes: TypeAlias = Sequence[object]
"""One per call: its result, or the exception that it ended with."""

_BATCH_MAX: Final = 512
_LINGER_MAX: Final = 64
_PENDING_MAX: Final = 10_000
_RETRY_SECONDS: Final = 0.005


class Batcher(ABC):
    """Collects calls; how a batch is worked on is up to the kind."""

    def __init__(self) -> None:
        self._queue: deque[QueuedCall] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = False
        self.batches = 0
        self.calls = 0

    def start(self) -> None:
        """Begin; called on the event loop that the calls will come from."""
        self._loop = asyncio.get_running_loop()

    @property
    def pending(self) -> int:
        """How many calls wait for the next batch."""
        return len(self._queue)

    def call(self, act: BatchAct[T, R], item: T) -> asyncio.Future[R]:
        """Have the act done for this item; the future ends with its transaction.

        Its exception is the act's refusal of this item.

        Raises:
            Overloaded: too many calls are waiting, or the batcher is closing.
        """
        loop = self._loop
        if loop is None or self._closing or len(self._queue) >= _PENDING_MAX:
            raise Overloaded
        future: asyncio.Future[R] = loop.create_future()
        self._queue.append((act, item, future))
        self._wake(loop)
        return future

    @abstractmethod
    async def close(self) -> None:
        """Finish what is waiting, and take no more."""

    @abstractmethod
    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        """There is a call in the queue."""

    def _linger(self, loop: asyncio.AbstractEventLoop, then: Callable[[], None], seen: int) -> None:
        """Go on when a whole turn of the loop has brought no further call.

        Under load the requests of many connections arrive turn by turn; a batch of two of them
        costs almost as much as one of thirty. A lone call waits for two turns, some microseconds.
        """
        waiting = len(self._queue)
        if seen < waiting < _LINGER_MAX:
            loop.call_soon(self._linger, loop, then, waiting)
        else:
            then()

    def _take(self) -> list[QueuedCall]:
        queue = self._queue
        return [queue.popleft() for _ in range(min(len(queue), _BATCH_MAX))]

    def _deliver(self, batch: Sequence[QueuedCall], outcomes: Outcomes) -> None:
        self.batches += 1
        self.calls += len(batch)
        for (_, _, future), outcome in zip(batch, outcomes, strict=True):
            if future.done():
                continue
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)


class ThreadBatcher(Batcher):
    """Works on batches in a thread of its own: for what may take long, or waits for a network."""

    def __init__(self, name: str, run: Callable[[Sequence[QueuedCall]], Outcomes]) -> None:
        super().__init__()
        self._run = run
        self._awake = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def start(self) -> None:
        """Begin, and start the thread."""
        super().start()
        self._thread.start()

    async def close(self) -> None:
        """Finish what is waiting, then end the thread."""
        if self._loop is None:
            return
        self._closing = True
        self._awake.release()
        await asyncio.to_thread(self._thread.join)

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:  # noqa: ARG002 - the thread has it
        self._awake.release()

    def _work(self) -> None:
        loop = self._loop
        assert loop is not None  # noqa: S101 - start() sets it before the thread begins
        while True:
            self._awake.acquire()
            batch = self._take()
            if batch:
                outcomes = self._run(batch)
                loop.call_soon_threadsafe(self._deliver, batch, outcomes)
            if self._closing and not self._queue:
                return
            for _ in range(len(batch) - 1):
                self._awake.acquire(blocking=False)


class LoopBatcher(Batcher):
    """Works on a batch on the event loop itself: for short look-ups in an embedded database."""

    def __init__(self, run: Callable[[Sequence[QueuedCall]], Outcomes]) -> None:
        super().__init__()
        self._run = run
        self._scheduled = False

    async def close(self) -> None:
        """Finish what is waiting."""
        self._closing = True
        while self._queue:
            self._flush()

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._linger, loop, self._flush, 0)

    def _flush(self) -> None:
        self._scheduled = False
        batch = self._take()
        if batch:
            self._deliver(batch, self._run(batch))
        if self._queue and self._loop is not None:
            self._wake(self._loop)


class Transactor(Protocol):
    """Does a transaction in two steps, so that the second can wait for the disk elsewhere."""

    def prepare(self, calls: Sequence[QueuedCall]) -> Outcomes | None:
        """Begin, and do the calls; None if another process is writing: try again later."""
        ...

    def commit(self, calls: Sequence[QueuedCall], outcomes: Outcomes) -> Outcomes:
        """End the transaction; the outcomes, or what became of them. Runs in a thread."""
        ...

    def give_up(self, calls: Sequence[QueuedCall]) -> Outcomes:
        """The outcomes when another process would not stop writing."""
        ...


class CommitBatcher(Batcher):
    """Does the statements on the event loop, and only waits for the disk in a thread.

    Statements are short, but a thread that does them one by one has to win the interpreter's lock
    back after each; a commit is one call that may take long.
    """

    def __init__(self, name: str, transactor: Transactor, patience_seconds: float) -> None:
        super().__init__()
        self._transactor = transactor
        self._patience = patience_seconds
        self._busy = False
        self._idle = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def close(self) -> None:
        """Finish what is waiting, then end the thread."""
        self._closing = True
        while self._busy or self._queue:
            self._idle.clear()
            await self._idle.wait()
        self._thread.shutdown()

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._busy:
            self._busy = True
            loop.call_soon(self._linger, loop, self._next, 0)

    def _next(self) -> None:
        batch = self._take()
        if batch:
            self._begin(batch, 0.0)
        else:
            self._busy = False
            self._idle.set()

    def _begin(self, batch: Sequence[QueuedCall], waited: float) -> None:
        loop = self._loop
        assert loop is not None  # noqa: S101 - calls come after start()
        try:
            outcomes = self._transactor.prepare(batch)
        except Exception as error:  # noqa: BLE001 - whatever happens, the next batch goes on
            self._fail(batch, error)
            return
        if outcomes is None and waited < self._patience:
            loop.call_later(_RETRY_SECONDS, self._begin, batch, waited + _RETRY_SECONDS)
        elif outcomes is None:
            self._deliver(batch, self._transactor.give_up(batch))
            self._next()
        else:
            ended = loop.run_in_executor(self._thread, self._transactor.commit, batch, outcomes)
            ended.add_done_callback(lambda future: self._ended(batch, future))

    def _ended(self, batch: Sequence[QueuedCall], future: asyncio.Future[Outcomes]) -> None:
        error = future.exception()
        if error is not None:
            self._fail(batch, error)
            return
        self._deliver(batch, future.result())
        loop = self._loop
        assert loop is not None  # noqa: S101 - calls come after start()
        loop.call_soon(self._linger, loop, self._next, 0)

    def _fail(self, batch: Sequence[QueuedCall], error: BaseException) -> None:
        self._deliver(batch, [error] * len(batch))
        self._next()
