"""Clearances as they are read back, and what was done for their orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, insert, select, update

from countersign.domain.fulfilment import (
    FulfilmentReceipt,
    NewFulfilment,
    StoredClearance,
    StoredRecord,
    is_complete,
)
from countersign.domain.mode import Mode
from countersign.domain.record import Sealed
from countersign.errors import ClearanceClosed, CountersignError
from countersign.storage.batching import each
from countersign.storage.database import Database
from countersign.storage.idempotency import keep_answers
from countersign.storage.journal import Journal
from countersign.storage.tables import (
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
    .where(fulfilments.c.ack_id == bindparam("ack_id"))
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

    async def add(self, new: NewFulfilment) -> FulfilmentReceipt:
        """Write a report on an order; with the last of it the order is closed.

        Raises:
            ClearanceClosed: all was reported already.
        """
        return await self._database.write(self._add, new)

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
        earlier = connection.execute(_SELECT_FULFILMENTS, {"ack_id": new.ack_id}).all()
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
        receipt = FulfilmentReceipt(
            fulfilment_id=new.record.id,
            clearance_id=new.clearance_id,
            closed_at=new.at if closes else None,
        )
        if new.remember is not None:
            keep_answers(connection, [new.remember(receipt)])
        return receipt


@each
def _get(connection: Connection, item: tuple[str, Mode, str]) -> StoredClearance | None:
    return _read(connection, *item)


def _read(
    connection: Connection, account_id: str, mode: Mode, clearance_id: str
) -> StoredClearance | None:
    row = connection.execute(
        _SELECT_CLEARANCE, {"id": clearance_id, "account_id": account_id, "mode": mode}
    ).one_or_none()
    if row is None:
        return None
    granted = row.expires_at is not None
    reports = (
        connection.execute(_SELECT_FULFILMENTS, {"ack_id": row.ack_id}).all() if granted else []
    )
    ids = [clearance_id, *(report.id for report in reports)]
    stored = {r.id: _stored(r) for r in connection.execute(_SELECT_RECORDS, {"ids": ids})}
    return StoredClearance(
        account_id=account_id,
        mode=mode,
        record=stored[clearance_id],
        ack_id=row.ack_id,
        kid=row.kid,
        expires_at=row.expires_at,
        fulfilments=[stored[report.id] for report in reports],
        closed_at=next((report.at for report in reports if report.closes), None),
    )


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
