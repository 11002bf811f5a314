"""One at a time for each key, and one run for all who ask the same at the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from countersign.base.deadline import shared, within_deadline
from countersign.base.errors import Overloaded

T = TypeVar("T")


@dataclass(slots=True)
class _Lock:
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    inside: int = 0


class KeyedLocks:
    """A lock for each key, for which a bounded number may wait."""

    def __init__(
        self, waiting_max: int, retry_seconds: int = 1, *, of_database: bool = False
    ) -> None:
        """`waiting_max` may wait for one key; one more is refused, for so many seconds.

        `of_database`: who has the turn waits for the database alone, and so do those behind.
        """
        self._of_database = of_database
        self._waiting_max = waiting_max
        self._retry_seconds = retry_seconds
        self._locks: dict[Hashable, _Lock] = {}

    @asynccontextmanager
    async def turn(self, key: Hashable) -> AsyncIterator[bool]:
        """Wait for the turn, and have it until the block ends; returns whether others came before.

        Raises:
            Overloaded: too many wait.
            StorageUnavailable: the request has waited for the database for too long.
        """
        lock = self._locks.setdefault(key, _Lock())
        if lock.inside > self._waiting_max:
            raise Overloaded(retry_after=self._retry_seconds)
        waits = lock.inside > 0
        lock.inside += 1
        try:
            taken = lock.turn.acquire()
            await (within_deadline(taken) if waits and self._of_database else taken)
            try:
                yield waits
            finally:
                lock.turn.release()
        finally:
            lock.inside -= 1
            if not lock.inside:
                del self._locks[key]


class SingleFlight:
    """What many ask at the same moment is done once, for all of them."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[Any]] = {}

    async def join(self, key: Hashable, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of what runs under this key; if nothing does, of what `begin` starts.

        An error goes to all of them. It runs to its end, also if its first caller gives up.
        """
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = shared(begin())
            running.add_done_callback(lambda _: self._running.pop(key))
        found: T = await within_deadline(asyncio.shield(running))
        return found
