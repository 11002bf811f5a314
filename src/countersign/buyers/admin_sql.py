"""What operators look up: a buyer of any account, and the stored evidence."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import Connection, and_, or_, select

from countersign.buyers.model import Buyer, BuyerStatus
from countersign.buyers.sql import buyers_by_cbid
from countersign.db.tables import (
    deployment,
    erasures,
    records,
    shred_keys,
    verification_evidence,
    verifications,
)


class StoredEvidence(Struct, frozen=True, kw_only=True):
    """The evidence of one verification, as stored: sealed, or erased."""

    verification_id: str
    account_id: str
    provider: str
    status: BuyerStatus
    at: datetime
    payload: bytes
    """Empty if it was erased."""
    shred_key: bytes
    """As above."""
    erased_at: datetime | None


def find_buyer(connection: Connection, cbid: str, *, to_change: bool = False) -> Buyer | None:
    """A buyer of whichever mode and account; the one it was joined to, where it was."""
    buyer = buyers_by_cbid(connection, [cbid], to_change=to_change).get(cbid)
    if buyer is None or buyer.same_as is None:
        return buyer
    return buyers_by_cbid(connection, [buyer.same_as], to_change=to_change).get(buyer.same_as)


def evidence_of_buyer(connection: Connection, cbid: str) -> Sequence[StoredEvidence]:
    """The evidence of a buyer's verifications, oldest first; without content where erased."""
    query = (
        select(
            verifications.c.id,
            verifications.c.account_id,
            verifications.c.provider,
            verifications.c.status,
            verifications.c.at,
            verification_evidence.c.payload,
            shred_keys.c.key.label("shred_key"),
            erasures.c.at.label("erased_at"),
        )
        .join(records, records.c.id == verifications.c.id)
        .outerjoin(verification_evidence, verification_evidence.c.record_id == verifications.c.id)
        .outerjoin(shred_keys, shred_keys.c.record_id == verifications.c.id)
        .outerjoin(erasures, erasures.c.record_id == verifications.c.id)
        .where(
            verifications.c.cbid == cbid,
            # Simulated verifications have no evidence, and never had any.
            verifications.c.session_index.is_not(None),
            or_(
                erasures.c.at.is_not(None),
                and_(verification_evidence.c.payload.is_not(None), shred_keys.c.key.is_not(None)),
            ),
        )
        .order_by(verifications.c.id)
    )
    return [
        StoredEvidence(
            verification_id=row.id,
            account_id=row.account_id,
            provider=row.provider,
            status=BuyerStatus(row.status),
            at=row.at,
            payload=row.payload or b"",
            shred_key=row.shred_key or b"",
            erased_at=row.erased_at,
        )
        for row in connection.execute(query)
    ]


def was_erased(connection: Connection, name: str) -> bool:
    """Whether there was a buyer with this `erased_name`, and it was erased."""
    found = connection.execute(select(deployment.c.name).where(deployment.c.name == name))
    return found.first() is not None
