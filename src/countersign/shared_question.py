"""One look-up for all callers that wait, once a period, however many they are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

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
        """What the next turn finds about this key; None: nothing yet."""
        self._keys[key] = None
        if self._turn is None:
            self._turn = asyncio.create_task(self._next_turn())
        return (await asyncio.shield(self._turn)).get(key)

    async def _next_turn(self) -> Mapping[K, V]:
        await asyncio.sleep(self._seconds)
        keys, self._keys, self._turn = list(self._keys), {}, None
        return await self._ask(keys)
