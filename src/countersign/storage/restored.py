"""What a restored database still shows as personal, though its keys were destroyed since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, delete, func, select

from countersign.domain.mode import Mode
from countersign.domain.record import KeylessRecord
from countersign.storage.batching import each
from countersign.storage.database import Database
from countersign.storage.tables import deployment, disclosures, shred_keys

KEYS_MISSING: Final = "restored_keys_missing"
"""Name of the deployment's value that says: what has no shred key here was erased."""


class RestoredRecords:
    """See `ports.RestoredStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keyless(self, after_id: str, limit: int) -> Sequence[KeylessRecord]:
        """Records after this one whose shred key was destroyed since the backup, in order.

        None in a database that was not restored, or whose erasures are written down.
        """
        return await self._database.scan(_keyless, (after_id, limit))

    async def done(self) -> None:
        """Every one of them has its erasure."""
        await self._database.write(_done, None)


@each
def _keyless(connection: Connection, item: tuple[str, int]) -> Sequence[KeylessRecord]:
    after_id, limit = item
    noted = select(deployment.c.name).where(deployment.c.name == KEYS_MISSING)
    if connection.execute(noted).first() is None:
        return ()
    rows = connection.execute(
        select(disclosures.c.record_id, disclosures.c.account_id, disclosures.c.mode)
        .outerjoin(shred_keys, shred_keys.c.record_id == disclosures.c.record_id)
        .where(
            disclosures.c.record_id > after_id,
            shred_keys.c.record_id.is_(None),
            func.substr(disclosures.c.payload, 1, 1) == b"\x01",  # sealed by the vault
        )
        .order_by(disclosures.c.record_id)
        .limit(limit)
    )
    return [KeylessRecord(row.record_id, row.account_id, Mode(row.mode)) for row in rows]


@each
def _done(connection: Connection, _: None) -> None:
    connection.execute(delete(deployment).where(deployment.c.name == KEYS_MISSING))
