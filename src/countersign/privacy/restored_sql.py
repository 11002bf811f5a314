"""What a restored database still shows as personal, though it was erased since.

Disclosures are told by their missing keys. Buyers have none: what was erased of them is remembered
by keyed hashes, which go along with the shred keys when the database is backed up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, delete, insert, select, update

from countersign.db.database import Database
from countersign.db.tables import buyers, deployment, disclosures, shred_keys
from countersign.instant import to_ms
from countersign.log.record import KeylessRecord
from countersign.mode import Mode
from countersign.ports import CbidIndex

KEYS_MISSING: Final = "restored_keys_missing"
"""Name of the deployment's value that says: what has no shred key here was erased."""

ERASED_BUYER: Final = "erased:"
"""Beginning of the names of deployment values that say: the buyer of this keyed hash was erased."""
ERASURE_DUE: Final = b"due"
"""What such a value is after a restore, until the buyer is erased anew; else when it was."""
_DONE: Final = b"done"
_SCOPE: Final = "erased buyers"


def erased_name(cbid: str, cbid_index: CbidIndex) -> str:
    """The name of the value that remembers the erasure of a buyer."""
    return ERASED_BUYER + cbid_index(_SCOPE, cbid).hex()


def remember_erased(
    connection: Connection, cbids: Sequence[str], cbid_index: CbidIndex, at: datetime
) -> None:
    """Remember the erasure of a buyer with these identifiers, so that no backup undoes it.

    A buyer of the sandbox can come back under its identifier, and be erased again: so the time is
    remembered, too.
    """
    for name in {erased_name(cbid, cbid_index) for cbid in cbids}:
        connection.execute(delete(deployment).where(deployment.c.name == name))
        connection.execute(insert(deployment), {"name": name, "value": str(to_ms(at)).encode()})


class RestoredRecords:
    """See `ports.RestoredStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keyless(self, after_id: str, limit: int) -> Sequence[KeylessRecord]:
        """Records after this one whose shred key was destroyed since the backup, in order.

        None in a database that was not restored, or whose erasures are written down.
        """
        return await self._database.scan(_keyless, (after_id, limit))

    async def erased_buyers(self, cbid_index: CbidIndex) -> Sequence[str]:
        """Buyers that are there, and were erased since the backup.

        None in a database that was not restored, or where they are erased anew.
        """
        return await self._database.scan(_erased_buyers, cbid_index)

    async def done(self, *, buyers_too: bool) -> None:
        """Every one of the records has its erasure, and if so every buyer."""
        await self._database.write(_done, buyers_too)


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
        )
        .order_by(disclosures.c.record_id)
        .limit(limit)
    )
    return [KeylessRecord(row.record_id, row.account_id, Mode(row.mode)) for row in rows]


_DUE: Final = deployment.c.name.startswith(ERASED_BUYER) & (deployment.c.value == ERASURE_DUE)


def _erased_buyers(connection: Connection, cbid_index: CbidIndex) -> Sequence[str]:
    erased = set(connection.execute(select(deployment.c.name).where(_DUE)).scalars())
    if not erased:
        return ()
    there = connection.execute(select(buyers.c.cbid).order_by(buyers.c.cbid)).scalars()
    return [cbid for cbid in there if erased_name(cbid, cbid_index) in erased]


def _done(connection: Connection, buyers_too: bool) -> None:  # noqa: FBT001 - an act's item
    waits = select(deployment.c.name).where((deployment.c.name == KEYS_MISSING) | _DUE)
    if connection.execute(waits).first() is None:
        return  # and servers' role, which may not write here, has nothing to write
    connection.execute(delete(deployment).where(deployment.c.name == KEYS_MISSING))
    if buyers_too:
        # Those left are of buyers that the backup does not know yet.
        connection.execute(update(deployment).where(_DUE).values(value=_DONE))
