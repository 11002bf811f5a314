"""Deleting what has served its time."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, delete, insert, select, tuple_

from countersign.db.database import Database
from countersign.db.tables import (
    deployment,
    idempotency_keys,
    log_pending,
    provider_messages,
    zip_attempts,
)
from countersign.mode import Mode
from countersign.vault.data_keys_sql import COPIES_REMAIN, noted_copies
from countersign.webhooks.deliveries_sql import delete_old


class Housekeeping:
    """See `ports.HousekeepingStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def delete_expired(
        self, *, now: datetime, zips_before: datetime, messages_before: datetime, limit: int
    ) -> int:
        """Delete at most `limit` rows of each kind; gives the largest of the numbers."""
        return await self._database.write(
            _delete_expired, (now, zips_before, messages_before, limit)
        )

    async def delete_old(
        self,
        *,
        events_before: datetime,
        deliveries_before: datetime,
        tried_since: datetime,
        limit: int,
    ) -> int:
        """Delete at most `limit` rows of each kind; gives the largest of the numbers."""
        item = (events_before, deliveries_before, tried_since, limit)
        return await self._database.write(delete_old, item)

    async def try_writing(self) -> None:
        """Commit a transaction that writes, and leaves everything as it was.

        Raises:
            StorageUnavailable: the disk is full, the database read-only or out of reach.
            Overloaded: another process holds the lock for writing.
        """
        await self._database.write(_try_writing, None)

    async def copies_remain(self) -> bool:
        """Whether the write-ahead log may hold what was erased; never so on PostgreSQL."""
        return await self._database.read(noted_copies) is not None

    async def empty_log(self) -> bool:
        """Empty the write-ahead log; False if another process reads and so keeps it."""
        noted = await self._database.read(noted_copies)
        emptied = await self._database.empty_log()
        if emptied and noted is not None:
            # Only what was noted before: something may have been erased since.
            await self._database.write(_no_copies_remain, noted)
        return emptied


def _try_writing(connection: Connection, _: None) -> None:
    # The table is nearly always empty, and servers may insert and delete here.
    row = {"record_id": "readiness", "mode": Mode.TEST, "digest": b""}
    connection.execute(insert(log_pending), row)
    connection.execute(delete(log_pending).where(log_pending.c.record_id == row["record_id"]))


def _no_copies_remain(connection: Connection, noted: bytes) -> None:
    connection.execute(
        delete(deployment).where(deployment.c.name == COPIES_REMAIN, deployment.c.value == noted)
    )


def _delete_expired(connection: Connection, item: tuple[datetime, datetime, datetime, int]) -> int:
    now, zips_before, messages_before, limit = item
    answers = (
        select(idempotency_keys.c.slot).where(idempotency_keys.c.expires_at <= now).limit(limit)
    )
    key = (
        zip_attempts.c.account_id,
        zip_attempts.c.mode,
        zip_attempts.c.subject_index,
        zip_attempts.c.zip_index,
    )
    zips = select(*key).where(zip_attempts.c.at <= zips_before).limit(limit)
    message = (provider_messages.c.account_id, provider_messages.c.message_index)
    messages = select(*message).where(provider_messages.c.at <= messages_before).limit(limit)
    return max(
        connection.execute(
            delete(idempotency_keys).where(idempotency_keys.c.slot.in_(answers))
        ).rowcount,
        connection.execute(delete(zip_attempts).where(tuple_(*key).in_(zips))).rowcount,
        connection.execute(
            delete(provider_messages).where(tuple_(*message).in_(messages))
        ).rowcount,
    )
