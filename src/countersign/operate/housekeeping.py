"""Housekeeping: delete expired rows in small batches."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import structlog
from sqlalchemy import Connection, delete, select, tuple_

from countersign.base.db.database import Database
from countersign.base.db.tables import (
    idempotency_keys,
    kept_slots,
    person_sessions,
    provider_messages,
    rate_shares,
    remembered,
    remembered_uses,
    started_checks,
    zip_attempts,
)
from countersign.base.loops import forever
from countersign.base.values import from_ns, to_ms
from countersign.core.access.sessions import SESSION_LASTS
from countersign.core.buyers.model import CHECKS_KEPT, MESSAGES_KEPT, ZIP_WINDOW
from countersign.core.buyers.started_sql import outdated as outdated_checks
from countersign.core.checkout.store import delete_ended
from countersign.core.log import logs_sql
from countersign.core.log.audit_chain import seal_audit
from countersign.core.privacy.erase import destroy_copies
from countersign.core.webhooks.deliveries import delete_old
from countersign.hosted.pages import mails
from countersign.hosted.remembered import USES_KEPT
from countersign.operate.room import Operations

PERIOD_SECONDS: Final = 600.0
CHUNK: Final = 1000
_SHARES_KEPT: Final = timedelta(hours=1)
"""After a bucket was full again; more than clocks differ by."""

_log: Final = structlog.get_logger("countersign.housekeeping")


async def keep_house(room: Operations) -> None:
    """Delete expired rows periodically, and bring the audit up to date, until cancelled."""
    looked: dict[int, int] = {}

    async def turn() -> None:
        await delete_outdated(room.database, from_ns(room.clock.time_ns()))
        await thin_checkpoints(room.database, looked)
        await room.notices.log.access.key_reads.settle()
        await seal_audit(room.notices.log)
        if not await destroy_copies(room.database):
            _log.warning("erased_copies_remain")

    await forever("housekeeping", turn, PERIOD_SECONDS)


async def delete_outdated(database: Database, now: datetime) -> int:
    """Delete all that has served its time, in chunks; returns the number of rows.

    Kept responses, counted ZIP codes, providers' messages, events, finished deliveries, ended
    checkout sessions, their identity checks, what buyers are remembered by, and sessions of people.
    """
    deleted = 0
    await database.write(mails.end_old, now)
    for delete_some in (delete_old, delete_ended, delete_expired, mails.forget_indexes):
        rows = CHUNK
        while rows >= CHUNK:
            rows = await database.write(delete_some, now, CHUNK)
            deleted += rows
    return deleted


async def thin_checkpoints(database: Database, looked: dict[int, int]) -> int:
    """Delete the checkpoints that may go, in chunks; returns their number.

    `looked` has the size up to which each log has been checked; it is updated.
    """
    deleted = 0
    for log in await database.read(logs_sql.all_logs):
        while found := await database.scan(logs_sql.outdated, log.id, looked.get(log.id, 0), CHUNK):
            sizes, last = found
            if sizes:
                await database.write(logs_sql.forget, log.id, sizes)
            looked[log.id] = last
            deleted += len(sizes)
    return deleted


def delete_expired(connection: Connection, now: datetime, limit: int) -> int:
    """Delete at most `limit` rows of each kind; returns the largest of the numbers."""
    zip_key = ("account_id", "mode", "subject_index", "zip_index")
    message_key = ("account_id", "message_index")
    check_key = ("reference", "attempt", "session_index")
    numbers = []
    levels = (kept_slots, ("level", "slot"), kept_slots.c.expires_at <= now)
    for table, key, outdated in (
        *([levels] if connection.dialect.name == "sqlite" else []),
        (idempotency_keys, ("expires_at", "slot"), idempotency_keys.c.expires_at <= now),
        (zip_attempts, zip_key, zip_attempts.c.at <= now - ZIP_WINDOW),
        (rate_shares, ("name",), rate_shares.c.empty_at <= to_ms(now - _SHARES_KEPT) * 1000),
        (provider_messages, message_key, provider_messages.c.at <= now - MESSAGES_KEPT),
        (remembered, ("id",), remembered.c.expires_at <= now),
        (remembered_uses, ("id",), remembered_uses.c.at < now - USES_KEPT),
        (started_checks, check_key, outdated_checks(now - CHECKS_KEPT)),
        # Some time after they ended: what their people sent last is theirs.
        (person_sessions, ("id",), person_sessions.c.created_at <= now - 2 * SESSION_LASTS),
    ):
        columns = table.c[key]
        some = select(*columns).where(outdated).limit(limit)
        numbers.append(connection.execute(delete(table).where(tuple_(*columns).in_(some))).rowcount)
    return max(numbers)
