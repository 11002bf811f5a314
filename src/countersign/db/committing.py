"""The batcher of the embedded database: statements on the event loop, the commit in a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

from countersign.db.batching import Batcher, Outcomes, QueuedCall, Running
from countersign.db.turn import Turn
from countersign.errors import StorageUnavailable


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
        if self._unmade:
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
        if self._unmade:  # what came while it waited
            self._make_all()
        running = self._take()
        batch = running.calls
        if not batch:  # they have all been answered
            self._turn.end()
            self._next()
            return
        self._turn.begin()
        try:
            outcomes = self._transactor.prepare(batch)
        except Exception as error:  # noqa: BLE001 - whatever happens, the next batch goes on
            self._turn.end()
            self._fail(batch, error)
            return
        if outcomes is None and loop.time() - since < self._patience:
            self._end()
            self._queue.extendleft(reversed(batch))
            self._turn.wait(loop, partial(self._begin, since))
        elif outcomes is None:
            self._turn.end()
            self._end()
            self._deliver(batch, self._transactor.give_up(batch))
            self._next()
        else:
            running.end()
            ended = loop.run_in_executor(self._thread, self._commit, batch, outcomes)
            ended.add_done_callback(lambda future: self._ended(batch, future))

    def _abandon(self, running: Running) -> None:
        super()._abandon(running)
        waiting = [call for call in self._queue if not call[2].done()]
        self._answer(waiting, StorageUnavailable, time.monotonic())
        self._queue.clear()

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
        self._end()
        self._deliver(batch, future.result())
        loop = self._loop
        assert loop is not None  # noqa: S101 - calls come after start()
        loop.call_soon(self._linger, loop, self._next, 0)

    def _fail(self, batch: Sequence[QueuedCall], error: BaseException) -> None:
        self._end()
        self._deliver(batch, [error] * len(batch))
        self._next()
