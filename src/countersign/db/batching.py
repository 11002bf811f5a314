"""Batchers: concurrent calls on the event loop become one transaction or one query.

A caller awaits its own outcome. The calls that arrive while one batch is being worked on form the
next: under load the cost of a commit is shared, and a lone call waits for no one. Why there are
three kinds, and which engine uses which, is in docs/decisions/storage.md.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import structlog
from msgspec import Struct, field
from sqlalchemy import Connection

from countersign.db.engine import is_damage
from countersign.errors import (
    CountersignError,
    OutcomeUnknown,
    Overloaded,
    Retryable,
    StorageUnavailable,
)
from countersign.patience import PATIENCE, RETRY_SECONDS, TimeLeft

T = TypeVar("T")
R = TypeVar("R")

BatchAct: TypeAlias = Callable[[Connection, Sequence[T]], Sequence[R | CountersignError]]
"""Does something for many items in one transaction: one outcome per item, in the same order.

An outcome that is a CountersignError refuses that item alone. An act that raises has done nothing
for any of them.
"""

_apart: Final = set[BatchAct[Any, Any]]()


def apart(act: BatchAct[T, R]) -> BatchAct[T, R]:
    """Behind a pooler, have it done after the look-ups, in a transaction of its own.

    For a query that locks rows: they are not to be locked while others look something up.
    """
    _apart.add(act)
    return act


def is_apart(call: QueuedCall) -> bool:
    """Whether the act of this call is done apart."""
    return call[0] in _apart


Make: TypeAlias = Callable[[Sequence[T]], Sequence[R]]
"""Makes items ready for their act on the event loop, before there is a transaction for them."""

QueuedCall: TypeAlias = "tuple[BatchAct[Any, Any], Any, asyncio.Future[Any], float, TimeLeft]"
"""An act, its item, the future of the caller, when it was called, and how long that may take."""
Outcomes: TypeAlias = Sequence[object]
"""One per call: its result, or the exception that it ended with."""

_BATCH_MAX: Final = 512
LINGER_MAX: Final = 64
_WAITING_PART: Final = 0.4
"""Of its time, so much a request may wait until its batch begins. Less than half: a call that has
waited for so long says that the database does not respond."""
_NEWEST: Final = 0.2
"""The part that the last batch has in how long one takes, where that was less than before."""
_LOOKS: Final = 40
"""How often waiting calls are looked at while one of them may wait."""

_log: Final = structlog.get_logger("countersign.storage")


class GivenUp(CountersignError):
    """The callers of a batch have another answer: nothing of it may be committed."""


class Running(Struct, eq=False):
    """A batch that is being worked on."""

    calls: Sequence[QueuedCall]
    since: float = field(default_factory=time.monotonic)
    is_abandoned: bool = False
    """Whether no one waits for its end any more."""
    is_said: bool = False
    is_given_up: bool = False
    is_ending: bool = False
    """Whether a commit was begun, so that its effect is not known before the end."""
    _gate: threading.Lock = field(default_factory=threading.Lock)

    def end(self) -> None:
        """Call this before a commit is begun.

        Raises GivenUp if the callers have been answered.
        """
        with self._gate:
            if self.is_given_up:
                raise GivenUp
            self.is_ending = True

    def give_up(self) -> bool:
        """Let nothing of it be committed any more; False if that has begun."""
        with self._gate:
            self.is_given_up = self.is_given_up or not self.is_ending
            return self.is_given_up


class Batcher(ABC):
    """Collects calls; how a batch is worked on is up to the kind."""

    lane = ""
    """Its name, in log lines and metrics."""
    writes = False
    """Whether what requests have it do has an effect."""

    def __init__(self) -> None:
        self._seconds = self._background = float("inf")
        self._looking = False
        self._gate = threading.Lock()
        self._running: Running | None = None
        self._stuck = False
        """Whether a batch that was abandoned has not ended: nothing is queued behind it."""
        self.failure: CountersignError | None = None
        """What the last batch failed of, where that was the database; None: it was done."""
        self.damage: StorageUnavailable | None = None
        """Seen once, it is there until the process ends."""
        self.on_abandoned: Callable[[], None] = lambda: None
        """Called when what a batch waits for does not respond."""
        self._queue: deque[QueuedCall] = deque()
        self._unmade: dict[Make[Any, Any], list[QueuedCall]] = {}
        self._goal = 0
        """For so many calls the next batch waits, but not for long: see `Threaded`."""
        self._held: list[Callable[[], None]] = []
        """What goes on then."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = False
        self._took = 0.0
        """The seconds that a batch takes at the moment."""
        self.batches = 0
        self.calls = 0

    def start(self) -> None:
        """Begin; called on the event loop that the calls will come from."""
        self._loop = asyncio.get_running_loop()

    def limit(self, seconds: float, background: float) -> None:
        """From now on a call waits so long at most: `background` where no request is answered."""
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

        Its exception is the act's refusal of this item. With `make` the act gets what that makes
        of the item, together with others, while the batch before this one is being worked on.

        Raises:
            Overloaded: so many calls are waiting that its batch would begin too late for a request
                that has written nothing yet, or the batcher is closing.
            StorageUnavailable: the calls before this one have got no answer.
        """
        loop = self._loop
        if loop is None or self._closing:
            raise Overloaded
        if self._stuck:
            raise StorageUnavailable(retry_after=RETRY_SECONDS)
        patience = PATIENCE.get()
        if patience is None:
            patience = TimeLeft(self._background)
        elif not patience.has_written:
            if self._running is not None:  # else it finds out how long it takes
                self._refuse_late(self._running, patience.left * _WAITING_PART)
            patience.has_written = self.writes
        future: asyncio.Future[R] = loop.create_future()
        call: QueuedCall = (act, item, future, time.monotonic(), patience)
        if not self._looking:
            self._look_later(loop)
        if make is None:
            self._queue.append(call)
            self._wake(loop)
        else:
            unmade = self._unmade.setdefault(make, [])
            if not unmade:
                loop.call_soon(self._linger, loop, partial(self._make, make), 0)
            unmade.append(call)
        if self._held and self.pending >= self._goal:
            self._go_on(loop)
        return future

    def _refuse_late(self, running: Running, seconds: float) -> None:
        """Raise Overloaded if a batch of calls that come now would begin later than that."""
        age = time.monotonic() - running.since
        took = max(self._took, age)
        wait = took - age + self.pending // _BATCH_MAX * took
        if wait > seconds:
            raise Overloaded(retry_after=math.ceil(wait))

    def _go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for no more calls."""
        held, self._held, self._goal = self._held, [], 0
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
        # As `pending` has it: each request comes by here twice, and a property is one call more.
        waiting = len(self._queue) + sum(map(len, self._unmade.values()))
        if seen < waiting < LINGER_MAX:
            loop.call_soon(self._linger, loop, then, waiting)
        elif waiting < self._goal:
            self._held.append(then)
        else:
            then()

    def _take(self) -> Running:
        """The next batch, which is being worked on from now on."""
        queue = self._queue
        with self._gate:
            taken = [queue.popleft() for _ in range(min(len(queue), _BATCH_MAX))]
            # A call that has been answered must not take effect.
            running = Running([call for call in taken if not call[2].done()])
            self._running = running if running.calls else None
            self._goal = 0
        return running

    def _end(self) -> None:
        """Whatever became of the batch, the next one can be taken."""
        with self._gate:
            running, self._running, self._stuck = self._running, None, False
        if running is not None:
            took = time.monotonic() - running.since
            self._took = max(took, self._took + _NEWEST * (took - self._took))
        if running is not None and running.is_said:
            seconds = round(time.monotonic() - running.since, 1)
            _log.warning("database_responds", lane=self.lane, seconds=seconds)

    def _deliver(self, batch: Sequence[QueuedCall], outcomes: Outcomes) -> None:
        self.batches += 1
        self.calls += len(batch)
        now, failure = time.monotonic(), None
        for (_, _, future, begun, patience), outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, StorageUnavailable | OutcomeUnknown):
                failure = outcome
            if future.done():
                continue
            patience.left -= now - begun
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
        self.failure = failure
        if isinstance(failure, StorageUnavailable) and is_damage(failure):
            self.damage = failure

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._seconds != float("inf"):
            self._looking = True
            loop.call_later(self._seconds / _LOOKS, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer those who have waited for too long; one timer serves all of them."""
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
        if late and self._gives_up(running):
            # Nothing of it is committed: those who still have time are done again.
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
        if calls:
            self.failure = kind()
        for _, _, future, begun, patience in calls:
            patience.left -= now - begun
            future.set_exception(kind(retry_after=RETRY_SECONDS))

    def _gives_up(self, running: Running) -> bool:  # noqa: ARG002 - those that write do
        """Whether nothing of the batch will have an effect."""
        return False

    def _abandon(self, running: Running) -> None:
        """No one waits for this batch any more; what comes is refused until it has ended."""
        running.is_abandoned = self._stuck = True
        self.on_abandoned()


class LoopBatcher(Batcher):
    """Works on a batch on the event loop itself: for short look-ups in an embedded database."""

    def __init__(self, run: Callable[[Running], Outcomes]) -> None:
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
        running = self._take()
        if running.calls:
            outcomes = self._run(running)
            self._end()
            self._deliver(running.calls, outcomes)
        if self._queue and self._loop is not None:
            self._wake(self._loop)
