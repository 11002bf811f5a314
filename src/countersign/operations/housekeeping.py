"""Housekeeping: what has served its time is deleted, a little at a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog
from sqlalchemy import Connection, delete, select, tuple_

from countersign.buyers.model import MESSAGES_KEPT, ZIP_WINDOW
from countersign.db.database import Database
from countersign.db.tables import idempotency_keys, provider_messages, zip_attempts
from countersign.events.model import KEPT as EVENTS_KEPT
from countersign.instant import from_ns
from countersign.loops import forever
from countersign.operations.room import Operations
from countersign.privacy.erase import destroy_copies
from countersign.webhooks.deliveries_sql import delete_old
from countersign.webhooks.model import AGE_MAX
from countersign.webhooks.model import LOG_KEPT as DELIVERIES_KEPT

PERIOD_SECONDS: Final = 600.0
CHUNK: Final = 1000

_log: Final = structlog.get_logger("countersign.housekeeping")


async def keep_house(room: Operations) -> None:
    """Delete what has expired now and then, until cancelled."""

    async def turn() -> None:
        await delete_outdated(room.database, from_ns(room.clock.time_ns()))
        if not await destroy_copies(room.database):
            _log.warning("erased_copies_remain")

    await forever("housekeeping", turn, PERIOD_SECONDS)


async def delete_outdated(database: Database, now: datetime) -> int:
    """Delete all that has served its time, in chunks; returns the number of rows.

    Kept responses, counted ZIP codes, providers' messages, events and finished deliveries.
    """

    def old(connection: Connection) -> int:
        return delete_old(
            connection,
            events_before=now - EVENTS_KEPT,
            deliveries_before=now - DELIVERIES_KEPT,
            tried_since=now - AGE_MAX,
            limit=CHUNK,
        )

    def expired(connection: Connection) -> int:
        return delete_expired(connection, now, CHUNK)

    return await _in_chunks(database, expired) + await _in_chunks(database, old)


async def _in_chunks(database: Database, delete_some: Callable[[Connection], int]) -> int:
    deleted = 0
    while True:
        rows = await database.write(delete_some)
        deleted += rows
        if rows < CHUNK:
            return deleted


def delete_expired(connection: Connection, now: datetime, limit: int) -> int:
    """Delete at most `limit` rows of each kind; returns the largest of the numbers."""
    responses = (
        select(idempotency_keys.c.slot).where(idempotency_keys.c.expires_at <= now).limit(limit)
    )
    zip_key = (
        zip_attempts.c.account_id,
        zip_attempts.c.mode,
        zip_attempts.c.subject_index,
        zip_attempts.c.zip_index,
    )
    zips = select(*zip_key).where(zip_attempts.c.at <= now - ZIP_WINDOW).limit(limit)
    message_key = (provider_messages.c.account_id, provider_messages.c.message_index)
    messages = (
        select(*message_key).where(provider_messages.c.at <= now - MESSAGES_KEPT).limit(limit)
    )
    statements = (
        delete(idempotency_keys).where(idempotency_keys.c.slot.in_(responses)),
        delete(zip_attempts).where(tuple_(*zip_key).in_(zips)),
        delete(provider_messages).where(tuple_(*message_key).in_(messages)),
    )
    return max(connection.execute(statement).rowcount for statement in statements)
