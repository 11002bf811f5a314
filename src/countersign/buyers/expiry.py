"""`buyer.expired`: nothing acts at the moment when a verification expires: a loop looks for it.

The status itself needs no such loop: it is computed whenever it is read.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    and_,
    bindparam,
    select,
    type_coerce,
    update,
)

from countersign.buyers.room import Buyers
from countersign.buyers.sql import write_buyer_events
from countersign.db.tables import buyers, test_clocks
from countersign.events.model import EventType
from countersign.instant import from_ns, to_ms
from countersign.loops import forever
from countersign.mode import Mode

PERIOD_SECONDS: Final = 2.0
CHUNK: Final = 200

_due_at: Final = buyers.c.expiry_due_at
_SELECT_AHEAD: Final = select(test_clocks.c.account_id, test_clocks.c.ahead_ms).where(
    select(buyers.c.cbid)
    .where(
        buyers.c.account_id == test_clocks.c.account_id,
        buyers.c.mode == Mode.TEST,
        type_coerce(_due_at, BigInteger)
        <= bindparam("now", type_=BigInteger) + test_clocks.c.ahead_ms,
    )
    .exists()
)


async def run(room: Buyers) -> None:
    """Sweep again and again, until cancelled."""
    await forever("expiry", partial(sweep, room), PERIOD_SECONDS)


async def sweep(room: Buyers) -> int:
    """Write the events of all buyers that have expired by now; returns how many."""
    written = 0
    while await room.access.database.scan(_is_due, now := from_ns(room.access.clock.time_ns())):
        # None: another process is writing them at this moment.
        if not (number := await room.access.database.write(_write_due, now, CHUNK)):
            break
        written += number
    return written


def _is_due(connection: Connection, now: datetime) -> bool:
    by_real_time = select(buyers.c.cbid).where(_due_at <= now).limit(1)
    if connection.execute(by_real_time).first() is not None:
        return True
    # Sandboxes whose clock is ahead expire earlier.
    return connection.execute(_SELECT_AHEAD.limit(1), {"now": to_ms(now)}).first() is not None


def _write_due(connection: Connection, now: datetime, limit: int) -> int:
    written = write_expired(connection, expired_by=now, at=now, limit=limit)
    for account_id, ahead_ms in connection.execute(_SELECT_AHEAD, {"now": to_ms(now)}).all():
        if written >= limit:
            break
        written += write_expired(
            connection,
            expired_by=now + timedelta(milliseconds=ahead_ms),
            at=now,
            limit=limit - written,
            sandbox_of=account_id,
        )
    return written


def write_expired(
    connection: Connection,
    *,
    expired_by: datetime,
    at: datetime,
    limit: int,
    sandbox_of: str | None = None,
) -> int:
    """Write `buyer.expired` for at most `limit` buyers, the first to expire first; gives how many.

    With `sandbox_of`, only for the test buyers of this account, whose clock may be ahead of `at`.
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
    noted = connection.execute(
        update(buyers)
        .where(buyers.c.cbid.in_(expired))
        .values(expiry_due_at=None)
        .returning(buyers.c.cbid, buyers.c.mode, buyers.c.expires_at, buyers.c.same_as)
    ).all()
    for cbid, mode, _, same_as in sorted(noted, key=lambda row: (row.expires_at, row.cbid)):
        # One that was joined to another buyer has no status of its own.
        if same_as is None:
            write_buyer_events(connection, EventType.BUYER_EXPIRED, Mode(mode), cbid, at)
    return len(noted)
