"""Acknowledgments in the database: the record, its disclosures, and the kept answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeAlias, TypeVar

from sqlalchemy import Connection, Row, Select, bindparam, select

from countersign.access.idempotency import keep_answers
from countersign.acknowledgments.model import (
    AcknowledgmentQuery,
    NewAcknowledgment,
    StoredAcknowledgment,
)
from countersign.db.database import Database
from countersign.db.tables import (
    acknowledgment_uses,
    disclosures,
    erasures,
    log_entries,
    logs,
    records,
    shred_keys,
)
from countersign.errors import CountersignError
from countersign.ids import ACKNOWLEDGMENT as ID_PREFIX
from countersign.ids import earliest_id
from countersign.instant import to_ms
from countersign.log.journal import Journal
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
    )
    .select_from(
        records.outerjoin(disclosures, disclosures.c.record_id == records.c.id)
        .outerjoin(shred_keys, shred_keys.c.record_id == records.c.id)
        .outerjoin(log_entries, log_entries.c.record_id == records.c.id)
        .outerjoin(logs, logs.c.id == log_entries.c.log_id)
        .outerjoin(erasures, erasures.c.record_id == records.c.id)
    )
    .where(records.c.type == RecordType.ACKNOWLEDGMENT)
)
_SELECT_ONE: Final = _SELECT.where(
    records.c.id == bindparam("id"),
    records.c.account_id == bindparam("account_id"),
    records.c.mode == bindparam("mode"),
)


T = TypeVar("T")
_Make: TypeAlias = Callable[[Sequence[Any]], Sequence[NewAcknowledgment]]


class Acknowledgments:
    """See `ports.AcknowledgmentStore`."""

    def __init__(self, database: Database, journal: Journal) -> None:
        self._database = database
        self._journal = journal

    async def add(self, act: T, make: Callable[[Sequence[T]], Sequence[NewAcknowledgment]]) -> None:
        """Write the record, its disclosures and the kept answer: all of them, or none.

        `make` gives what to write for all the acts that share the transaction.
        """
        await self._database.write_batched(self._add, (act, make))

    async def get(self, account_id: str, mode: Mode, ack_id: str) -> StoredAcknowledgment | None:
        """One acknowledgment of this account and mode."""
        return await self._database.read(_get, (account_id, mode, ack_id))

    async def find(self, query: AcknowledgmentQuery) -> Sequence[StoredAcknowledgment]:
        """Newest first, at most `query.limit`."""
        return await self._database.scan(_find, query)

    def _add(
        self, connection: Connection, items: Sequence[tuple[Any, _Make]]
    ) -> Sequence[CountersignError | None]:
        made = [
            new
            for make, group in groupby(items, itemgetter(1))
            for new in make([act for act, _ in group])
        ]
        self._journal.write(connection, [new.record for new in made])
        keep_answers(connection, [new.remember(new.receipt) for new in made if new.remember])
        return [None] * len(items)


def _get(connection: Connection, item: tuple[str, Mode, str]) -> StoredAcknowledgment | None:
    account_id, mode, ack_id = item
    row = connection.execute(
        _SELECT_ONE, {"id": ack_id, "account_id": account_id, "mode": mode}
    ).one_or_none()
    return _from_row(row) if row is not None else None


def _find(connection: Connection, query: AcknowledgmentQuery) -> Sequence[StoredAcknowledgment]:
    return [_from_row(row) for row in connection.execute(_find_statement(query))]


def _find_statement(query: AcknowledgmentQuery) -> Select[Any]:
    # By a blind index, a few disclosures lead to their records; else the account's own records are
    # walked. The conditions stand on the table to begin with, which leaves a planner no choice.
    start = records if query.session_index is None and query.cbid_index is None else disclosures
    id_ = records.c.id if start is records else disclosures.c.record_id
    statement = _SELECT.where(start.c.account_id == query.account_id, start.c.mode == query.mode)
    if query.session_index is not None:
        statement = statement.where(disclosures.c.session_index == query.session_index)
    if query.cbid_index is not None:
        statement = statement.where(disclosures.c.cbid_index == query.cbid_index)
    if query.notice_id is not None:
        statement = statement.where(records.c.notice_id == query.notice_id)
    # Identifiers begin with the millisecond of acceptance, so a range of times is one of ids.
    if query.accepted_after is not None:
        earliest = earliest_id(ID_PREFIX, to_ms(query.accepted_after))
        statement = statement.where(id_ >= earliest)
    if query.accepted_before is not None:
        end = earliest_id(ID_PREFIX, to_ms(query.accepted_before))
        statement = statement.where(id_ < end)
    if query.older_than is not None:
        statement = statement.where(id_ < query.older_than)
    return statement.order_by(id_.desc()).limit(query.limit)


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
    )


def find_owner(connection: Connection, ack_id: str) -> tuple[str, Mode] | None:
    """The account and mode of an acknowledgment."""
    statement = select(records.c.account_id, records.c.mode).where(
        records.c.id == ack_id, records.c.type == RecordType.ACKNOWLEDGMENT
    )
    row = connection.execute(statement).one_or_none()
    return None if row is None else (row.account_id, Mode(row.mode))


def granted_clearances(connection: Connection, ack_ids: Sequence[str]) -> Mapping[str, str]:
    """By acknowledgment, the newest clearance that was granted with it."""
    uses = acknowledgment_uses.c
    query = select(uses.ack_id, uses.clearance_id).where(
        uses.ack_id.in_(ack_ids), uses.clearance_id.is_not(None)
    )
    return {row.ack_id: row.clearance_id for row in connection.execute(query)}
