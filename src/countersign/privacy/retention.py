"""What retention makes due."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from countersign.instant import from_ns
from countersign.privacy import retention_sql as sql
from countersign.privacy.holds_sql import active_holds, find_holding
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
    years = sql.retention_years(connection)
    if not years:
        return [], None
    first = years_after(now, -min(years.values()))
    page = sql.find_acknowledgments_before(connection, first, after, _PAGE)
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
    kept = privacy.evidence_retention
    page = sql.find_evidence_before(connection, now - kept.verified, now - kept.other, after, _PAGE)
    ended = [
        (record, record.at + (kept.verified if verified else kept.other))
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
