"""Whether this server can do its work: found out by doing a little of it."""

from __future__ import annotations

import asyncio
from typing import Final

from countersign.errors import CountersignError, HeadUnavailable, Overloaded, StorageUnavailable
from countersign.log.head_files import HeadFiles
from countersign.ports import Clock, HousekeepingStore

_FRESH_SECONDS: Final = 1.0
"""However often it is asked, nothing is written more often than this."""
_PATIENCE_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 2


class Readiness:
    """Tries to write: to the database, and where the last published checkpoints are kept."""

    def __init__(self, store: HousekeepingStore, heads: HeadFiles, clock: Clock) -> None:
        self._store = store
        self._heads = heads
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._looked_at = float("-inf")
        self._writes = True
        self._keeps_heads = True

    async def __call__(self) -> bool:
        """Return if writing works, or did a second ago: whether checkpoints can be kept, too.

        Raises:
            StorageUnavailable: the database cannot be written.
        """
        async with self._one_at_a_time:
            if self._clock.monotonic() - self._looked_at >= _FRESH_SECONDS:
                self._writes = await self._can_write()
                self._keeps_heads = await self._can_keep_heads()
                self._looked_at = self._clock.monotonic()
        if not self._writes:
            raise StorageUnavailable("The database cannot be written.", retry_after=_RETRY_SECONDS)
        return self._keeps_heads

    async def _can_write(self) -> bool:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._store.try_writing()
        except (Overloaded, TimeoutError):
            pass  # much to do, or a command holds the lock: that passes by itself
        except CountersignError:
            return False
        return True

    async def _can_keep_heads(self) -> bool:
        try:
            await asyncio.to_thread(self._heads.check)
        except HeadUnavailable:
            return False
        return True
