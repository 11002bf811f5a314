"""Personal data whose retention period may have ended, read in pages by record id."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec
from sqlalchemy import Connection, and_, not_, or_, select

from countersign.buyers.model import BuyerStatus
from countersign.db.tables import (
    disclosures,
    notice_versions,
    records,
    verification_evidence,
    verifications,
)
from countersign.ids import ACKNOWLEDGMENT, earliest_id
from countersign.instant import to_ms
from countersign.log.record import RecordType
from countersign.privacy.erase_sql import SELECT_ERASABLE, to_erasable
from countersign.privacy.model import Erasable


class _Notice(msgspec.Struct):
    retention_years: int | None = None


class _Acknowledgment(msgspec.Struct):
    notice_digest: str


_read_notice: Final = msgspec.json.Decoder(_Notice).decode
_read_acknowledgment: Final = msgspec.json.Decoder(_Acknowledgment).decode


def retention_years(connection: Connection) -> dict[str, int]:
    """How many years acknowledgments are kept, by the digest of the notice; without limit: none."""
    rows = connection.execute(select(notice_versions.c.digest, notice_versions.c.body))
    found = {row.digest: _read_notice(row.body).retention_years for row in rows}
    return {digest: years for digest, years in found.items() if years is not None}


def notice_of(acknowledgment: Erasable) -> str:
    """The digest of the notice that was acknowledged."""
    return _read_acknowledgment(acknowledgment.body).notice_digest


def find_acknowledgments_before(
    connection: Connection, before: datetime, after_id: str, limit: int
) -> list[Erasable]:
    """Acknowledgments accepted before this time that still have disclosures, oldest first."""
    query = (
        SELECT_ERASABLE.join(disclosures, disclosures.c.record_id == records.c.id)
        .where(
            records.c.type == RecordType.ACKNOWLEDGMENT,
            records.c.id > after_id,
            records.c.id < earliest_id(ACKNOWLEDGMENT, to_ms(before)),
        )
        .order_by(records.c.id)
        .limit(limit)
    )
    return [to_erasable(row) for row in connection.execute(query)]


def find_evidence_before(
    connection: Connection,
    verified_before: datetime,
    other_before: datetime,
    after_id: str,
    limit: int,
) -> Sequence[tuple[Erasable, bool]]:
    """Verifications that still have evidence, oldest first, and whether each verified the buyer.

    Args:
        connection: of the transaction.
        verified_before: for those that verified the buyer.
        other_before: for all others.
        after_id: begin after this one.
        limit: at most so many.
    """
    verified = verifications.c.status == BuyerStatus.VERIFIED
    query = (
        SELECT_ERASABLE.add_columns(verified.label("verified"))
        .join(verifications, verifications.c.id == records.c.id)
        .join(verification_evidence, verification_evidence.c.record_id == records.c.id)
        .where(
            records.c.id > after_id,
            or_(
                and_(verified, verifications.c.at < verified_before),
                and_(not_(verified), verifications.c.at < other_before),
            ),
        )
        .order_by(records.c.id)
        .limit(limit)
    )
    return [(to_erasable(row), bool(row.verified)) for row in connection.execute(query)]
