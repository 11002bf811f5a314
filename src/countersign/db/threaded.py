"""Batchers that hand their batches to a thread."""

from __future__ import annotations

import asyncio
import threading
import time
from abc import abstractmethod
from queue import Empty, SimpleQueue
from typing import Final

from countersign.db.batching import LINGER_MAX, Batcher, Outcomes, Running
from countersign.db.engine import WHERE
from countersign.db.workers import ReadingWorker, WritingWorker

_HELD_TIMES: Final = 2
"""How many times as long as the last batch took the next one waits for callers, at most."""
_HELD_SECONDS: Final = (0.0005, 0.005)
"""The least and the most that this may be."""
_SKIPS_MAX: Final = 31
"""So many batches at most wait for no one, where callers did not come."""


class Threaded(Batcher):
    """Hands batches to a thread of its own, one after the other.

    Under load those who have just been answered soon ask again. If the next batch began at once,
    half of them would wait for it while the other half is collected, and all that is paid for a
    batch would be paid twice as often. So it waits until as many wait as were answered, for twice
    as long as the last one took at most; and less and less often where they do not come.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._busy = False
        self._idle = asyncio.Event()
        self._skipped = self._skips = 0
        self._taken: SimpleQueue[tuple[Running, Outcomes] | None] = SimpleQueue()
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
        self._go_on(self._loop)
        while self._busy or self._queue:
            self._idle.clear()
            await self._idle.wait()
        self._taken.put(None)
        await asyncio.to_thread(self._thread.join)

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
        if self._queue:
            self._begin()
        else:
            self._busy = False
            self._idle.set()

    def _begin(self) -> None:
        running = self._take()
        if running.calls:
            self._taken.put((running, ()))
        else:  # they have all been answered
            self._next()

    @abstractmethod
    def _do(self, running: Running, outcomes: Outcomes) -> Outcomes:
        """What the thread does; `outcomes` are those of what was done on the loop before."""

    def _work(self) -> None:
        WHERE.lane = self.lane
        loop, seconds = self._loop, None
        assert loop is not None  # noqa: S101 - start() sets it before the thread begins
        while True:
            try:
                taken = self._taken.get(timeout=seconds)
            except Empty:
                seconds = None
                loop.call_soon_threadsafe(self._give_up_waiting, loop)
                continue
            if taken is None:
                return
            running, outcomes = taken
            try:
                outcomes = self._do(running, outcomes)
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
        # Those of a batch that was given up have their answers, or are in the queue.
        if not running.is_given_up:
            self._deliver(running.calls, outcomes)
        self._skipped += 1
        if len(running.calls) > 1 and self._skipped > self._skips:
            self._goal = min(self.pending + len(running.calls), LINGER_MAX)
        loop.call_soon(self._linger, loop, self._next, 0)

    def _go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        super()._go_on(loop)
        self._skips = self._skipped = 0

    def _give_up_waiting(self, loop: asyncio.AbstractEventLoop) -> None:
        """It has taken too long for as many to come as were answered."""
        skips = min(2 * self._skips + 1, _SKIPS_MAX) if self._goal else self._skips
        self._go_on(loop)
        self._skips = skips


class ThreadBatcher(Threaded):
    """Works on batches in its thread: for what may take long, or waits for a network."""

    def __init__(self, name: str, worker: ReadingWorker | WritingWorker) -> None:
        super().__init__(name)
        self._worker = worker

    def _do(self, running: Running, outcomes: Outcomes) -> Outcomes:  # noqa: ARG002 - there are none
        return self._worker(running)

    def _gives_up(self, running: Running) -> bool:
        return self._worker.writes and running.give_up()

    def _abandon(self, running: Running) -> None:
        super()._abandon(running)
        self._worker.cut()
