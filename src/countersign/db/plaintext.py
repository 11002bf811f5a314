"""Disclosures that a database from before the vault holds unencrypted."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, func, insert, select, update

from countersign.db.database import Database
from countersign.db.tables import disclosures, shred_keys
from countersign.log.record import DisclosuresRow

# Then the payload was a JSON array; what the vault makes begins with 0x01.
_PLAIN = func.substr(disclosures.c.payload, 1, 1) == b"["


class PlaintextDisclosures:
    """See `ports.PlaintextStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def some(self, limit: int) -> Sequence[DisclosuresRow]:
        """Rows that are not encrypted."""
        return await self._database.scan(_some, limit)

    async def replace(self, rows: Sequence[DisclosuresRow]) -> None:
        """Store these rows sealed, each with its shred key."""
        await self._database.write(_replace, tuple(rows))


def _some(connection: Connection, limit: int) -> Sequence[DisclosuresRow]:
    rows = connection.execute(
        select(disclosures.c.record_id, disclosures.c.account_id, disclosures.c.payload)
        .where(_PLAIN)
        .limit(limit)
    )
    return [DisclosuresRow(row.record_id, row.account_id, row.payload, None) for row in rows]


def _replace(connection: Connection, rows: tuple[DisclosuresRow, ...]) -> None:
    for row in rows:
        changed = connection.execute(
            update(disclosures)
            .where(disclosures.c.record_id == row.record_id, _PLAIN)
            .values(payload=row.payload)
        )
        if changed.rowcount:
            connection.execute(
                insert(shred_keys), {"record_id": row.record_id, "key": row.shred_key}
            )
