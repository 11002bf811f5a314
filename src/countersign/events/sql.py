"""Events: written in the transaction of what they report, read in one order that never changes.

On the embedded database one transaction writes at a time, so the numbers of rows are the order of
commits. On PostgreSQL they are not: a transaction with a smaller number may commit later, and a
reader who is already past it would never see its rows. So each row has the number of its
transaction, readers see a row only when no transaction with a smaller or equal number is still
running, and the order is that of transaction and row.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    case,
    delete,
    func,
    insert,
    literal_column,
    select,
    true,
    tuple_,
    update,
)

from countersign.db.bulk import BulkInsert, DriverStatement
from countersign.db.rows import of_row
from countersign.db.tables import accounts, events, webhook_endpoints
from countersign.events.model import EventType, NewEvent, Position, RecordedEvent
from countersign.instant import to_ms
from countersign.mode import Mode
from countersign.reason import Reason

TX: Final = {"sqlite": "0", "postgresql": "pg_current_xact_id()::text::bigint"}
_OWN_TX: Final[dict[str, ColumnElement[int]]] = {
    dialect: literal_column(tx, events.c.tx.type) for dialect, tx in TX.items()
}
_COLUMNS: Final = "account_id, mode, type, object_id, version, at"
_encode: Final = msgspec.json.Encoder().encode
_decode_reasons: Final = msgspec.json.Decoder(tuple[Reason, ...]).decode
_INSERT: Final = BulkInsert(
    events,
    *("account_id", "mode", "type", "object_id", "version", "at", "reasons"),
    tx=TX,
)
_INSERT_SEALED: Final = {
    dialect: DriverStatement(
        f"INSERT INTO events (tx, {_COLUMNS})"  # noqa: S608 - our own names
        f" SELECT {tx}, r.account_id, r.mode, ?, r.id, NULL, ?"
        " FROM log_entries e JOIN records r ON r.id = e.record_id"
        " WHERE e.log_id = ? AND e.leaf_index >= ? AND e.leaf_index < ?"
        " AND r.type = 'acknowledgment' ORDER BY e.leaf_index"
    )
    for dialect, tx in TX.items()
}
_FIRST_UNSETTLED: Final[ColumnElement[int]] = literal_column(
    "(pg_snapshot_xmin(pg_current_snapshot())::text::bigint)", events.c.tx.type
)
_NEXT_TX: Final[ColumnElement[int]] = literal_column(
    "(pg_snapshot_xmax(pg_current_snapshot())::text::bigint)", events.c.tx.type
)
SEQ_MAX: Final = (1 << 63) - 1
_LOOKED_AT: Final = 1000
WINDOW: Final = 10_000
"""How many events one page of a type is picked from; the next page goes on after them."""
POSITION: Final = tuple_(events.c.tx, events.c.seq)


def write_events(connection: Connection, new: Sequence[NewEvent]) -> None:
    """Write these events, in this order, in the transaction of what they report."""
    if new:
        _INSERT(
            connection,
            [
                (
                    *(e.account_id, e.mode.value, e.type.value, e.object_id, e.version),
                    to_ms(e.at),
                    _encode(e.reasons).decode() if e.reasons else None,
                )
                for e in new
            ],
        )


def write_one_event(connection: Connection, new: NewEvent) -> RecordedEvent:
    """Write an event, and return it as it is stored."""
    row = connection.execute(
        insert(events)
        .values(tx=_OWN_TX[connection.dialect.name], **(new._asdict() | {"reasons": None}))
        .returning(events)
    ).one()
    return to_event(row)


def write_sealed_events(
    connection: Connection, log_id: int, start: int, end: int, at: datetime
) -> None:
    """Report the acknowledgments among the log entries `start` to `end` (exclusive) as sealed."""
    statement = _INSERT_SEALED[connection.dialect.name]
    sealed = EventType.ACKNOWLEDGMENT_SEALED.value
    statement(connection, sealed, to_ms(at), log_id, start, end)


def write_notice_events(
    connection: Connection, notice_id: str, version: str, modes: Sequence[Mode], at: datetime
) -> None:
    """Report a published notice version to every account."""
    ids = connection.execute(select(accounts.c.id).order_by(accounts.c.id)).scalars().all()
    type_ = EventType.NOTICE_PUBLISHED
    write_events(
        connection,
        [NewEvent(id_, mode, type_, notice_id, at, version) for mode in modes for id_ in ids],
    )


def settled(connection: Connection) -> ColumnElement[bool]:
    """The condition that no event can appear before this one later."""
    if connection.dialect.name == "sqlite":
        return true()
    return events.c.tx < _FIRST_UNSETTLED


def end_of_events(connection: Connection) -> Position:
    """The position before all events that commit from now on.

    That includes those that other transactions have written but not committed.
    """
    if connection.dialect.name == "sqlite":
        return Position(0, connection.execute(select(func.max(events.c.seq))).scalar_one() or 0)
    return Position(connection.execute(select(_FIRST_UNSETTLED)).scalar_one() - 1, SEQ_MAX)


def last_before(connection: Connection, account_id: str, mode: Mode, at: datetime) -> Position:
    """The position of an account's last event before a time; the beginning if there is none."""
    row = connection.execute(
        select(events.c.tx, events.c.seq)
        .where(events.c.account_id == account_id, events.c.mode == mode, events.c.at < at)
        .order_by(events.c.at.desc(), events.c.tx.desc(), events.c.seq.desc())
        .limit(1)
    ).one_or_none()
    return Position(-1, 0) if row is None else Position(row.tx, row.seq)


def after(
    connection: Connection, account_id: str, mode: Mode, position: Position, limit: int
) -> Select[Any]:
    """The statement for an account's settled events after a position, oldest first."""
    return (
        select(events)
        .where(
            events.c.account_id == account_id,
            events.c.mode == mode,
            tuple_(*position) < POSITION,
            settled(connection),
        )
        .order_by(events.c.tx, events.c.seq)
        .limit(limit)
    )


def to_event(row: Row[*tuple[Any, ...]]) -> RecordedEvent:
    return of_row(
        row,
        RecordedEvent,
        position=Position(row.tx, row.seq),
        created_at=row.at,
        reasons=_decode_reasons(row.reasons) if row.reasons else (),
    )


def find(connection: Connection, account_id: str, mode: Mode, seq: int) -> RecordedEvent | None:
    """The event with this number, if it is of this account and mode."""
    row = connection.execute(
        select(events).where(
            events.c.seq == seq,
            events.c.account_id == account_id,
            events.c.mode == mode,
            settled(connection),
        )
    ).one_or_none()
    return None if row is None else to_event(row)


def find_page(
    connection: Connection,
    account_id: str,
    mode: Mode,
    *,
    type_: EventType | None,
    position: Position | None,
    since: datetime | None,
    limit: int,
) -> tuple[Sequence[RecordedEvent], RecordedEvent | None]:
    """Events after a position, oldest first; none appears later before those of a page.

    Fewer than `limit` may not be all: then the second is the event to continue after.
    """
    position = position or Position(-1, 0)
    if since is not None:
        position = max(position, last_before(connection, account_id, mode, since))
    # A type that is seldom or never found must not walk over all events while others wait.
    number = limit if type_ is None else WINDOW
    window = after(connection, account_id, mode, position, number)
    rows = window.subquery()
    statement = select(rows).order_by(rows.c.tx, rows.c.seq).limit(limit)
    if type_ is not None:
        statement = statement.where(rows.c.type == type_)
    if since is not None:
        statement = statement.where(rows.c.at >= since)
    found = [to_event(row) for row in connection.execute(statement)]
    if len(found) == limit:
        return found, None
    last = connection.execute(window.limit(1).offset(number - 1)).one_or_none()
    return found, None if last is None else to_event(last)


def renumber_restored(connection: Connection) -> bool:
    """Correct what a logical restore into another PostgreSQL cluster leaves behind.

    Rows with a transaction number that this cluster has not reached are from another cluster. They
    would stay invisible until then, and later ones would come before them. What was restored
    counts as written by transaction 0 from now on; its order is that of the rows. Returns whether
    there was something to correct.
    """
    if connection.dialect.name == "sqlite":
        return False
    # The newest are enough: a server runs this before it writes.
    newest = select(events.c.seq, events.c.tx).order_by(events.c.seq.desc()).limit(_LOOKED_AT)
    rows = newest.subquery()
    foreign = select(rows.c.seq).where(rows.c.tx >= _NEXT_TX).limit(1)
    if connection.execute(foreign).first() is None:
        return False
    end = connection.execute(select(func.max(events.c.seq))).scalar_one()
    connection.execute(update(events).values(tx=0))
    cursor = webhook_endpoints.c.cursor_seq
    connection.execute(
        update(webhook_endpoints).values(
            cursor_tx=0, cursor_seq=case((cursor > end, end), else_=cursor)
        )
    )
    return True


def delete_old_events(connection: Connection, before: datetime, limit: int) -> int:
    """Delete at most `limit` events from before this time; returns how many.

    The last row stays: on the embedded database the numbers continue from it.
    """
    first = select(events.c.seq).order_by(events.c.seq).limit(limit)
    return connection.execute(
        delete(events).where(
            events.c.seq.in_(first),
            events.c.at < before,
            events.c.seq < select(func.max(events.c.seq)).scalar_subquery(),
        )
    ).rowcount
