"""Taking turns to write to the embedded database, among the workers of one server.

SQLite admits one writer at a time, in no order, and notifies no waiting writer. So
workers note in shared memory who writes and who waits, and a worker that has written wakes the next
one that waits. This is courtesy, not a lock: SQLite's own lock protects the database, and a worker
that is not woken retries after a while. So a worker that dies in its turn keeps no other waiting.
"""

from __future__ import annotations

import asyncio
import mmap
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

RETRY_SECONDS: Final = 0.005
"""How long to wait for a wake-up before looking anyway."""
_HAND_OVER_SECONDS: Final = 0.001
"""How long the turn stays reserved for a worker that was woken; a busy machine may need that
long."""
_LOOKS: Final = 20
"""After this many looks, assume that the other writer has died."""
_DRAINED_BYTES: Final = 64
_WAITS: Final = 0
_WRITES: Final = 1
"""The two cells of each worker."""


class Turn:
    """The turns of a process that shares the database with commands only."""

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to hear of the others, on this loop."""

    def is_anothers(self) -> bool:
        """Whether another worker writes, or has waited for longer."""
        return False

    def begin(self) -> None:
        """This process writes now, or tries to."""

    def wait(self, loop: asyncio.AbstractEventLoop, then: Callable[[], None]) -> None:
        """Call `then` when another has written, or when it is time to try anyway."""
        loop.call_later(RETRY_SECONDS, then)

    def end(self) -> None:
        """This process does not write any more. It may be called in any thread."""


class SharedTurn(Turn):
    """The turns of one worker of several; each worker changes only its own two cells."""

    def __init__(self, cells: mmap.mmap, pipes: Sequence[tuple[int, int]], own: int) -> None:
        self._cells = cells
        self._pipes = pipes
        self._own = own
        self._then: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._looks = 0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Listen for wake-ups from other workers."""
        loop.add_reader(self._pipes[self._own][0], self._woken)

    def is_anothers(self) -> bool:
        """Whether any other waits or writes."""
        return self._others(_WAITS) or self._others(_WRITES)

    def begin(self) -> None:
        """Note that this process writes."""
        self._set(waits=0, writes=1)

    def wait(self, loop: asyncio.AbstractEventLoop, then: Callable[[], None]) -> None:
        """Note that this process waits, and schedule a look in case no wake-up comes."""
        tried = self._cells[2 * self._own + _WRITES]
        self._set(waits=1, writes=0)
        self._then, self._looks = then, 0
        if tried or self._others(_WRITES):
            seconds = RETRY_SECONDS
        else:
            seconds = _HAND_OVER_SECONDS if self._others(_WAITS) else 0.0
        self._timer = loop.call_later(seconds, self._look, loop)

    def end(self) -> None:
        """Note it, and wake the next in the circle who waits."""
        self._set(waits=0, writes=0)
        number = len(self._pipes)
        for other in ((self._own + step) % number for step in range(1, number)):
            if self._cells[2 * other + _WAITS]:
                with suppress(BlockingIOError):  # it has been woken often and not looked
                    os.write(self._pipes[other][1], b".")
                return

    def _set(self, *, waits: int, writes: int) -> None:
        self._cells[2 * self._own + _WAITS] = waits
        self._cells[2 * self._own + _WRITES] = writes

    def _others(self, cell: int) -> bool:
        return any(self._cells[2 * o + cell] for o in range(len(self._pipes)) if o != self._own)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._looks += 1
        if self._others(_WRITES) and self._looks < _LOOKS:
            self._timer = loop.call_later(RETRY_SECONDS, self._look, loop)
        else:
            self._go()

    def _woken(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._pipes[self._own][0], _DRAINED_BYTES)
        self._go()

    def _go(self) -> None:
        then, self._then = self._then, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if then is not None:
            then()


class SharedTurns:
    """The shared turns of several workers, created before they are forked."""

    def __init__(self, workers: int) -> None:
        # For each worker: whether it waits, and whether it writes.
        self._cells = mmap.mmap(-1, 2 * workers)
        self._pipes = [os.pipe() for _ in range(workers)]
        for end in (end for pipe in self._pipes for end in pipe):
            os.set_blocking(end, False)

    def of(self, worker: int) -> SharedTurn:
        """The turns of one worker, counted from 0."""
        return SharedTurn(self._cells, self._pipes, worker)

    def forget(self, worker: int) -> None:
        """No worker waits for a dead one."""
        self._cells[2 * worker : 2 * worker + 2] = bytes(2)
