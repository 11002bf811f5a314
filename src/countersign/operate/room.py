"""The room of operations: how this process, its machine and the place for heads are."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from countersign.base.config import Settings
from countersign.base.db.database import Database
from countersign.base.db.engine import is_embedded
from countersign.base.loops import forever
from countersign.base.values import Clock
from countersign.core.log.clock_guard import database_time
from countersign.core.log.head_files import Heads
from countersign.core.notices.room import Notices
from countersign.operate.reserve import Reserve


class VitalSigns:
    """The last measurements of this process."""

    def __init__(self, database: Database, clock: Clock, places: Mapping[str, Path]) -> None:
        """`places` are directories by purpose."""
        self._database = database
        self._clock = clock
        self._places = places
        self.free: dict[str, tuple[int, float]] = {}
        """For each directory: free bytes, and their share of the disk."""
        self.clock_ahead: float | None = None
        """By how many seconds this clock is ahead of the database's; None: it has no clock of its
        own."""

    async def run(self) -> None:
        """Measure until cancelled."""
        await forever("watching", self.measure, 30.0)

    async def measure(self) -> None:
        """Measure once."""
        for name, place in self._places.items():
            with suppress(OSError):
                # In a thread: a disk that is gone must not stop the event loop.
                usage = await asyncio.to_thread(shutil.disk_usage, place)
                self.free[name] = usage.free, usage.free / max(usage.total, 1)
        if not is_embedded(self._database.url):
            before = self._clock.time_ns()
            theirs = await self._database.read(database_time)
            self.clock_ahead = (before + self._clock.time_ns()) / 2e9 - theirs


_FRESH_SECONDS: Final = 1.0
"""Minimum interval between two looks, whatever the number of requests."""
_PATIENCE_SECONDS: Final = 1.0


class HeadsCheck:
    """Looks whether the place for the last published checkpoints is there."""

    def __init__(self, heads: Heads, clock: Clock) -> None:
        self._heads = heads
        self._clock = clock
        self._begun = float("-inf")
        self._look: asyncio.Task[None] | None = None
        """A hung mount holds one thread, and not one for each look."""

    async def __call__(self) -> bool:
        """Whether heads can be kept, or could be a second ago."""
        now = self._clock.monotonic()
        if self._look is None or (self._look.done() and now - self._begun >= _FRESH_SECONDS):
            self._begun = now
            self._look = asyncio.create_task(asyncio.to_thread(self._heads.check))
        look = self._look
        await asyncio.wait([look], timeout=_PATIENCE_SECONDS)
        return look.done() and look.exception() is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """Keeping a deployment in order."""

    settings: Settings
    clock: Clock
    database: Database
    notices: Notices
    keeps_heads: HeadsCheck
    vital_signs: VitalSigns
    reserve: Reserve
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when this server is about to stop."""


def open_operations(settings: Settings, notices: Notices, heads: Heads) -> Operations:
    """The room above open notices."""
    access = notices.log.access
    places = {"data": settings.data_dir}
    if isinstance(settings.log_head_dir, Path):
        places["heads"] = settings.log_head_dir
    return Operations(
        settings=settings,
        clock=access.clock,
        database=access.database,
        notices=notices,
        keeps_heads=HeadsCheck(heads, access.clock),
        vital_signs=VitalSigns(access.database, access.clock, places),
        reserve=Reserve(access.database, settings.data_dir),
    )
