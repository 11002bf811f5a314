"""What retention makes due."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, and_, not_, or_

from countersign.buyers.model import BuyerStatus
from countersign.db.tables import (
    disclosures,
    records,
    verification_evidence,
    verifications,
)
from countersign.ids import ACKNOWLEDGMENT, earliest_id
from countersign.instant import from_ns, to_ms
from countersign.log.record import RecordType
from countersign.privacy import erase_sql as sql
from countersign.privacy.erase_sql import SELECT_ERASABLE, to_erasable
from countersign.privacy.holds import active_holds, find_holding
from countersign.privacy.model import Due, Erasable, years_after
from countersign.privacy.room import Privacy

_PAGE: Final = 500


async def list_due(privacy: Privacy) -> AsyncIterator[Due]:
    """What has outlived its retention, on hold or not: acknowledgments, then verifications.

    Of each, the oldest come first.
    """
    now = from_ns(privacy.access.clock.time_ns())
    for find_page in (_due_acknowledgments, _due_evidence):
        after: str | None = ""
        while after is not None:
            found, after = await privacy.access.database.scan(find_page, privacy, now, after)
            for due in found:
                yield due


def _due_acknowledgments(
    connection: Connection, privacy: Privacy, now: datetime, after: str
) -> tuple[list[Due], str | None]:
    years = sql.find_retention_years(connection)
    if not years:
        return [], None
    first = years_after(now, -min(years.values()))
    page = _find_acknowledgments_before(connection, first, after, _PAGE)
    ended = [
        (record, years_after(record.at, years[notice]))
        for record in page
        if (notice := sql.notice_of(record)) in years
    ]
    due = _held_or_not(connection, privacy, [one for one in ended if one[1] <= now])
    return due, _next(page)


def _due_evidence(
    connection: Connection, privacy: Privacy, now: datetime, after: str
) -> tuple[list[Due], str | None]:
    verified_kept, other_kept = privacy.verified_evidence_kept, privacy.other_evidence_kept
    page = _find_evidence_before(connection, now - verified_kept, now - other_kept, after, _PAGE)
    ended = [
        (record, record.at + (verified_kept if verified else other_kept))
        for record, verified in page
    ]
    return _held_or_not(connection, privacy, ended), _next([record for record, _ in page])


def _held_or_not(
    connection: Connection, privacy: Privacy, ended: Sequence[tuple[Erasable, datetime]]
) -> list[Due]:
    ids = [record.record_id for record, _ in ended]
    held = find_holding(connection, privacy.access.secret, active_holds(connection), ids)
    return [
        Due(record_id=r.record_id, retention_ended_at=at, hold=held.get(r.record_id, (None, ""))[0])
        for r, at in ended
    ]


def _next(page: Sequence[Erasable]) -> str | None:
    return page[-1].record_id if len(page) == _PAGE else None


def _find_acknowledgments_before(
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


def _find_evidence_before(
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
