"""Batchers: concurrent calls on the event loop become one transaction or one query.

A caller awaits its own outcome. The calls that arrive while one batch is being worked on form the
next: under load the cost of a commit is shared, and a lone call waits for no one. What the embedded
database does otherwise is in `database.py`, and why in docs/decisions/batches.md.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final

import structlog

from countersign.base.db.engine import WHERE, is_damage
from countersign.base.db.workers import BatchAct, BatchWorker, Make, Outcomes, QueuedCall, Running
from countersign.base.db.writes import DONE, REFUSED, SINCE, Writes
from countersign.base.deadline import DEADLINE, RETRY_SECONDS, TimeLeft
from countersign.base.errors import (
    CountersignError,
    OutcomeUnknown,
    Overloaded,
    Retryable,
    StorageUnavailable,
)
from countersign.base.generics import R, T

BATCH_MAX: Final = 512
_LINGER_MAX: Final = 64
_WAITING_PART: Final = 0.4
"""The part of its deadline that a request may wait until its batch begins. Less than half, because
a call that has waited for half reports that the database does not respond."""
_NEWEST: Final = 0.2
"""Weight of the last batch in the average duration, if it was faster than the average."""
_LOOKS: Final = 40
"""How many times during the longest wait the waiting calls are checked."""
_HELD_TIMES: Final = 2
"""Maximum wait for callers, as a multiple of the duration of the last batch."""
_HELD_SECONDS: Final = (0.0005, 0.005)
"""Lower and upper bound of that wait."""
_SKIPS_MAX: Final = 31
"""At most this many batches in a row begin without waiting, after callers did not return."""

_log: Final = structlog.get_logger("countersign.storage")


class Batcher:
    """Collects calls and hands them to a dedicated thread, one batch at a time.

    Under load the callers of the last batch soon call again. If the next batch began at once, half
    of them would miss it, and the cost of a batch would be paid twice as often. So it waits until
    as many calls are queued as were just answered, for at most twice the duration of the last
    batch; if the callers do not return, it waits less and less often.
    """

    def __init__(self, lane: str, worker: BatchWorker) -> None:
        """`lane` is its name, in log lines and metrics."""
        self.lane = lane
        self.worker = worker
        self._writes = worker.writes
        self._seconds = self._background = float("inf")
        self._looking = False
        self._gate = threading.Lock()
        self._running: Running | None = None
        self.is_damaged = False
        """Whether damage was seen since the process began."""
        self.on_abandoned: Callable[[], None] = lambda: None
        """Called when a batch gets no response from the database."""
        self.writes = Writes()
        """Of this lane; those of a server's processes are shared."""
        self._queue: deque[QueuedCall] = deque()
        self._unmade: dict[Make[Any, Any], list[QueuedCall]] = {}
        self._goal = 0
        """The next batch waits briefly for this many calls."""
        self._held: list[Callable[[], None]] = []
        """Callbacks that continue after that wait."""
        self._skipped = self._skips = 0
        self._busy = False
        """Whether a batch is being collected or worked on."""
        self._idle = asyncio.Event()
        self._taken: SimpleQueue[Running | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = False
        self._took = 0.0
        """The seconds that a batch takes at the moment."""
        self.batches = 0
        self.calls = 0

    def start(self) -> None:
        """Begin; called on the event loop that the calls will come from."""
        self._loop = loop = asyncio.get_running_loop()
        name = f"countersign-{self.lane}"
        self._thread = threading.Thread(target=self._work, args=(loop,), name=name, daemon=True)
        self._thread.start()

    def limit(self, seconds: float, background: float) -> None:
        """Limit the wait of each later call to `seconds`, or to `background` outside requests."""
        self._seconds, self._background = seconds, background

    @property
    def oldest(self) -> float:
        """For how many seconds the oldest call has waited, or the batch that is being worked on."""
        with self._gate:
            since = [self._running.since] if self._running is not None else []
            since += [begun for _, _, future, begun, _ in self._queue if not future.done()]
        return max(0.0, time.monotonic() - min(since)) if since else 0.0

    @property
    def is_late(self) -> bool:
        """Whether the oldest has waited for more than half of its time."""
        return self.oldest > self._seconds / 2

    @property
    def pending(self) -> int:
        """How many calls wait for the next batch."""
        return len(self._queue) + sum(map(len, self._unmade.values()))

    def call(
        self, act: BatchAct[Any, R], item: T, make: Make[T, Any] | None = None
    ) -> asyncio.Future[R]:
        """Have the act done for this item; the future ends with its transaction.

        Its exception is the act's refusal of this item. With `make`, the act gets the item as
        prepared by `make`, which prepares several together while the previous batch runs.

        Raises:
            Overloaded: the queue is so long that the batch would begin too late for a request
                without a write so far, or the batcher is closing.
            StorageUnavailable: the previous batch got no response from the database.
        """
        loop = self._loop
        if loop is None or self._closing:
            raise Overloaded
        running = self._running
        if running is not None and running.is_abandoned:
            raise StorageUnavailable(retry_after=RETRY_SECONDS)
        deadline = DEADLINE.get()
        if deadline is None:
            deadline = TimeLeft(self._background)
        elif not deadline.has_written:
            if running is not None:  # else it finds out how long it takes
                self._refuse_late(running, deadline.left * _WAITING_PART)
            deadline.has_written = self._writes
        future: asyncio.Future[R] = loop.create_future()
        call: QueuedCall = (act, item, future, time.monotonic(), deadline)
        if not self._looking:
            self._look_later(loop)
        if make is None:
            self._queue.append(call)
            then = None if self._busy else self._next
            self._busy = True
        else:
            unmade = self._unmade.setdefault(make, [])
            then = None if unmade else partial(self._make, make)
            unmade.append(call)
        if then is not None:
            loop.call_soon(self._linger, loop, then, 0)
        if self._held and self.pending >= self._goal:
            self._go_on(loop)
        return future

    def _refuse_late(self, running: Running, seconds: float) -> None:
        """Raise Overloaded if a batch of new calls would begin later than in `seconds`."""
        age = time.monotonic() - running.since
        took = max(self._took, age)
        wait = took - age + self.pending // BATCH_MAX * took
        if wait > seconds:
            raise Overloaded(retry_after=math.ceil(wait))

    def _go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop waiting for more calls."""
        held, self._held, self._goal = self._held, [], 0
        self._skips = self._skipped = 0
        for then in held:
            loop.call_soon(then)

    def _make(self, make: Make[Any, Any]) -> None:
        calls = self._unmade.pop(make, None)
        if calls is None:
            return  # they have been made
        try:
            made = make([item for _, item, *_ in calls])
            ready: list[QueuedCall] = [
                (call[0], item, *call[2:]) for call, item in zip(calls, made, strict=True)
            ]
        except Exception as error:  # noqa: BLE001 - the one that it is about gets it
            if len(calls) == 1:
                self._deliver(calls, [error])
                return
            for call in calls:
                self._unmade[make] = [call]
                self._make(make)
            return
        self._queue.extend(ready)
        if not self._busy:  # they have waited for others already
            self._busy = True
            self._next()

    def _make_all(self) -> None:
        for make in [*self._unmade]:
            self._make(make)

    async def close(self) -> None:
        """Finish the queued calls, and accept no more."""
        if self._loop is None:
            return
        self._closing = True
        self._make_all()
        self._go_on(self._loop)
        while self._busy or self._queue:
            self._idle.clear()
            await self._idle.wait()
        if self._thread is not None:
            self._taken.put(None)
            await asyncio.to_thread(self._thread.join)

    def _linger(self, loop: asyncio.AbstractEventLoop, then: Callable[[], None], seen: int) -> None:
        """Continue after one turn of the loop without another call.

        Under load the requests of many connections arrive in successive turns; a batch of two costs
        almost as much as one of thirty. A lone call waits for two turns, some microseconds.
        """
        # Inlined `pending`: each request comes by here twice, and a property costs one more call.
        waiting = len(self._queue) + sum(map(len, self._unmade.values()))
        if seen < waiting < _LINGER_MAX:
            loop.call_soon(self._linger, loop, then, waiting)
        elif waiting < self._goal:
            self._held.append(then)
        else:
            then()

    def _next(self) -> None:
        if self._unmade:
            self._make_all()
        if self._queue:
            self._begin()
        else:
            self._busy = False
            self._idle.set()

    def _begin(self) -> None:
        running = self._take()
        if running.calls:
            self._taken.put(running)
        else:  # they have all been answered
            self._next()

    def _take(self) -> Running:
        """The next batch, which is being worked on from now on."""
        queue = self._queue
        with self._gate:
            taken = [queue.popleft() for _ in range(min(len(queue), BATCH_MAX))]
            # A call that has been answered must not take effect.
            running = Running([call for call in taken if not call[2].done()])
            self._running = running if running.calls else None
            self._goal = 0
        if running.calls and not self.writes.cells[SINCE]:
            self.writes.cells[SINCE] = running.since
        return running

    def _end(self) -> None:
        """Whatever happened to the batch, the next one can be taken."""
        with self._gate:
            running, self._running = self._running, None
        if running is None:
            return
        took = time.monotonic() - running.since
        self._took = max(took, self._took + _NEWEST * (took - self._took))
        if running.is_said:
            _log.warning("database_responds", lane=self.lane, seconds=round(took, 1))

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        WHERE.lane = self.lane
        seconds: float | None = None
        while True:
            try:
                running = self._taken.get(timeout=seconds)
            except Empty:
                seconds = None
                loop.call_soon_threadsafe(self._give_up_waiting, loop)
                continue
            if running is None:
                return
            try:
                outcomes = self.worker(running)
            except Exception as error:  # noqa: BLE001 - whatever happens, the next batch goes on
                outcomes = [error] * len(running.calls)
            if len(running.calls) > 1:
                took, (least, most) = time.monotonic() - running.since, _HELD_SECONDS
                seconds = min(max(_HELD_TIMES * took, least), most)
            else:
                seconds = None
            self._end()
            loop.call_soon_threadsafe(self._ended, loop, running, outcomes)

    def _ended(self, loop: asyncio.AbstractEventLoop, running: Running, outcomes: Outcomes) -> None:
        # The callers of a batch that was given up have a response or are queued again.
        if not running.is_given_up:
            self._deliver(running.calls, outcomes)
        self._skipped += 1
        if len(running.calls) > 1 and self._skipped > self._skips:
            self._goal = min(self.pending + len(running.calls), _LINGER_MAX)
        loop.call_soon(self._linger, loop, self._next, 0)

    def _give_up_waiting(self, loop: asyncio.AbstractEventLoop) -> None:
        """Too few callers have returned in time: wait no longer."""
        skips = min(2 * self._skips + 1, _SKIPS_MAX) if self._goal else self._skips
        self._go_on(loop)
        self._skips = skips

    def _deliver(self, batch: Sequence[QueuedCall], outcomes: Outcomes) -> None:
        self.batches += 1
        self.calls += len(batch)
        now, failures = time.monotonic(), list[CountersignError]()
        for (_, _, future, begun, deadline), outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, REFUSED):
                failures.append(outcome)
            if future.done():
                continue
            deadline.left -= now - begun
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
        if failures:
            self.writes.fail(failures[-1], now)
            self.is_damaged |= any(map(is_damage, failures))
        if len(failures) < len(batch):
            self.writes.cells[DONE], self.writes.cells[SINCE] = now, 0.0

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._seconds != float("inf"):
            self._looking = True
            loop.call_later(self._seconds / _LOOKS, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer callers whose deadline has passed; one timer serves all calls."""
        now = time.monotonic()
        with self._gate:
            self._answer(self._late(self._queue, now), StorageUnavailable, now)
            running = self._running
            if running is not None:
                self._look_at(running, now)
            self._looking = running is not None or bool(self._queue or self._unmade)
        if self._looking:
            self._look_later(loop)

    def _look_at(self, running: Running, now: float) -> None:
        age, late = now - running.since, self._late(running.calls, now)
        if late and self._writes and running.give_up():
            # Nothing of it is committed: calls that still have time are queued again.
            self._answer(late, StorageUnavailable, now)
            self._queue.extendleft(c for c in reversed(running.calls) if not c[2].done())
            self._abandon(running)
        elif late:
            self._answer(late, OutcomeUnknown if running.is_ending else StorageUnavailable, now)
        is_awaited = any(not call[2].done() for call in running.calls)
        if age >= self._seconds and not (is_awaited or running.is_abandoned):
            self._abandon(running)
        if age >= self._seconds / 2 and not running.is_said:
            running.is_said = True
            event = "commit_stuck" if running.is_ending else "query_stuck"
            _log.error(event, lane=self.lane, seconds=round(age, 1), waiting=self.pending)

    def _late(self, calls: Iterable[QueuedCall], now: float) -> list[QueuedCall]:
        return [c for c in calls if now - c[3] >= c[4].left and not c[2].done()]

    def _answer(self, calls: Sequence[QueuedCall], kind: type[Retryable], now: float) -> None:
        # An unknown outcome stays one, whatever the cause.
        cause = self.writes.refusal(now) if kind is StorageUnavailable else None
        for _, _, future, begun, deadline in calls:
            deadline.left -= now - begun
            future.set_exception(cause or kind(retry_after=RETRY_SECONDS))

    def _abandon(self, running: Running) -> None:
        """No caller waits for this batch any more; refuse new calls until it has ended."""
        running.is_abandoned = True
        self.on_abandoned()
        self.worker.cut()
