"""Matters: legal holds on several orders under one name, and erasures after a hold ends."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import Connection, and_, func, insert, select, update

from countersign.base.db.statements import of_row
from countersign.base.db.tables import legal_holds, matters
from countersign.base.ids import timed_id
from countersign.base.values import Mode, from_ns
from countersign.core.access.audit import AuditAction, write_audit
from countersign.core.access.key import Reach, owner_of, reach_of
from countersign.core.privacy.holds import end_hold, find_holds, find_matter
from countersign.core.privacy.model import Hold, Matter
from countersign.core.privacy.room import Privacy


def begin_matter(connection: Connection, privacy: Privacy, reach: Reach, name: str) -> Matter:
    """A matter without holds."""
    access, time_ns = privacy.access, privacy.access.clock.time_ns()
    account_id, mode = owner_of(reach)
    matter = Matter(
        id=timed_id("mat", time_ns, access.entropy(8)),
        account_id=account_id,
        mode=mode or Mode.LIVE,
        name=name.strip(),
        opened_at=from_ns(time_ns),
        closed_at=None,
    )
    connection.execute(insert(matters), asdict(matter))
    write_audit(connection, access.audit.entry(AuditAction.MATTER_OPENED, matter.id))
    return matter


def close_matter(
    connection: Connection, privacy: Privacy, reach: Reach, matter_id: str
) -> list[Hold]:
    """Release all holds of a matter; returns which ended. An earlier end is kept.

    So one whose close was interrupted can be closed again. Raises UnknownSubject.
    """
    matter = find_matter(connection, matter_id, reach, closed=True)
    if matter.closed_at is not None:
        return []
    now, audit = from_ns(privacy.access.clock.time_ns()), privacy.access.audit
    lasting = find_holds(connection, reach, matter_id=matter_id, active=True)
    ended = [end_hold(connection, privacy, hold, matter_id=matter_id) for hold in lasting]
    connection.execute(update(matters).where(matters.c.id == matter_id).values(closed_at=now))
    owner = reach_of(matter.account_id, matter.mode)
    write_audit(connection, audit.entry(AuditAction.MATTER_CLOSED, matter_id, owner))
    return ended


def find_matters(
    connection: Connection, reach: Reach, after: str, limit: int
) -> list[tuple[Matter, int]]:
    """Matters in reach, oldest first, and how many holds of each last."""
    of_matter = legal_holds.c.matter_id == matters.c.id
    lasts = and_(of_matter, legal_holds.c.released_at.is_(None), reach.rows(legal_holds))
    number = select(func.count()).select_from(legal_holds).where(lasts).scalar_subquery()
    wanted = select(matters, number.label("holds")).where(matters.c.id > after, reach.rows(matters))
    found = connection.execute(wanted.order_by(matters.c.id).limit(limit))
    return [(of_row(one, Matter), one.holds) for one in found]
