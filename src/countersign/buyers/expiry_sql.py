"""Buyers that time has taken the verification from: told once, in the transaction that notes it."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Connection, and_, select, update

from countersign.buyers.events_sql import write_buyer_events
from countersign.db.database import Database
from countersign.db.tables import buyers
from countersign.events.model import EventType
from countersign.mode import Mode

_due_at: Final = buyers.c.expiry_due_at


class Expiries:
    """See `ports.ExpiryStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(self, now: datetime) -> bool:
        """Whether a buyer has expired of which nobody was told."""
        return await self._database.scan(_due, now)

    async def tell(self, now: datetime, limit: int) -> int:
        """Write `buyer.expired` for those that have expired by now; gives for how many."""
        return await self._database.write(_tell, (now, limit))


def _due(connection: Connection, now: datetime) -> bool:
    found = select(buyers.c.cbid).where(_due_at <= now).limit(1)
    return connection.execute(found).first() is not None


def _tell(connection: Connection, item: tuple[datetime, int]) -> int:
    now, limit = item
    return tell_expired(connection, expired_by=now, at=now, limit=limit)


def tell_expired(
    connection: Connection,
    *,
    expired_by: datetime,
    at: datetime,
    limit: int,
    sandbox_of: str | None = None,
) -> int:
    """Write `buyer.expired` for at most `limit` buyers, the first to expire first.

    Args:
        connection: in the transaction that notes that it was told.
        expired_by: by which time.
        at: the time of the events.
        limit: how many buyers at most.
        sandbox_of: only the test buyers of this account, whose clock may be ahead.
    """
    over: ColumnElement[bool] = _due_at <= expired_by
    if sandbox_of is not None:
        over = and_(over, buyers.c.account_id == sandbox_of, buyers.c.mode == Mode.TEST)
    expired = (
        select(buyers.c.cbid)
        .where(over)
        .order_by(_due_at)
        .limit(limit)
        # Two servers at it take different ones.
        .with_for_update(skip_locked=True)
    )
    told = connection.execute(
        update(buyers)
        .where(buyers.c.cbid.in_(expired))
        .values(expiry_due_at=None)
        .returning(buyers.c.cbid, buyers.c.mode, buyers.c.expires_at, buyers.c.same_as)
    ).all()
    for cbid, mode, _, same_as in sorted(told, key=lambda row: (row.expires_at, row.cbid)):
        # One that goes on under another identifier has no status of its own.
        if same_as is None:
            write_buyer_events(connection, EventType.BUYER_EXPIRED, Mode(mode), cbid, at)
    return len(told)
