"""How often keys that people made read personal data: one entry of the audit for a key and day.

A person states a reason for each read. A key that the person made reads on without one, so what it
reads is counted, in memory and within a second on the row of the key; the first write of a later
day, or housekeeping, puts the sum into the audit.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Connection, select, update

from countersign.base.db.database import Database
from countersign.base.db.tables import api_keys
from countersign.base.deadline import detached
from countersign.base.errors import CountersignError
from countersign.base.values import Clock, from_ns
from countersign.core.access.audit import Audit, AuditAction, write_audit

_PAUSE_SECONDS: Final = 1.0
"""Between two writes of a process, however much is read: a kill loses the count of so long."""
_k: Final = api_keys.c


class KeyReads:
    """Counts the reads of this process."""

    def __init__(self, database: Database, clock: Clock, audit: Audit) -> None:
        self._database, self._clock, self._audit = database, clock, audit
        self._counts: Counter[tuple[str, datetime]] = Counter()
        self._storing: asyncio.Task[None] | None = None

    def __call__(self, key_id: str) -> None:
        """Count a read, in a separate task: bookkeeping can neither delay it nor fail it."""
        self._counts[key_id, self._today()] += 1
        if self._storing is None or self._storing.done():
            self._storing = detached(self._store())

    async def settle(self) -> None:
        """Write the audit entries of past days."""
        await self._database.write(_settle, self._audit, _k.read_on < self._today())

    async def _store(self) -> None:
        while counts := self._counts:
            self._counts = Counter()
            try:
                await self._database.write(_add, self._audit, counts)
            except CountersignError:
                self._counts.update(counts)
            await asyncio.sleep(_PAUSE_SECONDS)

    def _today(self) -> datetime:
        """The day of UTC."""
        now = from_ns(self._clock.time_ns())
        return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _add(connection: Connection, audit: Audit, counts: Mapping[tuple[str, datetime], int]) -> None:
    for (key_id, day), number in sorted(counts.items()):
        _settle(connection, audit, (_k.id == key_id) & (_k.read_on < day))
        # Another server may have stored the next day already: a minute's reads then count for it.
        known = update(api_keys).where(_k.id == key_id, _k.read_on >= day)
        if not connection.execute(known.values(reads=_k.reads + number)).rowcount:
            first = update(api_keys).where(_k.id == key_id)
            connection.execute(first.values(read_on=day, reads=number))


def _settle(connection: Connection, audit: Audit, which: ColumnElement[bool]) -> None:
    over = select(_k.id, _k.account_id, _k.mode, _k.read_on, _k.reads).where(which)
    for key in connection.execute(over.with_for_update()).all():
        said = {"key_id": key.id, "mode": key.mode, "day": f"{key.read_on:%F}", "reads": key.reads}
        by_key = replace(audit, actor=key.id)
        write_audit(connection, by_key.entry(AuditAction.KEY_READS, key.account_id, **said))
        done = update(api_keys).where(_k.id == key.id)
        connection.execute(done.values(read_on=None, reads=None))
