"""Clearances as they are read back, and what was done for their orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    bindparam,
    insert,
    select,
    union,
    update,
)

from countersign.access.idempotency import keep_answers
from countersign.clearances.fulfilment import (
    ClearanceQuery,
    FulfilmentReceipt,
    NewFulfilment,
    StoredClearance,
    StoredRecord,
    is_complete,
)
from countersign.db.database import Database
from countersign.db.tables import (
    acknowledgment_uses,
    clearances,
    disclosures,
    erasures,
    fulfilments,
    log_entries,
    logs,
    records,
    shred_keys,
)
from countersign.errors import ClearanceClosed, CountersignError
from countersign.events.model import EventType, NewEvent
from countersign.events.sql import write_events
from countersign.log.journal import Journal
from countersign.log.record import RecordType, Sealed
from countersign.mode import Mode

_SELECT_RECORDS: Final = (
    select(
        records.c.id,
        records.c.at,
        records.c.body,
        disclosures.c.payload,
        shred_keys.c.key,
        log_entries.c.leaf_index,
        logs.c.origin,
        erasures.c.at.label("erased_at"),
    )
    .select_from(
        records.outerjoin(disclosures, disclosures.c.record_id == records.c.id)
        .outerjoin(shred_keys, shred_keys.c.record_id == records.c.id)
        .outerjoin(log_entries, log_entries.c.record_id == records.c.id)
        .outerjoin(logs, logs.c.id == log_entries.c.log_id)
        .outerjoin(erasures, erasures.c.record_id == records.c.id)
    )
    .where(records.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(records.c.id)
)
_SELECT_CLEARANCE: Final = select(clearances).where(
    clearances.c.id == bindparam("id"),
    clearances.c.account_id == bindparam("account_id"),
    clearances.c.mode == bindparam("mode"),
)
_SELECT_FULFILMENTS: Final = (
    select(fulfilments)
    .where(fulfilments.c.ack_id.in_(bindparam("ack_ids", expanding=True)))
    .order_by(fulfilments.c.id)
)
_SELECT_USE: Final = (
    select(acknowledgment_uses.c.closed_at)
    .where(acknowledgment_uses.c.ack_id == bindparam("ack_id"))
    .with_for_update()
)


class Fulfilments:
    """See `ports.FulfilmentStore`."""

    def __init__(self, database: Database, journal: Journal) -> None:
        self._database = database
        self._journal = journal

    async def get(self, account_id: str, mode: Mode, clearance_id: str) -> StoredClearance | None:
        """One clearance of this account and mode, with what was reported of its order."""
        return await self._database.read(_get, (account_id, mode, clearance_id))

    async def find(self, query: ClearanceQuery) -> Sequence[StoredClearance]:
        """Newest first, at most `query.limit`."""
        return await self._database.scan(_find, query)

    async def add(self, new: NewFulfilment) -> FulfilmentReceipt:
        """Write a report on an order; with the last of it the order is closed.

        Raises:
            ClearanceClosed: all was reported already.
        """
        return await self._database.write_batched(self._add, new)

    def _add(
        self, connection: Connection, items: Sequence[NewFulfilment]
    ) -> list[FulfilmentReceipt | CountersignError]:
        return [self._add_one(connection, new) for new in items]

    def _add_one(
        self, connection: Connection, new: NewFulfilment
    ) -> FulfilmentReceipt | CountersignError:
        # Two reports at once take turns.
        use = connection.execute(_SELECT_USE, {"ack_id": new.ack_id}).one_or_none()
        if use is not None and use.closed_at is not None:
            return ClearanceClosed()
        earlier = connection.execute(_SELECT_FULFILMENTS, {"ack_ids": [new.ack_id]}).all()
        signature = new.adult_signature or any(row.adult_signature for row in earlier)
        closes = is_complete(new.obligations, adult_signature=signature)
        self._journal.write(connection, [new.record])
        connection.execute(
            insert(fulfilments),
            {
                "id": new.record.id,
                "account_id": new.account_id,
                "mode": new.mode,
                "clearance_id": new.clearance_id,
                "ack_id": new.ack_id,
                "adult_signature": new.adult_signature,
                "closes": closes,
                "at": new.at,
            },
        )
        if closes:
            connection.execute(
                update(acknowledgment_uses)
                .where(acknowledgment_uses.c.ack_id == new.ack_id)
                .values(closed_at=new.at)
            )
            told = (new.account_id, new.mode, EventType.CLEARANCE_CLOSED, new.clearance_id, new.at)
            write_events(connection, [NewEvent(*told)])
        receipt = FulfilmentReceipt(
            fulfilment_id=new.record.id,
            clearance_id=new.clearance_id,
            closed_at=new.at if closes else None,
        )
        if new.remember is not None:
            keep_answers(connection, [new.remember(receipt)])
        return receipt


def _get(connection: Connection, item: tuple[str, Mode, str]) -> StoredClearance | None:
    account_id, mode, clearance_id = item
    rows = connection.execute(
        _SELECT_CLEARANCE, {"id": clearance_id, "account_id": account_id, "mode": mode}
    ).all()
    return next(iter(_read(connection, rows)), None)


def _find(connection: Connection, query: ClearanceQuery) -> Sequence[StoredClearance]:
    return _read(connection, connection.execute(_find_statement(query)).all())


def _find_statement(query: ClearanceQuery) -> Select[Any]:
    # What is sought decides where to begin: by the acknowledgment, by a blind index, or else by
    # walking the account's own records. The conditions stand on that table, which leaves a planner
    # no choice.
    statement = select(clearances)
    id_: ColumnElement[str] = clearances.c.id
    if query.ack_id is not None:
        statement = statement.where(
            clearances.c.ack_id == query.ack_id,
            clearances.c.account_id == query.account_id,
            clearances.c.mode == query.mode,
        )
    if query.session_index is not None:
        # Those refused are found by their own session, those cleared by their acknowledgment's.
        of_session = (
            disclosures.c.account_id == query.account_id,
            disclosures.c.mode == query.mode,
            disclosures.c.session_index == query.session_index,
        )
        cleared = clearances.alias()
        granted = (
            select(cleared.c.id)
            .join(disclosures, disclosures.c.record_id == cleared.c.ack_id)
            .where(cleared.c.expires_at.is_not(None), *of_session)
        )
        refused = select(disclosures.c.record_id).where(*of_session)
        statement = statement.where(clearances.c.id.in_(union(refused, granted)))
    if query.cbid_index is not None:
        statement = statement.join(disclosures, disclosures.c.record_id == clearances.c.id).where(
            disclosures.c.account_id == query.account_id,
            disclosures.c.mode == query.mode,
            disclosures.c.cbid_index == query.cbid_index,
        )
        id_ = disclosures.c.record_id
    if query.ack_id is None and query.session_index is None and query.cbid_index is None:
        id_ = records.c.id
        statement = statement.join(records, records.c.id == clearances.c.id).where(
            records.c.account_id == query.account_id,
            records.c.mode == query.mode,
            records.c.type == RecordType.CLEARANCE,
        )
    if query.older_than is not None:
        statement = statement.where(id_ < query.older_than)
    return statement.order_by(id_.desc()).limit(query.limit)


def _read(connection: Connection, rows: Sequence[Row[Any]]) -> list[StoredClearance]:
    """These clearances, with what belongs to them: three queries, however many they are."""
    ack_ids = sorted({row.ack_id for row in rows if row.expires_at is not None})
    reports: dict[str, list[Row[Any]]] = {ack_id: [] for ack_id in ack_ids}
    if ack_ids:
        for report in connection.execute(_SELECT_FULFILMENTS, {"ack_ids": ack_ids}):
            reports[report.ack_id].append(report)
    ids = [row.id for row in rows]
    ids += [report.id for own in reports.values() for report in own]
    stored = {}
    if ids:
        stored = {r.id: _stored(r) for r in connection.execute(_SELECT_RECORDS, {"ids": ids})}
    return [
        StoredClearance(
            account_id=row.account_id,
            mode=Mode(row.mode),
            record=stored[row.id],
            ack_id=row.ack_id,
            kid=row.kid,
            expires_at=row.expires_at,
            fulfilments=[stored[report.id] for report in own],
            closed_at=next((report.at for report in own if report.closes), None),
        )
        for row in rows
        for own in [reports.get(row.ack_id, []) if row.expires_at is not None else []]
    ]


def _stored(row: Row[*tuple[Any, ...]]) -> StoredRecord:
    return StoredRecord(
        id=row.id,
        at=row.at,
        body=row.body,
        payload=row.payload,
        shred_key=row.key,
        sealed=None if row.origin is None else Sealed(row.origin, row.leaf_index),
        erased_at=row.erased_at,
    )
