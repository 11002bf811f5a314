"""Lines: those who want the same thing stand in one line, and looks at one thing are one look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from countersign.deadline import shared, within_deadline
from countersign.errors import Overloaded

T = TypeVar("T")


@dataclass(slots=True)
class _Line:
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    inside: int = 0


class Lines:
    """A line for each key, of bounded length: one at a time has its turn."""

    def __init__(
        self, waiting_max: int, retry_seconds: int = 1, *, of_database: bool = False
    ) -> None:
        """`waiting_max` may wait in one line; one more is refused, for so many seconds.

        `of_database`: who has the turn waits for the database alone, and so do those behind.
        """
        self._of_database = of_database
        self._waiting_max = waiting_max
        self._retry_seconds = retry_seconds
        self._lines: dict[Hashable, _Line] = {}

    @asynccontextmanager
    async def turn(self, key: Hashable) -> AsyncIterator[bool]:
        """Wait for the turn, and have it until the block ends; returns whether others came before.

        Raises:
            Overloaded: the line is full.
            StorageUnavailable: the request has waited for the database for too long.
        """
        line = self._lines.setdefault(key, _Line())
        if line.inside > self._waiting_max:
            raise Overloaded(retry_after=self._retry_seconds)
        waits = line.inside > 0
        line.inside += 1
        try:
            taken = line.turn.acquire()
            await (within_deadline(taken) if waits and self._of_database else taken)
            try:
                yield waits
            finally:
                line.turn.release()
        finally:
            line.inside -= 1
            if not line.inside:
                del self._lines[key]


class Looks:
    """What many ask at the same moment is done once, for all of them."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[Any]] = {}

    async def join(self, key: Hashable, look: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What the look under this key finds that is running now; if there is none, this one.

        An error goes to all of them. It runs to its end, also if its first caller gives up.
        """
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = shared(look())
            running.add_done_callback(lambda _: self._running.pop(key))
        found: T = await within_deadline(asyncio.shield(running))
        return found
