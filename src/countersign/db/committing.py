"""The batcher of the embedded database: statements on the event loop, the commit in a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial

from countersign.db.batching import Outcomes, QueuedCall, Running
from countersign.db.threaded import Threaded
from countersign.db.turn import Turn
from countersign.db.workers import EmbeddedWorker
from countersign.errors import StorageUnavailable


class CommitBatcher(Threaded):
    """Does the statements on the event loop, and only waits for the disk in a thread.

    Statements are short, but a thread that does them one by one has to win the interpreter's lock
    back after each; a commit is one call that may take long.
    """

    def __init__(
        self, name: str, transactor: EmbeddedWorker, patience_seconds: float, turn: Turn
    ) -> None:
        super().__init__(name)
        self._transactor = transactor
        self._patience = patience_seconds
        self._turn = turn

    def start(self) -> None:
        """Begin, and hear whose turn it is."""
        super().start()
        self._turn.start(asyncio.get_running_loop())

    def _begin(self) -> None:
        loop = self._loop
        assert loop is not None  # noqa: S101 - calls come after start()
        if self._turn.is_anothers():
            self._turn.wait(loop, partial(self._prepare, loop.time()))
        else:
            self._prepare(loop.time())

    def _prepare(self, since: float) -> None:
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
            self._refuse(batch, [error] * len(batch))
            return
        if outcomes is None and loop.time() - since < self._patience:
            self._end()
            self._queue.extendleft(reversed(batch))
            self._turn.wait(loop, partial(self._prepare, since))
        elif outcomes is None:
            self._turn.end()
            self._refuse(batch, self._transactor.give_up(batch))
        else:
            running.end()
            self._taken.put((running, outcomes))

    def _refuse(self, batch: Sequence[QueuedCall], outcomes: Outcomes) -> None:
        self._end()
        self._deliver(batch, outcomes)
        self._next()

    def _do(self, running: Running, outcomes: Outcomes) -> Outcomes:
        try:
            return self._transactor.commit(running.calls, outcomes)
        finally:
            self._turn.end()

    def _abandon(self, running: Running) -> None:
        super()._abandon(running)
        waiting = [call for call in self._queue if not call[2].done()]
        self._answer(waiting, StorageUnavailable, time.monotonic())
        self._queue.clear()
