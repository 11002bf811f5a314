"""`buyer.expiring` and `buyer.expired`: no act happens at these moments, so a loop looks for them.

The status itself needs no such loop: it is computed whenever it is read.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    and_,
    bindparam,
    exists,
    or_,
    select,
    type_coerce,
    update,
)

from countersign.base.db.tables import buyers, test_clocks
from countersign.base.loops import forever
from countersign.base.values import Mode, from_ns, to_ms
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.sql import write_buyer_events
from countersign.core.events.model import EventType

PERIOD_SECONDS: Final = 2.0
CHUNK: Final = 200


def _reached(column: Column[datetime], by: ColumnElement[Any] | int) -> ColumnElement[bool]:
    # In Unix milliseconds.
    return type_coerce(column, BigInteger) <= by


def _is_expiring(by: ColumnElement[Any] | int) -> ColumnElement[bool]:
    # A revoked buyer is reminded if it is reinstated, and is not expired then.
    return and_(
        _reached(buyers.c.reminder_due_at, by),
        buyers.c.status == BuyerStatus.VERIFIED,
        buyers.c.expiry_due_at.is_not(None),
    )


def _is_expired(by: ColumnElement[Any] | int) -> ColumnElement[bool]:
    # Where both are due, the reminder comes first, whichever server writes it.
    reminder = buyers.c.reminder_due_at
    return and_(
        _reached(buyers.c.expiry_due_at, by),
        or_(reminder.is_(None), ~_reached(reminder, by)),
    )


_DUE: Final = {
    EventType.BUYER_EXPIRING: (buyers.c.reminder_due_at, _is_expiring),
    EventType.BUYER_EXPIRED: (buyers.c.expiry_due_at, _is_expired),
}
# Built once: both are needed all the time.
_AHEAD: Final = {
    type_: select(test_clocks.c.account_id, test_clocks.c.ahead_ms).where(
        select(buyers.c.cbid)
        .where(
            buyers.c.account_id == test_clocks.c.account_id,
            buyers.c.mode == Mode.TEST,
            is_due(bindparam("now", type_=BigInteger) + test_clocks.c.ahead_ms),
        )
        .exists()
    )
    for type_, (_, is_due) in _DUE.items()
}
# Sandboxes whose clock is ahead expire earlier.
_ANY_DUE: Final = select(
    *(
        exists().where(is_due(bindparam("now", type_=BigInteger))) | _AHEAD[type_].exists()
        for type_, (_, is_due) in _DUE.items()
    )
)


async def run(room: Buyers) -> None:
    """Sweep again and again, until cancelled."""
    await forever("expiry", partial(sweep, room), PERIOD_SECONDS)


async def sweep(room: Buyers) -> int:
    """Write the events of all buyers that expire soon, or have expired by now; gives how many."""
    written, database = 0, room.access.database
    while due := await database.scan(_due, now := from_ns(room.access.clock.time_ns())):
        number = sum([await database.write(_write_due, type_, now, CHUNK) for type_ in due])
        if not number:  # another process is writing them at the moment
            break
        written += number
    return written


def _due(connection: Connection, now: datetime) -> list[EventType]:
    found = connection.execute(_ANY_DUE, {"now": to_ms(now)}).one()
    return [type_ for type_, is_due in zip(_DUE, found, strict=True) if is_due]


def _write_due(connection: Connection, type_: EventType, now: datetime, limit: int) -> int:
    written = _write(connection, type_, now, now, limit)
    for account_id, ahead_ms in connection.execute(_AHEAD[type_], {"now": to_ms(now)}).all():
        by = now + timedelta(milliseconds=ahead_ms)
        written += _write(connection, type_, by, now, limit - written, account_id)
    return written


def write_expiries(
    connection: Connection, account_id: str, *, by: datetime, at: datetime, limit: int
) -> int:
    """Write the events due `by` this time for the test buyers of an account; returns their number.

    `by` is the time of the account's sandbox clock, `at` the time of the events. At most
    `limit` events of each type are written, the first that were due first.
    """
    return sum(_write(connection, type_, by, at, limit, account_id) for type_ in _DUE)


def _write(  # noqa: PLR0917 - whose events, and when
    connection: Connection,
    type_: EventType,
    by: datetime,
    at: datetime,
    limit: int,
    sandbox_of: str | None = None,
) -> int:
    """Write this event for at most `limit` buyers, the first that it was due for first."""
    column, is_due = _DUE[type_]
    due = is_due(to_ms(by))
    if sandbox_of is not None:
        due = and_(due, buyers.c.account_id == sandbox_of, buyers.c.mode == Mode.TEST)
    chosen = (
        select(buyers.c.cbid)
        .where(due)
        .order_by(column)
        .limit(limit)
        # Two servers at it take different ones.
        .with_for_update(skip_locked=True)
    )
    noted = connection.execute(
        update(buyers)
        .where(buyers.c.cbid.in_(chosen))
        .values({column.name: None})
        .returning(buyers.c.cbid, buyers.c.mode, buyers.c.expires_at, buyers.c.same_as)
    ).all()
    for cbid, mode, _, same_as in sorted(noted, key=lambda row: (row.expires_at, row.cbid)):
        # A merged buyer has no status of its own.
        if same_as is None:
            write_buyer_events(connection, type_, Mode(mode), cbid, at)
    return len(noted)
