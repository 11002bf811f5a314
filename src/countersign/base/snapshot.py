"""Concurrent callers share one read: values in memory, batched look-ups, one run for a key."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Hashable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from countersign.base.deadline import shared, within_deadline
from countersign.base.errors import Overloaded
from countersign.base.generics import T
from countersign.base.values import Clock

STALENESS_SECONDS: Final = 0.25
"""How long after a change a running server may still use the value before it."""


class Snapshot(Struct, Generic[T], eq=False):
    """A value of the database in memory, read again once it is a quarter of a second old.

    Callers share one reading; errors go to all of them.
    """

    read: Callable[[], Awaitable[T]]
    clock: Clock
    _kept: tuple[float, T] | None = None
    _reading: asyncio.Task[T] | None = None

    async def get(self) -> T:
        """The value as of at most STALENESS_SECONDS before this call."""
        asked = self.clock.monotonic()
        while self._kept is None or asked - self._kept[0] >= STALENESS_SECONDS:
            await within_deadline(asyncio.shield(self._under_way() or self._begin()))
        return self._kept[1]

    async def fresh(self) -> T:
        """The value as a reading finds it that began after this call."""
        early = self._under_way()
        if early is not None:
            await within_deadline(asyncio.wait((early,)))
        return await within_deadline(asyncio.shield(self._under_way() or self._begin()))

    def _under_way(self) -> asyncio.Task[T] | None:
        return None if self._reading is None or self._reading.done() else self._reading

    def _begin(self) -> asyncio.Task[T]:
        self._reading = shared(self._take())
        return self._reading

    async def _take(self) -> T:
        began = self.clock.monotonic()
        value = await self.read()
        self._kept = began, value
        return value


K = TypeVar("K")
V = TypeVar("V")


class SharedQuestion(Struct, Generic[K, V], eq=False):
    """Asks about what callers wait for, a moment later and together."""

    ask: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]]
    """Called at most once in so many seconds, and not if no caller waits."""
    seconds: float
    _keys: dict[K, None] = {}
    _turn: asyncio.Task[Mapping[K, V]] | None = None

    async def __call__(self, key: K) -> V | None:
        """The result of the next turn for this key; None: not yet."""
        self._keys[key] = None
        if self._turn is None:
            self._turn = shared(self._next_turn())
        return (await asyncio.shield(self._turn)).get(key)

    async def _next_turn(self) -> Mapping[K, V]:
        await asyncio.sleep(self.seconds)
        keys, self._keys, self._turn = list(self._keys), {}, None
        return await self.ask(keys)


@dataclass(slots=True)
class _Lock:
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    inside: int = 0


class KeyedLocks(Struct, eq=False):
    """A lock for each key, for which a bounded number may wait."""

    waiting_max: int
    """How many may wait for one key."""
    retry_seconds: int = 1
    """One more gets this as Retry-After."""
    of_database: bool = False
    """The holder of the lock waits for the database alone, so waiting for the lock counts as
    waiting for the database."""
    _locks: dict[Hashable, _Lock] = {}

    @asynccontextmanager
    async def turn(self, key: Hashable) -> AsyncIterator[bool]:
        """Hold the lock of this key until the block ends; yields whether others held it before.

        Raises:
            Overloaded: too many wait.
            StorageUnavailable: the request has waited for the database for too long.
        """
        lock = self._locks.setdefault(key, _Lock())
        if lock.inside > self.waiting_max:
            raise Overloaded(retry_after=self.retry_seconds)
        waits = lock.inside > 0
        lock.inside += 1
        try:
            taken = lock.turn.acquire()
            await (within_deadline(taken) if waits and self.of_database else taken)
            try:
                yield waits
            finally:
                lock.turn.release()
        finally:
            lock.inside -= 1
            if not lock.inside:
                del self._locks[key]


class SingleFlight(Struct, eq=False):
    """Concurrent calls for the same key share one run."""

    _running: dict[Hashable, asyncio.Task[Any]] = {}

    async def join(self, key: Hashable, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the run under this key; if there is none, `begin` starts it.

        All callers get its error. It runs to its end even if its first caller gives up.
        """
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = shared(begin())
            running.add_done_callback(lambda _: self._running.pop(key))
        found: T = await within_deadline(asyncio.shield(running))
        return found
