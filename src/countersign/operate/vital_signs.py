"""Periodic measurements for early alarms: disk and clock."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from countersign.base.db.database import Database
from countersign.base.db.engine import is_embedded
from countersign.base.loops import forever
from countersign.base.values import Clock
from countersign.core.log.clock_guard import database_time

PERIOD_SECONDS: Final = 30.0


class VitalSigns:
    """The last measurements of this process."""

    def __init__(self, database: Database, clock: Clock, places: Mapping[str, Path]) -> None:
        """`places` are directories, by what they are for."""
        self._database = database
        self._clock = clock
        self._places = places
        self.free: dict[str, tuple[int, float]] = {}
        """For each directory: free bytes, and their share of the disk."""
        self.clock_ahead: float | None = None
        """By how many seconds this clock is ahead of the database's; None: it has none."""

    async def run(self) -> None:
        """Measure until cancelled."""
        await forever("watching", self.measure, PERIOD_SECONDS)

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
            ours = (before + self._clock.time_ns()) / 2e9
            self.clock_ahead = ours - theirs
