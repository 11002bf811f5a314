"""Reads whole tables for `countersign log check`, whatever somebody has put into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, TextClause, bindparam, select, text, type_coerce
from sqlalchemy.types import NullType

from countersign.db.database import Database
from countersign.db.tables import disclosures, erasures, shred_keys
from countersign.instant import from_ms
from countersign.log.integrity import NoticeRow, RecordRow
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
_UNTOLD: Final = text(
    "SELECT x.record_id FROM erasures x LEFT JOIN records r ON r.id = x.erasure_id"
    " WHERE r.id IS NULL ORDER BY x.record_id LIMIT :limit"
)
_CHUNK: Final = 500


class Integrity:
    """See `ports.IntegrityStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def records(self, after_id: str, limit: int) -> Sequence[RecordRow]:
        """Records of accounts after this one, in order."""
        return await self._database.scan(_records, (_RECORDS, after_id, limit))

    async def own_records(self, after_id: str, limit: int) -> Sequence[RecordRow]:
        """Records of the deployment itself after this one, in order."""
        return await self._database.scan(_records, (_OWN_RECORDS, after_id, limit))

    async def notices(self) -> Sequence[NoticeRow]:
        """Every published version of a notice."""
        return await self._database.scan(_notices, None)

    async def erased(self, record_ids: Sequence[str]) -> frozenset[str]:
        """Those of these records that the database knows to be erased."""
        return await self._database.scan(_erased, tuple(record_ids))

    async def disclosed(self, record_ids: Sequence[str]) -> Sequence[DisclosuresRow]:
        """The disclosures of those of these records that have any."""
        return await self._database.scan(_disclosed, tuple(record_ids))

    async def untold_erasures(self, limit: int) -> Sequence[str]:
        """Records that count as erased although no erasure is on record."""
        return await self._database.scan(_untold, limit)


def _records(connection: Connection, item: tuple[TextClause, str, int]) -> Sequence[RecordRow]:
    query, after_id, limit = item
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


def _notices(connection: Connection, _: None) -> Sequence[NoticeRow]:
    rows = connection.execute(_NOTICES)
    return [NoticeRow(row.notice_id, row.version, row.digest, _bytes(row.body)) for row in rows]


def _erased(connection: Connection, record_ids: tuple[str, ...]) -> frozenset[str]:
    query = select(erasures.c.record_id).where(
        erasures.c.record_id.in_(bindparam("ids", expanding=True))
    )
    found: set[str] = set()
    for start in range(0, len(record_ids), _CHUNK):
        ids = record_ids[start : start + _CHUNK]
        found.update(connection.execute(query, {"ids": ids}).scalars())
    return frozenset(found)


def _disclosed(connection: Connection, record_ids: tuple[str, ...]) -> Sequence[DisclosuresRow]:
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


def _untold(connection: Connection, limit: int) -> Sequence[str]:
    return [row[0] for row in connection.execute(_UNTOLD, {"limit": limit})]


def _bytes(value: object) -> bytes | None:
    return bytes(value) if isinstance(value, bytes | memoryview) else None
