"""Housekeeping: what has served its time is deleted, a little at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from countersign.buyers.model import ZIP_WINDOW
from countersign.buyers.verification import MESSAGES_KEPT
from countersign.events.model import KEPT as EVENTS_KEPT
from countersign.instant import from_ns
from countersign.loops import forever
from countersign.ports import Clock, HousekeepingStore
from countersign.webhooks.model import AGE_MAX
from countersign.webhooks.model import LOG_KEPT as DELIVERIES_KEPT

PERIOD_SECONDS: Final = 600.0
CHUNK: Final = 1000

_log: Final = structlog.get_logger("countersign.housekeeping")


class Housekeeping:
    """Deletes what has expired.

    Kept answers, counted ZIP codes, providers' messages, events and finished deliveries.
    """

    def __init__(self, store: HousekeepingStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def tidy(self) -> int:
        """Delete all that has served its time, in chunks; gives the number of rows."""
        now = from_ns(self._clock.time_ns())
        deleted = await _in_chunks(
            lambda: self._store.delete_expired(
                now=now,
                zips_before=now - ZIP_WINDOW,
                messages_before=now - MESSAGES_KEPT,
                limit=CHUNK,
            )
        )
        return deleted + await _in_chunks(
            lambda: self._store.delete_old(
                events_before=now - EVENTS_KEPT,
                deliveries_before=now - DELIVERIES_KEPT,
                tried_since=now - AGE_MAX,
                limit=CHUNK,
            )
        )

    async def forget(self) -> bool:
        """Let go of copies of what was erased; False if another process keeps some of them.

        They are pages in the write-ahead log of the embedded database. On PostgreSQL its vacuum
        and archiving decide: nothing is known of them here.
        """
        return not await self._store.copies_remain() or await self._store.empty_log()

    async def copies_remain(self) -> bool:
        """Whether such copies may still be there."""
        return await self._store.copies_remain()

    async def run(self) -> None:
        """Tidy now and then, until cancelled."""
        await forever("housekeeping", self._turn, PERIOD_SECONDS)

    async def _turn(self) -> None:
        await self.tidy()
        if not await self.forget():
            _log.warning("erased_copies_remain")


async def _in_chunks(delete: Callable[[], Awaitable[int]]) -> int:
    deleted = 0
    while True:
        rows = await delete()
        deleted += rows
        if rows < CHUNK:
            return deleted
