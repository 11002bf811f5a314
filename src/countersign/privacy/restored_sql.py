"""What a restored database still shows as personal, although it was erased since the backup.

Such disclosures are those whose keys are missing. Buyers have no keys: their erasure is remembered
by keyed hashes, which go along with the shred keys when the database is backed up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select, update

from countersign.access.secrets import DeploymentSecret
from countersign.buyers.erased import ERASED_BUYER, erased_name
from countersign.db.tables import buyers, deployment, disclosures, shred_keys
from countersign.instant import to_ms
from countersign.log.record import KeylessRecord
from countersign.mode import Mode

KEYS_MISSING: Final = "restored_keys_missing"
"""Name of the deployment's value that says: what has no shred key here was erased."""
ERASURE_DUE: Final = b"due"
"""Value of a remembered erasure after a restore, until the buyer is erased again."""
_DONE: Final = b"done"
_DUE: Final = deployment.c.name.startswith(ERASED_BUYER) & (deployment.c.value == ERASURE_DUE)


def remember_erased(
    connection: Connection, secret: DeploymentSecret, cbids: Sequence[str], at: datetime
) -> None:
    """Remember the erasure of a buyer with these identifiers, so that no backup undoes it.

    A buyer of the sandbox can come back under its identifier, and be erased again: therefore the
    value is the time.
    """
    for name in {erased_name(secret, cbid) for cbid in cbids}:
        connection.execute(delete(deployment).where(deployment.c.name == name))
        connection.execute(insert(deployment), {"name": name, "value": str(to_ms(at)).encode()})


def find_keyless(connection: Connection, after_id: str, limit: int) -> Sequence[KeylessRecord]:
    """Records after this one whose shred key was destroyed since the backup, in order.

    None in a database that was not restored, or whose erasures are written down.
    """
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


def find_erased_buyers(connection: Connection, secret: DeploymentSecret) -> Sequence[str]:
    """Buyers that are there although they were erased since the backup.

    None in a database that was not restored, or where they were erased again.
    """
    erased = set(connection.execute(select(deployment.c.name).where(_DUE)).scalars())
    if not erased:
        return ()
    there = connection.execute(select(buyers.c.cbid).order_by(buyers.c.cbid)).scalars()
    return [cbid for cbid in there if erased_name(secret, cbid) in erased]


def finish(connection: Connection, *, buyers_too: bool) -> None:
    """Note that every such record has its erasure and, if so, that every buyer was erased."""
    waits = select(deployment.c.name).where((deployment.c.name == KEYS_MISSING) | _DUE)
    if connection.execute(waits).first() is None:
        return  # the role of a server, which may not write here, then has nothing to write
    connection.execute(delete(deployment).where(deployment.c.name == KEYS_MISSING))
    if buyers_too:
        # The others are of buyers that the backup does not contain.
        connection.execute(update(deployment).where(_DUE).values(value=_DONE))
