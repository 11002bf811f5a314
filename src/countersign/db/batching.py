"""Batchers: concurrent calls on the event loop become one transaction or one query.

A caller awaits its own outcome. The calls that arrive while one batch is being worked on form the
next: under load the cost of a commit is shared, and a lone call waits for no one. Why there are
three kinds, and which engine uses which, is in docs/decisions/0011.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection

from countersign.db.turn import Turn
from countersign.errors import CountersignError, Overloaded

T = TypeVar("T")
R = TypeVar("R")

BatchAct: TypeAlias = Callable[[Connection, Sequence[T]], Sequence[R | CountersignError]]
"""Does something for many items in one transaction: one outcome per item, in the same order.

An outcome that is a CountersignError refuses that item alone. An act that raises has done nothing
for any of them.
"""

Make: TypeAlias = Callable[[Sequence[T]], Sequence[R]]
"""Makes items ready for their act on the event loop, before there is a transaction for them."""

QueuedCall: TypeAlias = "tuple[BatchAct[Any, Any], Any, asyncio.Future[Any]]"
"""An act, its item, and the future of the caller."""
Outcomes: TypeAlias = Sequence[object]
"""One per call: its result, or the exception that it ended with."""

_BATCH_MAX: Final = 512
_LINGER_MAX: Final = 64
_PENDING_MAX: Final = 10_000


class Batcher(ABC):
    """Collects calls; how a batch is worked on is up to the kind."""

    def __init__(self) -> None:
        self._queue: deque[QueuedCall] = deque()
        self._unmade: dict[Make[Any, Any], list[QueuedCall]] = {}
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
        return len(self._queue) + sum(map(len, self._unmade.values()))

    def call(
        self, act: BatchAct[Any, R], item: T, make: Make[T, Any] | None = None
    ) -> asyncio.Future[R]:
        """Have the act done for this item; the future ends with its transaction.

        Its exception is the act's refusal of this item. With `make` the act gets what that makes
        of the item, together with others, while the batch before this one is being worked on.

        Raises:
            Overloaded: too many calls are waiting, or the batcher is closing.
        """
        loop = self._loop
        if loop is None or self._closing or len(self._queue) >= _PENDING_MAX:
            raise Overloaded
        future: asyncio.Future[R] = loop.create_future()
        if make is None:
            self._queue.append((act, item, future))
            self._wake(loop)
            return future
        unmade = self._unmade.setdefault(make, [])
        if not unmade:
            loop.call_soon(self._linger, loop, partial(self._make, make), 0)
        unmade.append((act, item, future))
        return future

    def _make(self, make: Make[Any, Any]) -> None:
        calls = self._unmade.pop(make, None)
        if calls is None:
            return  # they have been made
        try:
            made = make([item for _, item, _ in calls])
            ready = [(act, m, future) for (act, _, future), m in zip(calls, made, strict=True)]
        except Exception as error:  # noqa: BLE001 - the one that it is about gets it
            if len(calls) == 1:
                self._deliver(calls, [error])
                return
            for call in calls:
                self._unmade[make] = [call]
                self._make(make)
            return
        self._queue.extend(ready)
        if self._loop is not None:
            self._ready(self._loop)

    def _make_all(self) -> None:
        for make in [*self._unmade]:
            self._make(make)

    def _stop(self) -> None:
        """Take no more calls; what has been taken is made ready."""
        self._closing = True
        self._make_all()

    @abstractmethod
    async def close(self) -> None:
        """Finish what is waiting, and take no more."""

    @abstractmethod
    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        """There is a call in the queue."""

    def _ready(self, loop: asyncio.AbstractEventLoop) -> None:
        """There are calls in the queue, which have waited for others already."""
        self._wake(loop)

    def _linger(self, loop: asyncio.AbstractEventLoop, then: Callable[[], None], seen: int) -> None:
        """Go on when a whole turn of the loop has brought no further call.

        Under load the requests of many connections arrive turn by turn; a batch of two of them
        costs almost as much as one of thirty. A lone call waits for two turns, some microseconds.
        """
        waiting = len(self._queue) + sum(map(len, self._unmade.values()))
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
        self._stop()
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
            if self._queue:  # more than a batch was made ready at once
                self._awake.release()


class LoopBatcher(Batcher):
    """Works on a batch on the event loop itself: for short look-ups in an embedded database."""

    def __init__(self, run: Callable[[Sequence[QueuedCall]], Outcomes]) -> None:
        super().__init__()
        self._run = run
        self._scheduled = False

    async def close(self) -> None:
        """Finish what is waiting."""
        self._stop()
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

    def __init__(
        self, name: str, transactor: Transactor, patience_seconds: float, turn: Turn
    ) -> None:
        super().__init__()
        self._transactor = transactor
        self._patience = patience_seconds
        self._turn = turn
        self._busy = False
        self._idle = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    def start(self) -> None:
        """Begin, and hear whose turn it is."""
        super().start()
        self._turn.start(asyncio.get_running_loop())

    async def close(self) -> None:
        """Finish what is waiting, then end the thread."""
        self._stop()
        while self._busy or self._queue:
            self._idle.clear()
            await self._idle.wait()
        self._thread.shutdown()

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._busy:
            self._busy = True
            loop.call_soon(self._linger, loop, self._next, 0)

    def _ready(self, loop: asyncio.AbstractEventLoop) -> None:  # noqa: ARG002 - nothing is put off
        if not self._busy:
            self._busy = True
            self._next()

    def _next(self) -> None:
        self._make_all()
        loop = self._loop
        assert loop is not None  # noqa: S101 - calls come after start()
        if not self._queue:
            self._busy = False
            self._idle.set()
        elif self._turn.is_anothers():
            self._turn.wait(loop, partial(self._begin, loop.time()))
        else:
            self._begin(loop.time())

    def _begin(self, since: float) -> None:
        """Do what waits, or wait for a turn; `since` is when that began."""
        loop = self._loop
        assert loop is not None  # noqa: S101 - calls come after start()
        self._make_all()  # also what came while it waited
        batch = self._take()
        self._turn.begin()
        try:
            outcomes = self._transactor.prepare(batch)
        except Exception as error:  # noqa: BLE001 - whatever happens, the next batch goes on
            self._turn.end()
            self._fail(batch, error)
            return
        if outcomes is None and loop.time() - since < self._patience:
            self._queue.extendleft(reversed(batch))
            self._turn.wait(loop, partial(self._begin, since))
        elif outcomes is None:
            self._turn.end()
            self._deliver(batch, self._transactor.give_up(batch))
            self._next()
        else:
            ended = loop.run_in_executor(self._thread, self._commit, batch, outcomes)
            ended.add_done_callback(lambda future: self._ended(batch, future))

    def _commit(self, batch: Sequence[QueuedCall], outcomes: Outcomes) -> Outcomes:
        try:
            return self._transactor.commit(batch, outcomes)
        finally:
            self._turn.end()

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
