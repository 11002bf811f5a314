"""After a restore: what was erased since the backup is erased again, and written down as erased."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import structlog

from countersign.errors import OnHold
from countersign.privacy import restored_sql as sql
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
    while page := await database.scan(sql.find_keyless, after, _PAGE):
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
    await database.write(sql.finish, buyers_too=not held)
    return total


async def _erase_buyers(privacy: Privacy) -> int:
    """Erase the buyers again that were erased since the backup; gives how many a hold keeps."""
    database, secret = privacy.access.database, privacy.access.secret
    reason, held = ErasureReason.OTHER, 0
    for cbid in await database.scan(sql.find_erased_buyers, secret):
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
