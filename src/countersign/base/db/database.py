"""The database as the acts see it: `write`, `read` and `scan`, each behind a batcher."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any, Concatenate, Final, NoReturn, Self, TypeAlias

from sqlalchemy import URL, Connection, RootTransaction
from sqlalchemy.exc import DBAPIError

from countersign.base.db.batching import BATCH_MAX, Batcher
from countersign.base.db.engine import (
    BUSY_TIMEOUT_SECONDS,
    CHECKPOINT_PAGES,
    Purpose,
    damaged,
    disk_full,
    is_embedded,
    is_unknown_end,
    open_engine,
    quick_check,
    translate,
    without_busy_timeout,
)
from countersign.base.db.statements import DriverStatement, allow_deferred, run_deferred
from countersign.base.db.turn import Turn
from countersign.base.db.workers import (
    BatchAct,
    BatchWorker,
    Make,
    Outcomes,
    QueuedCall,
    Running,
    WritingWorker,
    log_error,
    say_damage,
)
from countersign.base.db.writes import CAUSE, DONE, FAILED, FULL, LOCKED, TRY_SECONDS, Writes
from countersign.base.deadline import RETRY_SECONDS
from countersign.base.errors import (
    Blocked,
    CountersignError,
    OutcomeUnknown,
    Overloaded,
    StorageUnavailable,
)
from countersign.base.generics import P, R, T
from countersign.base.loops import forever, log_failure

# The worker and the batchers of the embedded database: its statements run on the event loop. They
# are short, and a thread that did them one by one would have to win the interpreter's lock back
# after each. A commit is one call that may take long: a thread waits for the disk.


class EmbeddedWorker(BatchWorker):
    """Transactions in two steps: statements on the event loop, the commit in a thread."""

    writes = True

    def __init__(self, url: URL, turn: Turn) -> None:
        super().__init__(url)
        self.turn = turn
        self.written = asyncio.Event()
        """Set at each fourth batch."""
        self.on_commit: Callable[[], None] = lambda: None
        self.on_rollback: Callable[[], None] = lambda: None
        """Called after each transaction, in the thread that ends it, before anyone is answered."""

    def prepare(self, running: Running) -> bool:
        """Begin a transaction and run the calls; the thread handles their failure.

        False if another process is writing: try again later.
        """
        try:
            if self._connection is None:
                self._connection = without_busy_timeout(self._open())
            self._transaction = self._connection.begin()
            running.outcomes = super()._do(self._connection, running, running.calls)
        except Exception as error:  # noqa: BLE001 - every caller gets its answer
            is_locked = isinstance(error, DBAPIError) and isinstance(translate(error), Overloaded)
            if self._connection is not None and is_locked:
                self._connection.rollback()
                allow_deferred(self._connection)  # and nothing is left of what was put off
                return False
            running.failure = error
        return True

    def __call__(self, running: Running) -> Outcomes:
        """Commit the prepared batch; after a failure, run each call alone."""
        try:
            if running.failure is not None:
                return self._recover(running, running.failure)
            try:
                self._commit(self._transaction)
            except Exception as error:  # noqa: BLE001 - every caller gets its answer
                return self._recover(running, error)
            return running.outcomes
        finally:
            self.turn.end()

    def _do(
        self, connection: Connection, running: Running, calls: Sequence[QueuedCall]
    ) -> Outcomes:
        transaction = connection.begin()
        outcomes = super()._do(connection, running, calls)
        self._commit(transaction)
        return outcomes

    def _commit(self, transaction: RootTransaction) -> None:
        run_deferred(transaction.connection)
        try:
            transaction.commit()
        except DBAPIError as error:
            if not is_unknown_end(error):
                raise
            unknown = OutcomeUnknown(retry_after=RETRY_SECONDS)
            log_error(error, unknown)
            raise unknown from error
        try:
            self.on_commit()
        except Exception as error:  # noqa: BLE001 - what was done lasts, and is not done again
            log_failure("unexpected_error", error)

    def _discard(self) -> None:
        super()._discard()
        self.on_rollback()


class LoopBatcher(Batcher):
    """Works on a batch on the event loop itself: for short look-ups."""

    def start(self) -> None:
        """Begin; there is no thread."""
        self._loop = asyncio.get_running_loop()
        self._looking = True  # nothing looks at a batch: the loop is busy until it has ended

    def _next(self) -> None:
        taken = [self._queue.popleft() for _ in range(min(len(self._queue), BATCH_MAX))]
        calls = [call for call in taken if not call[2].done()]
        if calls:
            self._deliver(calls, self.worker(Running(calls)))
        if self._queue and self._loop is not None:
            self._loop.call_soon(self._linger, self._loop, self._next, 0)
        else:
            self._busy = False
            if self._closing:
                self._idle.set()


class CommitBatcher(Batcher):
    """Runs statements on the event loop when it is this worker's turn; its thread only commits."""

    worker: EmbeddedWorker

    def start(self) -> None:
        """Begin, and hear whose turn it is."""
        super().start()
        self.worker.turn.start(asyncio.get_running_loop())

    def _begin(self) -> None:
        loop, turn = self._loop, self.worker.turn
        assert loop is not None  # noqa: S101 - calls come after start()
        if self.batches % 4 == 0:
            self.worker.written.set()
        if turn.is_anothers():
            turn.wait(loop, partial(self._prepare, loop, loop.time()))
        else:
            self._prepare(loop, loop.time())

    def _prepare(self, loop: asyncio.AbstractEventLoop, since: float) -> None:
        """Prepare the queued calls, or wait for a turn; `since` is when the first attempt began."""
        if self._unmade:  # calls that came while it waited
            self._make_all()
        running, turn = self._take(), self.worker.turn
        if not running.calls:  # they have all been answered
            turn.end()
            self._next()
            return
        turn.begin()
        try:
            is_prepared = self.worker.prepare(running)
        except Exception as error:  # noqa: BLE001 - whatever happens, the next batch goes on
            running.failure, is_prepared = error, True
        if is_prepared:
            running.end()
            self._taken.put(running)
        elif (now := loop.time()) - since < BUSY_TIMEOUT_SECONDS:
            self.writes.cells[FAILED], self.writes.cells[CAUSE] = now, LOCKED
            self._end()
            self._queue.extendleft(reversed(running.calls))
            turn.wait(loop, partial(self._prepare, loop, since))
        else:
            # Another process holds the write lock and does not let go.
            turn.end()
            self._end()
            refusal = self.writes.refusal(now) or Overloaded(retry_after=int(BUSY_TIMEOUT_SECONDS))
            self._deliver(running.calls, [refusal] * len(running.calls))
            self._next()

    def _abandon(self, running: Running) -> None:
        """A commit cannot be cancelled: refuse the calls queued behind it at once."""
        running.is_abandoned = True
        self.on_abandoned()
        waiting = [call for call in self._queue if not call[2].done()]
        self._answer(waiting, StorageUnavailable, time.monotonic())
        self._queue.clear()


Act: TypeAlias = Callable[Concatenate[Connection, P], R | CountersignError]
"""A function on a connection; an error that it returns is a refusal."""
_Plain: TypeAlias = tuple[Callable[..., Any], Any, Any]

# Neither changes anything that is used. The first writes a page. The second needs the lock, the
# right and the server of a write, and its transaction commits as others do, to a standby too.
_touch: Final = DriverStatement("PRAGMA user_version = 0")
_touch_on_server: Final = DriverStatement("DELETE FROM log_pending WHERE false")
_COPY_SECONDS: Final = 1.0
"""The deadline of a copy, which takes some 30 ms; while it lasts, the log grows."""
_COPIED_FROM: Final = CHECKPOINT_PAGES - 1500
"""Pages in the log; under full load the rest fills in 100 ms."""
_EMPTYING_ATTEMPTS: Final = 10
_EMPTYING_PAUSE_SECONDS: Final = 0.2


class Database:
    """One database behind a batcher for each lane; the engine decides the kind of each batcher."""

    is_full = False
    """Whether the disk is full: writes are refused, reads and sealing continue."""

    def __init__(self, url: URL, turn: Turn | None = None, writes: Writes | None = None) -> None:
        """`turn` and `writes` are shared with the other workers of a server."""
        self.url = url
        self._embedded: EmbeddedWorker | None = None
        if is_embedded(url):
            self._embedded = EmbeddedWorker(url, turn or Turn())
            self._write: Batcher = CommitBatcher("write", self._embedded)
            self._read: Batcher = LoopBatcher("read", BatchWorker(url))
            self._sequence: Batcher = self._write
        else:
            self._write = Batcher("write", WritingWorker(url, answers=True))
            self._read = Batcher("read", BatchWorker(url))
            self._sequence = Batcher("seal", WritingWorker(url, answers=False))
        self._writes = self._write.writes = writes or Writes()
        self._scan = Batcher("scan", BatchWorker(url))
        batchers = [self._write, self._read, self._scan, self._sequence]
        self._batchers = {batcher.lane: batcher for batcher in batchers}
        for batcher in self._batchers.values():
            batcher.on_abandoned = self._renew
        if self._embedded:
            self._batchers["copy"] = Batcher("copy", BatchWorker(url))

    def on_end(self, commit: Callable[[], None], rollback: Callable[[], None]) -> None:
        """Have these called after each transaction of the embedded database, in its thread."""
        if self._embedded is not None:
            self._embedded.on_commit, self._embedded.on_rollback = commit, rollback

    def limit_waiting(self, seconds: float) -> None:
        """From now on limit every wait: for a server, not for a command.

        A request has one deadline for all its calls, see `deadline`. Any other call may take
        `seconds`, a scan three times as long, a copy of the log at most a second.
        """
        for lane, batcher in self._batchers.items():
            most = {"scan": 3 * seconds, "copy": _COPY_SECONDS}.get(lane, seconds)
            batcher.limit(min(seconds, most), most)

    def _renew(self) -> None:
        """All connections may lead to a server that does not respond: use others."""
        for batcher in self._batchers.values():
            batcher.worker.is_stale = True

    async def __aenter__(self) -> Self:
        for batcher in self._batchers.values():
            batcher.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for batcher in self._batchers.values():
            await batcher.close()
        # With the last connection the embedded database puts its log into the database file.
        for batcher in self._batchers.values():
            batcher.worker.end()

    async def write(self, act: Act[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run `act(connection, …)` in a transaction shared with others; durable on return.

        A CountersignError that the act returns refuses it, but its writes stay; one that it raises
        also rolls them back.
        """
        return await self._writing().call(_run_each, (act, args, kwargs))

    def _writing(self) -> Batcher:
        """The batcher for writes, while they are accepted and durable."""
        if self.is_full or any(batcher.is_damaged for batcher in self._batchers.values()):
            raise self.damage or disk_full()
        return self._write

    async def write_batched(
        self, act: BatchAct[Any, R], item: T, make: Make[T, Any] | None = None
    ) -> R:
        """The same for an act on many items at once; see `batch.BatchAct`.

        With `make`, items are prepared before their transaction begins.
        """
        return await self._writing().call(act, item, make)

    async def read(self, act: Act[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Look something up by its key, in the turn of other look-ups."""
        return await self._read.call(_ask_each, (act, args, kwargs))

    async def read_batched(self, act: BatchAct[T, R], item: T) -> R:
        """Look something up by its key, in a query shared with others."""
        return await self._read.call(act, item)

    async def scan(self, act: Act[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Ask for something that may take long, such as a list."""
        return await self._scan.call(_ask_each, (act, args, kwargs))

    async def scan_batched(self, act: BatchAct[T, R], item: T) -> R:
        """Run a slow query once for all callers that ask for the same."""
        return await self._scan.call(act, item)

    async def sequence(self, act: Act[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Seal: an ordinary write on the embedded database, a separate transaction on PostgreSQL.

        Refused on a damaged database: published checkpoints would contradict the restored backup.
        """
        if self.damage is not None:
            raise self.damage
        return await self._sequence.call(_run_each, (act, args, kwargs))

    async def copy_log(self) -> NoReturn:
        """Copy the log of the embedded database into its file beside the writers, until cancelled.

        The commit that fills the log copies the rest, while every caller waits.
        """
        copy = partial(self._batchers["copy"].call, _ask_each, (_copy_log, (), {}))
        await forever("log_copy", copy, 60.0, self._embedded.written if self._embedded else None)

    async def empty_log(self) -> bool:
        """Empty the write-ahead log of the embedded database; False if that was not possible.

        Deleted rows are overwritten in the database file itself (secure_delete); copies of their
        pages can remain in the log until it is emptied, which must wait for other processes that
        read.
        """
        return not is_embedded(self.url) or await asyncio.to_thread(self._empty_log)

    def _empty_log(self) -> bool:
        engine = open_engine(self.url, Purpose.WRITE)
        with closing(engine.raw_connection()) as connection:
            cursor = connection.cursor()
            # No one can write while it waits for readers: often and briefly, not once and long.
            cursor.execute("PRAGMA busy_timeout=100")
            busy = True
            for left in reversed(range(_EMPTYING_ATTEMPTS)):
                busy = bool(cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
                if not busy or not left:
                    break
                time.sleep(_EMPTYING_PAUSE_SECONDS)
        engine.dispose()
        return not busy

    async def covered(self) -> None:
        """Wait until all data that can be read now is durable, also after a failover.

        On PostgreSQL, visible data may be on this server alone: if a commit is cancelled while it
        waits for its standby, its data becomes visible.
        """
        if not is_embedded(self.url):
            await self.write(_nothing)

    def oldest(self) -> dict[str, float]:
        """By lane: how many seconds the oldest call has waited."""
        return {name: batcher.oldest for name, batcher in self._batchers.items()}

    @property
    def trouble(self) -> Blocked | StorageUnavailable | None:
        """Why nobody is served at the moment; None: what is tried succeeds.

        Scans do not count: they may take long.
        """
        full = disk_full() if self.is_full else None
        is_late = any(lane.is_late for lane in {self._read, self._sequence} - {self._write})
        late = StorageUnavailable(retry_after=RETRY_SECONDS) if is_late else None
        return self.damage or full or late or self._writes.refusal(time.monotonic())

    async def try_writing(self) -> None:
        """Write something small if nobody has tried to for a while, which notes how it ended."""
        cells = self._writes.cells
        if time.monotonic() - max(cells[DONE], cells[FAILED]) > TRY_SECONDS / 2:
            with suppress(CountersignError):
                await self.write(_touch if is_embedded(self.url) else _touch_on_server)

    @property
    def full_at(self) -> float:
        """When the newest failure of a write was, if the disk was full for it; else 0."""
        return self._writes.cells[FAILED] if self._writes.cells[CAUSE] == FULL else 0.0

    async def look_for_damage(self) -> None:
        """Check the embedded database for damage; if there is any, refuse all later writes."""
        verdict = await asyncio.to_thread(self._quick_check)
        if verdict != "ok":
            say_damage(verdict)
            self._write.is_damaged = True

    def _quick_check(self) -> str:
        engine = open_engine(self.url, Purpose.LOOK)
        try:
            with closing(engine.raw_connection()) as connection:
                return quick_check(connection.driver_connection)
        finally:
            engine.dispose()

    @property
    def damage(self) -> StorageUnavailable | None:
        """Set once the database was seen to be damaged, until the process ends."""
        return damaged() if any(b.is_damaged for b in self._batchers.values()) else None

    def batches(self) -> dict[str, tuple[int, int, int]]:
        """By lane: completed batches, their calls, and calls waiting now."""
        return {name: (b.batches, b.calls, b.pending) for name, b in self._batchers.items()}


def _run_each(connection: Connection, calls: Sequence[_Plain]) -> list[Any]:
    return [act(connection, *args, **kwargs) for act, args, kwargs in calls]


def _ask_each(connection: Connection, calls: Sequence[_Plain]) -> list[Any]:
    """A read has nothing to roll back, so its error refuses that call alone."""
    outcomes: list[Any] = []
    for act, args, kwargs in calls:
        try:
            outcomes.append(act(connection, *args, **kwargs))
        except CountersignError as error:
            outcomes.append(error)
    return outcomes


def _copy_log(connection: Connection) -> None:
    with suppress(DBAPIError):  # the commit that copies the rest reports it
        used, copied = connection.exec_driver_sql("PRAGMA wal_checkpoint(NOOP)").one()[1:]
        # Once per log: only a commit empties it, and it may fill faster than it is copied.
        if _COPIED_FROM < used < CHECKPOINT_PAGES and not copied:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")


def _nothing(_: Connection) -> None:
    """An empty act: only the commit of its transaction matters."""
