"""The room of operations, and whether this server can do its work: it tries a little of it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, delete, insert

from countersign.base.config import Settings
from countersign.base.db.database import Database
from countersign.base.db.engine import is_embedded
from countersign.base.db.tables import log_pending
from countersign.base.errors import (
    CountersignError,
    HeadUnavailable,
    Overloaded,
    StorageUnavailable,
)
from countersign.base.loops import forever
from countersign.base.values import Clock, Mode
from countersign.core.log.clock_guard import database_time
from countersign.core.log.head_files import Heads
from countersign.core.notices.room import Notices
from countersign.operate.reserve import Reserve

SIGNS_SECONDS: Final = 30.0


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
        await forever("watching", self.measure, SIGNS_SECONDS)

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


_FRESH_SECONDS: Final = 1.0
"""Minimum interval between two test writes, whatever the number of requests."""
_PATIENCE_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 2
_ACT_BYTES: Final = 128 * 1024
"""More than the rows of a batch of acts take."""
_STUCK: Final = "The database does not respond."
_UNWRITABLE: Final = "The database cannot be written."


class WriteCheck:
    """Tries to write: to the database, and where the last published checkpoints are kept."""

    def __init__(self, database: Database, heads: Heads, clock: Clock) -> None:
        self._database = database
        self._heads = heads
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._looked_at = float("-inf")
        self._trouble: StorageUnavailable | None = None
        self._keeps_heads = True
        self._waited = False
        """Whether the last test write timed out; one time-out is taken as temporary."""
        self._looking: asyncio.Task[None] | None = None
        """At the place for heads: a hung mount holds one thread, and not one for each look."""

    async def __call__(self) -> bool:
        """Return if writes work, or worked a second ago; the result says whether heads can be kept.

        Raises StorageUnavailable if the database cannot be written, or calls wait for it.
        """
        async with self._one_at_a_time:
            age = self._clock.monotonic() - self._looked_at
            is_believed = self._waited and self._trouble is None
            if is_believed or age >= _FRESH_SECONDS:
                self._trouble = await self._find_trouble()
                self._keeps_heads = await self._can_keep_heads()
                self._looked_at = self._clock.monotonic()
        if self._trouble is not None:
            raise self._trouble
        return self._keeps_heads

    async def _find_trouble(self) -> StorageUnavailable | None:
        if self._database.damage is not None:
            return self._database.damage
        failure, waited, self._waited = self._database.failure, self._waited, False
        if self._database.is_stuck:
            return StorageUnavailable(_STUCK, retry_after=_RETRY_SECONDS)
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                # After a failed act, a smaller row may still fit.
                await self._database.write(_try_writing, _ACT_BYTES if failure else 0)
        except (Overloaded, TimeoutError) as error:
            # Much to do, or a command holds the lock: that passes by itself. But after two
            # time-outs in a row, callers are better off elsewhere.
            self._waited = isinstance(error, TimeoutError)
            if failure or (waited and self._waited):
                return StorageUnavailable(_STUCK, retry_after=_RETRY_SECONDS)
        except StorageUnavailable as error:
            return error
        except CountersignError:
            return StorageUnavailable(_UNWRITABLE, retry_after=_RETRY_SECONDS)
        return None

    async def _can_keep_heads(self) -> bool:
        if self._looking is None:
            self._looking = asyncio.create_task(asyncio.to_thread(self._heads.check))
        done, _ = await asyncio.wait([self._looking], timeout=_PATIENCE_SECONDS)
        if not done:
            return False
        looked, self._looking = self._looking, None
        try:
            looked.result()
        except HeadUnavailable:
            return False
        return True


def _try_writing(connection: Connection, size: int) -> None:
    """Write at least `size` bytes, then delete them."""
    # The table is nearly always empty, and servers may insert and delete here.
    row = {"record_id": "readiness", "mode": Mode.TEST, "digest": bytes(size)}
    connection.execute(insert(log_pending), row)
    connection.execute(delete(log_pending).where(log_pending.c.record_id == row["record_id"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """Keeping a deployment in order."""

    settings: Settings
    clock: Clock
    database: Database
    notices: Notices
    check_writing: WriteCheck
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
        check_writing=WriteCheck(access.database, heads, access.clock),
        vital_signs=VitalSigns(access.database, access.clock, places),
        reserve=Reserve(access.database, settings.data_dir),
    )
