"""Whole tables as they stand, for `countersign log check`: they may contain anything."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Row, TextClause, bindparam, select, text, type_coerce
from sqlalchemy.types import NullType

from countersign.db.tables import disclosures, erasures, shred_keys
from countersign.instant import from_ms
from countersign.log.record import DisclosuresRow

# As plain text: SQLAlchemy's types refuse what an honest service would never have written.
_RECORDS: Final = text(
    "SELECT r.id, r.account_id, r.mode, r.type, r.notice_id, r.at, r.digest, r.body,"
    " EXISTS (SELECT 1 FROM log_entries e WHERE e.record_id = r.id) AS sealed,"
    " EXISTS (SELECT 1 FROM log_pending p WHERE p.record_id = r.id) AS pending,"
    " d.account_id AS disclosed_account, d.mode AS disclosed_mode, x.erasure_id"
    " FROM records r LEFT JOIN disclosures d ON d.record_id = r.id"
    " LEFT JOIN erasures x ON x.record_id = r.id"
    " WHERE r.id > :after ORDER BY r.id LIMIT :limit"
)
_OWN_RECORDS: Final = text(
    "SELECT r.id, NULL AS account_id, r.mode, r.type, NULL AS notice_id, r.at, r.digest, r.body,"
    " EXISTS (SELECT 1 FROM log_entries e WHERE e.record_id = r.id) AS sealed,"
    " EXISTS (SELECT 1 FROM log_pending p WHERE p.record_id = r.id) AS pending,"
    " NULL AS disclosed_account, NULL AS disclosed_mode, NULL AS erasure_id"
    " FROM deployment_records r WHERE r.id > :after ORDER BY r.id LIMIT :limit"
)
_NOTICES: Final = text("SELECT notice_id, version, digest, body FROM notice_versions")
_UNRECORDED: Final = text(
    "SELECT x.record_id FROM erasures x LEFT JOIN records r ON r.id = x.erasure_id"
    " WHERE r.id IS NULL ORDER BY x.record_id LIMIT :limit"
)
_CHUNK: Final = 500


class RecordRow(NamedTuple):
    """A record as its row says, and the rows that belong to it.

    `account_id` is None for a record of the deployment itself. `body` is None if it is not stored
    as bytes. `disclosed` is the account and mode of its disclosures, if there are any;
    `erasure_id` names the erasure, if it was erased.
    """

    id: str
    account_id: str | None
    mode: str
    type: str
    notice_id: str | None
    at: datetime
    digest: bytes | None
    body: bytes | None
    sealed: bool
    pending: bool
    disclosed: tuple[str, str] | None
    erasure_id: str | None


class NoticeRow(NamedTuple):
    """A published version of a notice. `body` is None if it is not stored as bytes."""

    notice_id: str
    version: str
    digest: str
    body: bytes | None


def account_records(connection: Connection, after_id: str, limit: int) -> Sequence[RecordRow]:
    """Records of accounts after this id, in order."""
    return _records(connection, _RECORDS, after_id, limit)


def deployment_records(connection: Connection, after_id: str, limit: int) -> Sequence[RecordRow]:
    """Records of the deployment itself after this id, in order."""
    return _records(connection, _OWN_RECORDS, after_id, limit)


def _records(
    connection: Connection, query: TextClause, after_id: str, limit: int
) -> Sequence[RecordRow]:
    rows = connection.execute(query, {"after": after_id, "limit": limit})
    return [_record(row) for row in rows]


def _record(row: Row[Any]) -> RecordRow:
    disclosed = None
    if row.disclosed_account is not None:
        disclosed = row.disclosed_account, row.disclosed_mode
    return RecordRow(
        id=row.id,
        account_id=row.account_id,
        mode=row.mode,
        type=row.type,
        notice_id=row.notice_id,
        at=from_ms(row.at),
        digest=_bytes(row.digest),
        body=_bytes(row.body),
        sealed=bool(row.sealed),
        pending=bool(row.pending),
        disclosed=disclosed,
        erasure_id=row.erasure_id,
    )


def notice_rows(connection: Connection) -> Sequence[NoticeRow]:
    """Every published version of a notice."""
    rows = connection.execute(_NOTICES)
    return [NoticeRow(row.notice_id, row.version, row.digest, _bytes(row.body)) for row in rows]


def erased(connection: Connection, record_ids: Sequence[str]) -> frozenset[str]:
    """Those of these records that the database knows to be erased."""
    query = select(erasures.c.record_id).where(
        erasures.c.record_id.in_(bindparam("ids", expanding=True))
    )
    found: set[str] = set()
    for start in range(0, len(record_ids), _CHUNK):
        ids = record_ids[start : start + _CHUNK]
        found.update(connection.execute(query, {"ids": ids}).scalars())
    return frozenset(found)


def disclosures_of(connection: Connection, record_ids: Sequence[str]) -> Sequence[DisclosuresRow]:
    """The disclosures of those of these records that have any."""
    query = (
        select(
            disclosures.c.record_id,
            disclosures.c.account_id,
            type_coerce(disclosures.c.payload, NullType()),
            type_coerce(shred_keys.c.key, NullType()),
        )
        .outerjoin(shred_keys, shred_keys.c.record_id == disclosures.c.record_id)
        .where(disclosures.c.record_id.in_(bindparam("ids", expanding=True)))
        .order_by(disclosures.c.record_id)
    )
    rows = connection.execute(query, {"ids": record_ids})
    return [
        DisclosuresRow(
            row[0], row[1], _bytes(row[2]) or b"", None if row[3] is None else _bytes(row[3]) or b""
        )
        for row in rows
    ]


def unrecorded_erasures(connection: Connection, limit: int) -> Sequence[str]:
    """Records that count as erased although no erasure is on record."""
    return [row[0] for row in connection.execute(_UNRECORDED, {"limit": limit})]


def _bytes(value: object) -> bytes | None:
    return bytes(value) if isinstance(value, bytes | memoryview) else None
