"""Acknowledgments in the database: records with their disclosures and places in the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, select

from countersign.access.key import Principal
from countersign.acknowledgments.model import Search, StoredAcknowledgment
from countersign.db.tables import (
    acknowledgment_uses,
    disclosures,
    erasures,
    log_entries,
    logs,
    records,
    shred_keys,
)
from countersign.ids import ACKNOWLEDGMENT as ID_PREFIX
from countersign.ids import earliest_id
from countersign.instant import to_ms
from countersign.log.record import RecordType, Sealed
from countersign.mode import Mode

_SELECT: Final = (
    select(
        records.c.id,
        records.c.account_id,
        records.c.mode,
        records.c.at,
        records.c.body,
        disclosures.c.payload,
        shred_keys.c.key,
        log_entries.c.leaf_index,
        logs.c.origin,
        erasures.c.at.label("erased_at"),
        acknowledgment_uses.c.clearance_id,
    )
    .select_from(
        records.outerjoin(disclosures, disclosures.c.record_id == records.c.id)
        .outerjoin(shred_keys, shred_keys.c.record_id == records.c.id)
        .outerjoin(log_entries, log_entries.c.record_id == records.c.id)
        .outerjoin(logs, logs.c.id == log_entries.c.log_id)
        .outerjoin(erasures, erasures.c.record_id == records.c.id)
        .outerjoin(acknowledgment_uses, acknowledgment_uses.c.ack_id == records.c.id)
    )
    .where(records.c.type == RecordType.ACKNOWLEDGMENT)
)
_SELECT_ONE: Final = _SELECT.where(
    records.c.id == bindparam("id"),
    records.c.account_id == bindparam("account_id"),
    records.c.mode == bindparam("mode"),
)


def get(connection: Connection, who: Principal, ack_id: str) -> StoredAcknowledgment | None:
    """One acknowledgment of the account and mode of this key."""
    values = {"id": ack_id, "account_id": who.account_id, "mode": who.mode}
    row = connection.execute(_SELECT_ONE, values).one_or_none()
    return _from_row(row) if row is not None else None


def find_owner(connection: Connection, ack_id: str) -> tuple[str, Mode] | None:
    """The account and mode of an acknowledgment of any account."""
    row = connection.execute(
        select(records.c.account_id, records.c.mode).where(
            records.c.id == ack_id, records.c.type == RecordType.ACKNOWLEDGMENT
        )
    ).one_or_none()
    return None if row is None else (row.account_id, Mode(row.mode))


def find(
    connection: Connection,
    who: Principal,
    search: Search,
    session_index: bytes | None = None,
    cbid_index: bytes | None = None,
) -> Sequence[StoredAcknowledgment]:
    """What is found for the account and mode of this key, newest first.

    The blind indexes are those of `session_id` and `cbid` of the search.
    """
    # By a blind index, a few disclosures lead to their records; else the account's own records are
    # walked. The conditions stand on the table to begin with, which leaves a planner no choice.
    start = records if session_index is None and cbid_index is None else disclosures
    id_ = records.c.id if start is records else disclosures.c.record_id
    statement = _SELECT.where(start.c.account_id == who.account_id, start.c.mode == who.mode)
    if session_index is not None:
        statement = statement.where(disclosures.c.session_index == session_index)
    if cbid_index is not None:
        statement = statement.where(disclosures.c.cbid_index == cbid_index)
    if search.notice_id is not None:
        statement = statement.where(records.c.notice_id == search.notice_id)
    # Identifiers begin with the millisecond of acceptance, so a range of times is one of ids.
    if search.accepted_after is not None:
        earliest = earliest_id(ID_PREFIX, to_ms(search.accepted_after))
        statement = statement.where(id_ >= earliest)
    if search.accepted_before is not None:
        end = earliest_id(ID_PREFIX, to_ms(search.accepted_before))
        statement = statement.where(id_ < end)
    if search.after is not None:
        statement = statement.where(id_ < search.after)
    statement = statement.order_by(id_.desc()).limit(search.limit)
    return [_from_row(row) for row in connection.execute(statement)]


def _from_row(row: Row[*tuple[Any, ...]]) -> StoredAcknowledgment:
    return StoredAcknowledgment(
        ack_id=row.id,
        account_id=row.account_id,
        mode=Mode(row.mode),
        accepted_at=row.at,
        record=row.body,
        payload=row.payload,
        shred_key=row.key,
        sealed=None if row.origin is None else Sealed(row.origin, row.leaf_index),
        erased_at=row.erased_at,
        clearance_id=row.clearance_id,
    )
