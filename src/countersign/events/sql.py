"""Events: written in the transaction of what they tell of, read in one order that never changes.

On the embedded database one transaction writes at a time, so the numbers of rows are the order of
commits. On PostgreSQL they are not: a transaction with a smaller number may commit later, and a
reader who has gone past it would never see its rows. So there each row carries the number of its
transaction, readers see a row only when no transaction with a smaller or equal number is still
under way, and the order is that of transaction and row.
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
    bindparam,
    case,
    func,
    insert,
    literal_column,
    select,
    true,
    tuple_,
    update,
)

from countersign.buyers.model import Buyer, reasons_for
from countersign.db.bulk import DriverStatement
from countersign.db.database import Database
from countersign.db.tables import (
    accounts,
    acknowledgment_uses,
    buyers,
    events,
    verifications,
    webhook_endpoints,
)
from countersign.events.model import Event, EventQuery, EventType, NewEvent, Position
from countersign.instant import to_ms
from countersign.mode import Mode
from countersign.reason import Reason

_TX: Final = {"sqlite": "0", "postgresql": "pg_current_xact_id()::text::bigint"}
_OWN_TX: Final[dict[str, ColumnElement[int]]] = {
    dialect: literal_column(tx, events.c.tx.type) for dialect, tx in _TX.items()
}
_COLUMNS: Final = "account_id, mode, type, object_id, version, at"
_encode: Final = msgspec.json.Encoder().encode
_decode_reasons: Final = msgspec.json.Decoder(tuple[Reason, ...]).decode
_INSERT: Final = {
    dialect: f"INSERT INTO events (tx, {_COLUMNS}, reasons) VALUES ({tx}, {', '.join([mark] * 7)})"  # noqa: S608 - our own names
    for dialect, tx, mark in (
        ("sqlite", _TX["sqlite"], "?"),
        ("postgresql", _TX["postgresql"], "%s"),
    )
}
_INSERT_SEALED: Final = {
    dialect: DriverStatement(
        f"INSERT INTO events (tx, {_COLUMNS})"  # noqa: S608 - our own names
        f" SELECT {tx}, r.account_id, r.mode, ?, r.id, NULL, ?"
        " FROM log_entries e JOIN records r ON r.id = e.record_id"
        " WHERE e.log_id = ? AND e.leaf_index >= ? AND e.leaf_index < ?"
        " AND r.type = 'acknowledgment' ORDER BY e.leaf_index"
    )
    for dialect, tx in _TX.items()
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

_VERIFIED: Final = (
    select(verifications.c.account_id).where(verifications.c.cbid == bindparam("cbid")).distinct()
)
_CLEARED: Final = (
    select(acknowledgment_uses.c.account_id, acknowledgment_uses.c.cbid)
    .where(
        acknowledgment_uses.c.cbid.in_(bindparam("cbids", expanding=True)),
        acknowledgment_uses.c.clearance_id.is_not(None),
    )
    .distinct()
)
_ALIASES: Final = select(buyers.c.account_id, buyers.c.cbid).where(
    buyers.c.same_as == bindparam("cbid")
)

EVENT_COLUMNS: Final = (
    events.c.tx,
    events.c.seq,
    events.c.account_id,
    events.c.mode,
    events.c.type,
    events.c.object_id,
    events.c.version,
    events.c.at,
    events.c.triggered,
    events.c.reasons,
)


def write_events(connection: Connection, new: Sequence[NewEvent]) -> None:
    """Write these events, in this order, in the transaction of what they tell of."""
    if new:
        connection.exec_driver_sql(
            _INSERT[connection.dialect.name],
            [
                (
                    *(e.account_id, e.mode.value, e.type.value, e.object_id, e.version),
                    to_ms(e.at),
                    _encode(e.reasons).decode() if e.reasons else None,
                )
                for e in new
            ],
        )


def write_one_event(connection: Connection, new: NewEvent) -> Event:
    """Write an event, and give it as it is stored."""
    row = connection.execute(
        insert(events)
        .values(
            tx=_OWN_TX[connection.dialect.name],
            account_id=new.account_id,
            mode=new.mode,
            type=new.type,
            object_id=new.object_id,
            version=new.version,
            at=new.at,
            triggered=new.triggered,
        )
        .returning(*EVENT_COLUMNS)
    ).one()
    return to_event(row)


def write_sealed_events(
    connection: Connection, log_id: int, start: int, end: int, at: datetime
) -> None:
    """Tell of the acknowledgments among the entries from `start` to before `end`."""
    statement = _INSERT_SEALED[connection.dialect.name]
    sealed = EventType.ACKNOWLEDGMENT_SEALED.value
    statement(connection, sealed, to_ms(at), log_id, start, end)


def write_buyer_events(  # noqa: PLR0917 - the columns
    connection: Connection,
    type_: EventType,
    mode: Mode,
    cbid: str,
    at: datetime,
    buyer: Buyer | None = None,
) -> None:
    """Tell of a buyer to every account that has verified or cleared it.

    `buyer` is given where there can be reasons: the account whose attempt they are from gets them.
    Where another identifier has turned out to be the same person, who knows it by that one is told
    by that one: nobody learns a name of the buyer that was not theirs.
    """
    aliases = connection.execute(_ALIASES, {"cbid": cbid}).all()
    cleared = connection.execute(
        _CLEARED, {"cbids": [cbid, *(alias.cbid for alias in aliases)]}
    ).all()
    verified = connection.execute(_VERIFIED, {"cbid": cbid}).scalars()
    known = {(account_id, cbid) for account_id in verified}
    known |= {(alias.account_id, alias.cbid) for alias in aliases}
    known |= {(use.account_id, use.cbid) for use in cleared}
    write_events(
        connection,
        [
            NewEvent(
                *(account_id, mode, type_, name, at),
                reasons=() if buyer is None else reasons_for(buyer, account_id),
            )
            for account_id, name in sorted(known)
        ],
    )


def write_notice_events(
    connection: Connection, notice_id: str, version: str, modes: Sequence[Mode], at: datetime
) -> None:
    """Tell of a published notice version to every account that there is."""
    ids = connection.execute(select(accounts.c.id).order_by(accounts.c.id)).scalars().all()
    type_ = EventType.NOTICE_PUBLISHED
    write_events(
        connection,
        [NewEvent(id_, mode, type_, notice_id, at, version) for mode in modes for id_ in ids],
    )


def settled(connection: Connection) -> ColumnElement[bool]:
    """The condition that no event can appear before this one any more."""
    if connection.dialect.name == "sqlite":
        return true()
    return events.c.tx < _FIRST_UNSETTLED


def end_of_events(connection: Connection) -> Position:
    """The position after which come exactly the events that commit from now on.

    And those that other transactions have written just now without having committed.
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
        select(*EVENT_COLUMNS)
        .where(
            events.c.account_id == account_id,
            events.c.mode == mode,
            tuple_(*position) < POSITION,
            settled(connection),
        )
        .order_by(events.c.tx, events.c.seq)
        .limit(limit)
    )


def to_event(row: Row[*tuple[Any, ...]]) -> Event:
    """An event from its row."""
    return Event(
        position=Position(row.tx, row.seq),
        account_id=row.account_id,
        mode=Mode(row.mode),
        type=EventType(row.type),
        object_id=row.object_id,
        version=row.version,
        created_at=row.at,
        triggered=row.triggered,
        reasons=_decode_reasons(row.reasons) if row.reasons else (),
    )


class Events:
    """See `ports.EventStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, account_id: str, mode: Mode, seq: int) -> Event | None:
        """The event with this number, if it is of this account and mode."""
        return await self._database.read(_get, (account_id, mode, seq))

    async def find(self, query: EventQuery) -> tuple[Sequence[Event], Event | None]:
        """Oldest first, at most `query.limit`; and where to go on if not all was looked at."""
        return await self._database.scan(_find, query)

    async def heal(self) -> bool:
        """Put right what a logical restore into another PostgreSQL cluster leaves behind."""
        return await self._database.write(_heal, None)


def _get(connection: Connection, item: tuple[str, Mode, int]) -> Event | None:
    account_id, mode, seq = item
    row = connection.execute(
        select(*EVENT_COLUMNS).where(
            events.c.seq == seq,
            events.c.account_id == account_id,
            events.c.mode == mode,
            settled(connection),
        )
    ).one_or_none()
    return None if row is None else to_event(row)


def _find(connection: Connection, query: EventQuery) -> tuple[Sequence[Event], Event | None]:
    position = query.after or Position(-1, 0)
    if query.since is not None:
        before = last_before(connection, query.account_id, query.mode, query.since)
        position = max(position, before)
    # A type that is seldom or never found must not walk over all events while others wait.
    number = query.limit if query.type is None else WINDOW
    window = after(connection, query.account_id, query.mode, position, number)
    rows = window.subquery()
    statement = select(rows).order_by(rows.c.tx, rows.c.seq).limit(query.limit)
    if query.type is not None:
        statement = statement.where(rows.c.type == query.type)
    if query.since is not None:
        statement = statement.where(rows.c.at >= query.since)
    found = [to_event(row) for row in connection.execute(statement)]
    if len(found) == query.limit:
        return found, None
    last = connection.execute(window.limit(1).offset(number - 1)).one_or_none()
    return found, None if last is None else to_event(last)


def _heal(connection: Connection, _: None) -> bool:
    """Rows whose transaction this cluster has not come to yet are from another one.

    They would be invisible for as long, and later ones would be ordered before them. What was
    restored counts as written by transaction 0 from now on; its own order is that of the rows.
    """
    if connection.dialect.name == "sqlite":
        return False
    # Looking at the newest ones will do: a server begins before it writes.
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
