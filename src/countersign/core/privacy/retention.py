"""Data whose retention period has ended."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from countersign.base.db.statements import of_row, rows
from countersign.base.db.tables import (
    disclosures,
    records,
    verification_evidence,
    verifications,
)
from countersign.base.values import (
    ACKNOWLEDGMENT,
    VERIFICATION,
    earliest_id,
    from_ns,
    is_id,
    to_ms,
)
from countersign.core.access.reach import Reach
from countersign.core.buyers.model import BuyerStatus
from countersign.core.log.record import RecordType
from countersign.core.privacy import erase_sql as sql
from countersign.core.privacy.held import find_held
from countersign.core.privacy.model import Due, Erasable, years_after
from countersign.core.privacy.room import Privacy

_PAGE: Final = 500


async def list_due(
    privacy: Privacy, reach: Reach, until: datetime | None = None, after: str = ""
) -> AsyncIterator[Due]:
    """Data in reach past its retention, on hold or not: acknowledgments, then checks.

    Each oldest first. `until`: due at that time; `after`: only records after this one.
    """
    now = until or from_ns(privacy.access.clock.time_ns())
    kinds = ((ACKNOWLEDGMENT, _acknowledgments), (VERIFICATION, _evidence))
    for kind, pages in kinds[1 if is_id(VERIFICATION, after) else 0 :]:
        place, scan = after if is_id(kind, after) else "", privacy.access.database.scan
        while page := await scan(pages, privacy, now, place, reach):
            found = [(record, end) for record, end in page if end is not None and end <= now]
            ids = [record.record_id for record, _ in found]
            held = await scan(find_held, privacy.access.secret, ids, reach)
            for record, end in found:
                hold, _ = held.get(record.record_id, (None, ""))
                yield Due(
                    record_id=record.record_id,
                    account_id=record.account_id,
                    retention_ended_at=end,
                    hold=hold,
                )
            place = page[-1][0].record_id


def _acknowledgments(
    connection: Connection, _: Privacy, now: datetime, after: str, reach: Reach
) -> Sequence[tuple[Erasable, datetime | None]]:
    """Acknowledgments after one, oldest first, and when the retention period of each ends.

    Only those that still have disclosures and are old enough for the shortest period.
    """
    years = sql.find_retention_years(connection)
    if not years:
        return []
    oldest = earliest_id(ACKNOWLEDGMENT, to_ms(years_after(now, -min(years.values()))))
    query = (
        sql.SELECT_ERASABLE.join(disclosures, disclosures.c.record_id == records.c.id)
        .where(
            reach.rows(records),
            records.c.type == RecordType.ACKNOWLEDGMENT,
            records.c.id > after,
            records.c.id < oldest,
        )
        .order_by(records.c.id)
        .limit(_PAGE)
    )
    found = rows(connection, query, Erasable)
    return [(record, sql.kept_until(record, years)) for record in found]


def _evidence(
    connection: Connection, privacy: Privacy, now: datetime, after: str, reach: Reach
) -> Sequence[tuple[Erasable, datetime | None]]:
    """The same of verifications with evidence past its retention."""
    kept, other_kept = privacy.verified_evidence_kept, privacy.other_evidence_kept
    verified, at = verifications.c.status == BuyerStatus.VERIFIED, verifications.c.at
    query = (
        sql.SELECT_ERASABLE.add_columns(verified.label("verified"))
        .join(verifications, verifications.c.id == records.c.id)
        .join(verification_evidence, verification_evidence.c.record_id == records.c.id)
        .where(
            reach.rows(records),
            records.c.id > after,
            (verified & (at < now - kept)) | (~verified & (at < now - other_kept)),
        )
        .order_by(records.c.id)
        .limit(_PAGE)
    )
    return [
        (of_row(row, Erasable), row.at + (kept if row.verified else other_kept))
        for row in connection.execute(query)
    ]
