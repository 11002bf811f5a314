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
from countersign.core.access.reach import DEPLOYMENT, Reach
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.buyers.model import BuyerStatus
from countersign.core.log.record import RecordType
from countersign.core.privacy import erase_sql as sql
from countersign.core.privacy.held import find_held
from countersign.core.privacy.model import Due, Erasable, years_after
from countersign.core.privacy.room import EvidenceKept, Privacy

_PAGE: Final = 500
_KINDS: Final = (ACKNOWLEDGMENT, VERIFICATION)


async def list_due(
    privacy: Privacy, reach: Reach, until: datetime | None = None, after: str = ""
) -> AsyncIterator[Due]:
    """Data in reach past its retention, on hold or not: acknowledgments, then checks.

    Each oldest first. `until`: due at that time; `after`: only records after this one.
    """
    now, access = until or from_ns(privacy.access.clock.time_ns()), privacy.access
    for kind in _KINDS[1 if is_id(VERIFICATION, after) else 0 :]:
        place: str | None = after if is_id(kind, after) else ""
        while place is not None:
            found, place = await access.database.scan(
                _due, access.secret, privacy.kept, now, kind=kind, after=place, reach=reach
            )
            for due in found:
                yield due


def overdue_since(
    connection: Connection, secret: DeploymentSecret, kept: EvidenceKept, now: datetime
) -> datetime | None:
    """When the retention of the oldest data ended that no hold keeps; None: nothing is due."""
    ends: list[datetime] = []
    for kind in _KINDS:
        place: str | None = ""
        while place is not None:
            found, place = _due(
                connection, secret, kept, now, kind=kind, after=place, reach=DEPLOYMENT
            )
            free = [due.retention_ended_at for due in found if due.hold is None]
            if free:
                ends.append(min(free))
                break
    return min(ends, default=None)


def _due(
    connection: Connection,
    secret: DeploymentSecret,
    kept: EvidenceKept,
    now: datetime,
    *,
    kind: str,
    after: str,
    reach: Reach,
) -> tuple[Sequence[Due], str | None]:
    """What is due on the page after a record, and the record to continue after; None: the last."""
    pages = _acknowledgments if kind == ACKNOWLEDGMENT else _evidence
    page = pages(connection, kept, now, after, reach)
    found = [(record, end) for record, end in page if end is not None and end <= now]
    held = find_held(connection, secret, [record.record_id for record, _ in found], reach)
    due = [
        Due(
            record_id=record.record_id,
            account_id=record.account_id,
            retention_ended_at=end,
            hold=held.get(record.record_id, (None, ""))[0],
        )
        for record, end in found
    ]
    return due, page[-1][0].record_id if page else None


def _acknowledgments(
    connection: Connection, _: EvidenceKept, now: datetime, after: str, reach: Reach
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
    connection: Connection, kept: EvidenceKept, now: datetime, after: str, reach: Reach
) -> Sequence[tuple[Erasable, datetime | None]]:
    """The same of verifications with evidence past its retention."""
    verified, at = verifications.c.status == BuyerStatus.VERIFIED, verifications.c.at
    query = (
        sql.SELECT_ERASABLE.add_columns(verified.label("verified"))
        .join(verifications, verifications.c.id == records.c.id)
        .join(verification_evidence, verification_evidence.c.record_id == records.c.id)
        .where(
            reach.rows(records),
            records.c.id > after,
            (verified & (at < now - kept.verified)) | (~verified & (at < now - kept.other)),
        )
        .order_by(records.c.id)
        .limit(_PAGE)
    )
    return [
        (of_row(row, Erasable), row.at + (kept.verified if row.verified else kept.other))
        for row in connection.execute(query)
    ]
