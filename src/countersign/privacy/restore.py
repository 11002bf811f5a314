"""After a restore: what was erased since the backup is erased again, and written down as erased.

Such disclosures are those whose keys are missing. Buyers have no keys: their erasure is remembered
by keyed hashes, which go along with the shred keys when the database is backed up.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import structlog
from sqlalchemy import Connection, delete, select, update

from countersign.access.secrets import DeploymentSecret
from countersign.buyers.erased import ERASED_BUYER, erased_name
from countersign.db.tables import buyers, deployment, disclosures, shred_keys
from countersign.errors import OnHold
from countersign.log.record import KeylessRecord
from countersign.mode import Mode
from countersign.privacy.erase import carry_out, make_erasure
from countersign.privacy.erase_sql import find_buyer
from countersign.privacy.model import ErasureReason
from countersign.privacy.room import Privacy

_PAGE: Final = 500

_log: Final = structlog.get_logger("countersign.restore")


async def finish_restore(privacy: Privacy) -> int:
    """Write the lost erasures down; gives of how many records. Harmless when it is done already."""
    database, secret, journal = privacy.access.database, privacy.access.secret, privacy.log.journal
    total, after = 0, ""
    while page := await database.scan(_find_keyless, after, _PAGE):
        after = page[-1].record_id
        for record in page:
            part = await make_erasure(
                privacy, record.account_id, record.mode, [record.record_id], ErasureReason.OTHER
            )
            # Ciphertext that a hold keeps stays, although nothing can decrypt it.
            with suppress(OnHold):
                await database.write(carry_out, secret, journal, [part])
                total += 1
    held = await _erase_buyers(privacy)
    await database.write(_finish, buyers_too=not held)
    return total


async def _erase_buyers(privacy: Privacy) -> int:
    """Erase the buyers again that were erased since the backup; gives how many a hold keeps."""
    database, secret = privacy.access.database, privacy.access.secret
    reason, held = ErasureReason.OTHER, 0
    for cbid in await database.scan(_find_erased_buyers, secret):
        buyer = await database.scan(find_buyer, cbid)
        if buyer is None:
            continue  # erased with another identifier of the same buyer
        left = [[v.record_id] for v in buyer.verifications if v.erased_at is None]
        parts = [
            await make_erasure(privacy, buyer.account_id, buyer.mode, ids, reason)
            for ids in left or [[]]
        ]
        try:
            await database.write(carry_out, secret, privacy.log.journal, parts, cbid=cbid)
        except OnHold as error:
            # The hold was released before the erasure, and the backup is older than both.
            held += 1
            _log.error("erased_buyer_on_hold", reason=error.message)
    return held


KEYS_MISSING: Final = "restored_keys_missing"
"""Name of the deployment's value that says: what has no shred key here was erased."""
ERASURE_DUE: Final = b"due"
"""Value of a remembered erasure after a restore, until the buyer is erased again."""
_DONE: Final = b"done"
_DUE: Final = deployment.c.name.startswith(ERASED_BUYER) & (deployment.c.value == ERASURE_DUE)


def _find_keyless(connection: Connection, after_id: str, limit: int) -> Sequence[KeylessRecord]:
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
        )
        .order_by(disclosures.c.record_id)
        .limit(limit)
    )
    return [KeylessRecord(row.record_id, row.account_id, Mode(row.mode)) for row in rows]


def _find_erased_buyers(connection: Connection, secret: DeploymentSecret) -> Sequence[str]:
    """Buyers that are there although they were erased since the backup.

    None in a database that was not restored, or where they were erased again.
    """
    erased = set(connection.execute(select(deployment.c.name).where(_DUE)).scalars())
    if not erased:
        return ()
    there = connection.execute(select(buyers.c.cbid).order_by(buyers.c.cbid)).scalars()
    return [cbid for cbid in there if erased_name(secret, cbid) in erased]


def _finish(connection: Connection, *, buyers_too: bool) -> None:
    """Note that every such record has its erasure and, if so, that every buyer was erased."""
    waits = select(deployment.c.name).where((deployment.c.name == KEYS_MISSING) | _DUE)
    if connection.execute(waits).first() is None:
        return  # the role of a server, which may not write here, then has nothing to write
    connection.execute(delete(deployment).where(deployment.c.name == KEYS_MISSING))
    if buyers_too:
        # The others are of buyers that the backup does not contain.
        connection.execute(update(deployment).where(_DUE).values(value=_DONE))
