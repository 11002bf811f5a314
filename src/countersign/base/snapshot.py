"""Concurrent callers share one read: values in memory, and batched look-ups."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from countersign.base.deadline import shared, within_deadline
from countersign.base.values import Clock

STALENESS_SECONDS: Final = 0.25
"""How long after a change a running server may still use the value before it."""

T = TypeVar("T")


class Snapshot(Generic[T]):
    """A value of the database in memory, read again once it is a quarter of a second old.

    Callers share one reading; errors go to all of them.
    """

    def __init__(self, read: Callable[[], Awaitable[T]], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._kept: tuple[float, T] | None = None
        self._reading: asyncio.Task[T] | None = None

    async def get(self) -> T:
        """The value as of at most STALENESS_SECONDS before this call."""
        asked = self._clock.monotonic()
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
        began = self._clock.monotonic()
        value = await self._read()
        self._kept = began, value
        return value


K = TypeVar("K")
V = TypeVar("V")


class SharedQuestion(Generic[K, V]):
    """Asks about what callers wait for, a moment later and together."""

    def __init__(
        self, ask: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]], seconds: float
    ) -> None:
        """`ask` is called at most every so many seconds, and not while no caller waits."""
        self._ask = ask
        self._seconds = seconds
        self._keys: dict[K, None] = {}
        self._turn: asyncio.Task[Mapping[K, V]] | None = None

    async def __call__(self, key: K) -> V | None:
        """The result of the next turn for this key; None: not yet."""
        self._keys[key] = None
        if self._turn is None:
            self._turn = shared(self._next_turn())
        return (await asyncio.shield(self._turn)).get(key)

    async def _next_turn(self) -> Mapping[K, V]:
        await asyncio.sleep(self._seconds)
        keys, self._keys, self._turn = list(self._keys), {}, None
        return await self._ask(keys)
