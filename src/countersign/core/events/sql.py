"""Events: written in the transaction of their act, read in one order that never changes.

On the embedded database one transaction writes at a time, so the numbers of rows are the order of
commits. On PostgreSQL they are not: a transaction with a smaller number may commit later, and a
reader that has moved past it would never see its rows. So each row has the number of its
transaction, readers see a row only when no transaction with a smaller or equal number is still
running, and the order is by transaction, then row.

Acknowledgments come by the thousand, and their event has only the identifier, which contains the
time of creation. Events written or sealed together for one account are one row, with the number of
its last event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import Any, Final

import msgspec
import structlog
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
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

from countersign.base.db.statements import (
    BulkInsert,
    Deferred,
    DriverStatement,
    of_row,
    statements_of,
)
from countersign.base.db.tables import NUMBERS, accounts, events, webhook_endpoints
from countersign.base.values import Mode, Reason, from_ms, made_at_ms, to_ms
from countersign.core.access.reach import Reach
from countersign.core.events.model import EventType, NewEvent, Position, RecordedEvent
from countersign.core.events.room import Events

TX: Final = {"sqlite": "0", "postgresql": "pg_current_xact_id()::text::bigint"}
_OWN_TX: Final[dict[str, ColumnElement[int]]] = {
    dialect: literal_column(tx, events.c.tx.type) for dialect, tx in TX.items()
}
CREATED_AND_SEALED: Final = "acknowledgment.*"
"""The type of a row whose acknowledgments were all created and then sealed, in one transaction."""
BOTH: Final = EventType.ACKNOWLEDGMENT_CREATED, EventType.ACKNOWLEDGMENT_SEALED
decoded_reasons: Final = msgspec.json.Decoder(tuple[Reason, ...]).decode
_INSERT: Final = BulkInsert(
    events,
    *("account_id", "mode", "type", "object_id", "version", "at", "reasons"),
    tx=TX,
)
_SQL: Final = statements_of(__package__)
_INSERT_SEVERAL: Final = {
    dialect: DriverStatement(_SQL[f"several_on_{dialect}"].format(tx=tx, numbers=NUMBERS))
    for dialect, tx in TX.items()
}
_SEALED: Final = DriverStatement(_SQL["sealed"])
_FIRST_UNSETTLED: Final[ColumnElement[int]] = literal_column(
    "(pg_snapshot_xmin(pg_current_snapshot())::text::bigint)", events.c.tx.type
)
_NEXT_TX: Final[ColumnElement[int]] = literal_column(
    "(pg_snapshot_xmax(pg_current_snapshot())::text::bigint)", events.c.tx.type
)
SEQ_MAX: Final = (1 << 63) - 1
_LOOKED_AT: Final = 1000
WINDOW: Final = 10_000
"""The number of events from which one page of a type is picked; the next page continues after
them."""
POSITION: Final = tuple_(events.c.tx, events.c.seq)


def write_events(connection: Connection, new: Sequence[NewEvent]) -> None:
    """Write these events, in this order, in the transaction of their act."""
    _INSERT(connection, _rows(new))


def defer_events(connection: Connection, deferred: Deferred, new: Sequence[NewEvent]) -> None:
    """Leave these events, in this order, for the end of the transaction."""
    _INSERT.defer(connection, deferred, _rows(new))


def _rows(new: Sequence[NewEvent]) -> list[tuple[object, ...]]:
    return [
        (
            *(e.account_id, e.mode.value, e.type.value, e.object_id, e.version),
            to_ms(e.at),
            msgspec.json.encode(e.reasons).decode() if e.reasons else None,
        )
        for e in new
    ]


def write_one_event(connection: Connection, new: NewEvent) -> RecordedEvent:
    """Write an event, and return the stored event."""
    row = connection.execute(
        insert(events)
        .values(tx=_OWN_TX[connection.dialect.name], **(new._asdict() | {"reasons": None}))
        .returning(events)
    ).one()
    return next(to_events(row))


def defer_acknowledged(
    connection: Connection,
    deferred: Deferred,
    mode: Mode,
    new: Iterable[tuple[str, str]],
    sealed_at: int | None,
) -> None:
    """Leave the events of new acknowledgments of a mode for the end of the transaction.

    `new` are account and acknowledgment; `sealed_at` is when the same transaction seals them, in
    Unix milliseconds.
    """
    type_ = EventType.ACKNOWLEDGMENT_CREATED.value if sealed_at is None else CREATED_AND_SEALED
    for values in _several(mode, type_, new, sealed_at):
        _INSERT_SEVERAL[connection.dialect.name].defer(connection, deferred, *values)


def write_sealed_events(
    connection: Connection, log_id: int, start: int, end: int, at: datetime
) -> None:
    """Report the acknowledgments among the log entries `start` to `end` (exclusive) as sealed."""
    rows = _SEALED(connection, log_id, start, end)
    found = [row[:3] for row in rows if row[3] == "acknowledgment"]
    for mode in {row[1] for row in found}:
        own = ((account_id, id_) for account_id, of, id_ in found if of == mode)
        type_ = EventType.ACKNOWLEDGMENT_SEALED.value
        for values in _several(Mode(mode), type_, own, to_ms(at)):
            _INSERT_SEVERAL[connection.dialect.name](connection, *values)


def _several(
    mode: Mode, type_: str, of: Iterable[tuple[str, str]], at: int | None
) -> Iterator[tuple[object, ...]]:
    """The values of rows with these events; without a time, they have that of the newest object."""
    accounts_: dict[str, list[str]] = {}
    for account_id, id_ in of:
        accounts_.setdefault(account_id, []).append(id_)
    each = 2 if type_ == CREATED_AND_SEALED else 1
    room = NUMBERS // each
    for account_id, ids in accounts_.items():
        for start in range(0, len(ids), room):
            own = ids[start : start + room]
            when = made_at_ms(max(own)) if at is None else at
            yield len(own) * each, account_id, mode.value, type_, " ".join(own), when


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
    return true() if connection.dialect.name == "sqlite" else events.c.tx < _FIRST_UNSETTLED


def end_of_events(connection: Connection) -> Position:
    """The position before all events that commit from now on.

    This includes uncommitted events of other transactions.
    """
    if connection.dialect.name == "sqlite":
        return Position(0, connection.execute(select(func.max(events.c.seq))).scalar_one() or 0)
    return Position(connection.execute(select(_FIRST_UNSETTLED)).scalar_one() - 1, SEQ_MAX)


def last_before(connection: Connection, reach: Reach, at: datetime) -> Position:
    """The position of the last event in reach before a time; the beginning if there is none."""
    row = connection.execute(
        select(events.c.tx, events.c.seq)
        .where(reach.rows(events), events.c.at < at)
        .order_by(events.c.at.desc(), events.c.tx.desc(), events.c.seq.desc())
        .limit(1)
    ).one_or_none()
    return Position(-1, 0) if row is None else Position(row.tx, row.seq)


def after(connection: Connection, reach: Reach, position: Position, limit: int) -> Select[Any]:
    """The statement for the rows with settled events in reach after a position, oldest first.

    The first row may have some that are not after it.
    """
    return (
        select(events)
        .where(reach.rows(events), tuple_(*position) < POSITION, settled(connection))
        .order_by(events.c.tx, events.c.seq)
        .limit(limit)
    )


def to_events(row: Row[*tuple[Any, ...]]) -> Iterator[RecordedEvent]:
    """The events of a row, in their order."""
    if row.objects is None:
        yield _event(row, row.seq, EventType(row.type), row.object_id, row.at)
        return
    types = BOTH if row.type == CREATED_AND_SEALED else (EventType(row.type),)
    of_each = ((type_, id_) for id_ in row.objects.split(" ") for type_ in types)
    for seq, (type_, id_) in enumerate(of_each, row.first_seq):
        is_sealed = type_ is EventType.ACKNOWLEDGMENT_SEALED
        yield _event(row, seq, type_, id_, row.at if is_sealed else from_ms(made_at_ms(id_)))


def _event(
    row: Row[*tuple[Any, ...]], seq: int, type_: EventType, object_id: str, at: datetime
) -> RecordedEvent:
    return of_row(
        row,
        RecordedEvent,
        position=Position(row.tx, seq),
        type=type_,
        object_id=object_id,
        created_at=at,
        reasons=decoded_reasons(row.reasons) if row.reasons else (),
    )


def holds(number: ColumnElement[int] | int) -> ColumnElement[bool]:
    """The condition that the event with this number is in this row."""
    first = func.coalesce(events.c.first_seq, events.c.seq)
    return and_(events.c.seq >= number, events.c.seq < number + NUMBERS, first <= number)


def numbered(row: Row[*tuple[Any, ...]], number: int) -> RecordedEvent:
    """The event with this number in the row that holds it."""
    return next(event for event in to_events(row) if event.position.seq == number)


def find(connection: Connection, reach: Reach, seq: int) -> RecordedEvent | None:
    """The event with this number, if it is in reach."""
    held = select(events).where(holds(seq), reach.rows(events), settled(connection))
    row = connection.execute(held).one_or_none()
    return None if row is None else numbered(row, seq)


def next_events(
    connection: Connection, reach: Reach, position: Position, limit: int
) -> list[RecordedEvent]:
    """Settled events in reach after a position, oldest first."""
    rows = connection.execute(after(connection, reach, position, limit))
    return [*islice(later(rows, position), limit)]


def later(rows: Iterable[Row[*tuple[Any, ...]]], position: Position) -> Iterator[RecordedEvent]:
    """The events of these rows that come after a position."""
    return (e for e in chain.from_iterable(map(to_events, rows)) if e.position > position)


def renumber_restored(connection: Connection) -> bool:
    """Correct transaction numbers after a logical restore into another PostgreSQL cluster.

    Rows with a transaction number that this cluster has not reached are from another cluster. They
    would stay invisible until then, and later ones would come before them. Restored events then
    count as written by transaction 0, in the order of their rows. Returns whether there was
    something to correct.
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
    moved = {"cursor_tx": 0, "cursor_seq": case((cursor > end, end), else_=cursor)}
    connection.execute(update(webhook_endpoints).values(moved))
    return True


def delete_old_events(connection: Connection, before: datetime, limit: int) -> int:
    """Delete at most `limit` rows of events from before this time; returns how many.

    The last row stays: on the embedded database the numbers continue from it.
    """
    seq, last = events.c.seq, select(func.max(events.c.seq)).scalar_subquery()
    first = select(seq).order_by(seq).limit(limit)
    old = delete(events).where(seq.in_(first), events.c.at < before, seq < last)
    return connection.execute(old).rowcount


_log: Final = structlog.get_logger("countersign.events")


async def repair_order(events: Events) -> None:
    """Before serving: make sure that the order of events continues after a restore."""
    if await events.access.database.write(renumber_restored):
        _log.warning("events_renumbered")


def find_event(
    connection: Connection, events: Events, reach: Reach, event_id: str
) -> RecordedEvent | None:
    """The event with this identifier, if it is in reach."""
    parsed = events.ids.parse(event_id)
    if parsed is None:
        return None
    seq, unix_ms = parsed
    event = find(connection, reach, seq)
    return event if event is not None and to_ms(event.created_at) == unix_ms else None
