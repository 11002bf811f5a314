"""The worker and the batchers of the embedded database: its statements run on the event loop.

They are short, and a thread that did them one by one would have to win the interpreter's lock back
after each. A commit is one call that may take long: a thread waits for the disk.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial

from sqlalchemy import URL, Connection, RootTransaction
from sqlalchemy.exc import DBAPIError

from countersign.base.db.batch import Outcomes, QueuedCall, Running
from countersign.base.db.batching import Batcher
from countersign.base.db.bulk import allow_late, do_late
from countersign.base.db.engine import (
    BUSY_TIMEOUT_SECONDS,
    is_unknown_end,
    translate,
    without_busy_timeout,
)
from countersign.base.db.turn import Turn
from countersign.base.db.workers import BatchWorker, log_error
from countersign.base.deadline import RETRY_SECONDS
from countersign.base.errors import OutcomeUnknown, Overloaded, StorageUnavailable
from countersign.base.loops import log_failure


class EmbeddedWorker(BatchWorker):
    """Transactions in two steps: statements on the event loop, the commit in a thread."""

    writes = True

    def __init__(self, url: URL, turn: Turn) -> None:
        super().__init__(url)
        self.turn = turn
        self.on_commit: Callable[[], None] = lambda: None
        self.on_rollback: Callable[[], None] = lambda: None
        """Called after each transaction, in the thread that ends it, before anyone is answered."""

    def prepare(self, running: Running) -> bool:
        """Begin, and do the calls; a failure of theirs is dealt with in the thread.

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
                allow_late(self._connection)  # and nothing is left of what was put off
                return False
            running.failure = error
        return True

    def __call__(self, running: Running) -> Outcomes:
        """Commit what was prepared; after a failure each call is done alone."""
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
        do_late(transaction.connection)
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

    def _next(self) -> None:
        running = self._take()
        if running.calls:
            outcomes = self.worker(running)
            self._end()
            self._deliver(running.calls, outcomes)
        if self._queue and self._loop is not None:
            self._loop.call_soon(self._linger, self._loop, self._next, 0)
        else:
            self._busy = False
            if self._closing:
                self._idle.set()


class CommitBatcher(Batcher):
    """Does the statements in its turn, and only waits for the disk in its thread."""

    worker: EmbeddedWorker

    def start(self) -> None:
        """Begin, and hear whose turn it is."""
        super().start()
        self.worker.turn.start(asyncio.get_running_loop())

    def _begin(self) -> None:
        loop, turn = self._loop, self.worker.turn
        assert loop is not None  # noqa: S101 - calls come after start()
        if turn.is_anothers():
            turn.wait(loop, partial(self._prepare, loop, loop.time()))
        else:
            self._prepare(loop, loop.time())

    def _prepare(self, loop: asyncio.AbstractEventLoop, since: float) -> None:
        """Do what waits, or wait for a turn; `since` is when that began."""
        if self._unmade:  # what came while it waited
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
        elif loop.time() - since < BUSY_TIMEOUT_SECONDS:
            self._end()
            self._queue.extendleft(reversed(running.calls))
            turn.wait(loop, partial(self._prepare, loop, since))
        else:
            # Another process holds the write lock and does not let go.
            turn.end()
            self._end()
            refusal = Overloaded(retry_after=int(BUSY_TIMEOUT_SECONDS))
            self._deliver(running.calls, [refusal] * len(running.calls))
            self._next()

    def _abandon(self, running: Running) -> None:
        """No one can break off a commit: those that wait behind it are refused at once."""
        running.is_abandoned = True
        self.on_abandoned()
        waiting = [call for call in self._queue if not call[2].done()]
        self._answer(waiting, StorageUnavailable, time.monotonic())
        self._queue.clear()
