"""Matters: legal holds on several orders under one name, and what the end of a hold brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import NamedTuple

from sqlalchemy import Connection, and_, func, insert, select, update

from countersign.access.audit import AuditAction, write_audit
from countersign.access.idempotency import Remember, keeping
from countersign.access.reach import Reach, owner_of, reach_of
from countersign.db.rows import of_row
from countersign.db.tables import legal_holds, matters
from countersign.ids import timed_id
from countersign.instant import from_ns
from countersign.mode import Mode
from countersign.privacy.holds import (
    end_hold,
    find_holds,
    find_matter,
    hold_audit,
    new_hold,
    place,
    release_hold,
)
from countersign.privacy.model import Matter
from countersign.privacy.requests import carry_out_request, carry_out_waiting, requested
from countersign.privacy.room import Privacy


class EndedHolds(NamedTuple):
    """What the end of holds brought: what was to be erased and waited for it."""

    hold_ids: Sequence[str]
    erased: Sequence[str]
    requested: dict[str, str]
    """By buyer who had asked to be erased: what came of it."""


async def open_matter(
    privacy: Privacy,
    reach: Reach,
    name: str,
    orders: Sequence[tuple[str, str]],
    entry: Remember[Matter] = None,
) -> Matter:
    """Open a matter, with a hold on each of these subjects, for its reason: all or nothing.

    Raises UnknownSubject.
    """
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
    holds = [new_hold(privacy, reach, subject, reason, matter.id) for subject, reason in orders]

    def act(connection: Connection) -> Matter:
        connection.execute(insert(matters), asdict(matter))
        write_audit(connection, access.audit.entry(AuditAction.MATTER_OPENED, matter.id))
        for hold in holds:
            refusal = place(connection, access.secret, hold, hold_audit(privacy, hold))
            if refusal is not None:
                raise refusal
        return matter

    return await access.database.write(keeping(act, entry))


async def close_matter(privacy: Privacy, reach: Reach, matter_id: str) -> EndedHolds:
    """Release all holds of a matter, and erase what waited for that; an earlier end is kept.

    So one whose close was interrupted can be closed again. Raises UnknownSubject.
    """
    access = privacy.access

    def act(connection: Connection) -> list[str]:
        matter = find_matter(connection, matter_id, reach, closed=True)
        if matter.closed_at is not None:
            return []
        now, ended = from_ns(access.clock.time_ns()), []
        owner = reach_of(matter.account_id, matter.mode)
        for hold in find_holds(connection, reach, matter_id=matter_id, active=True):
            end_hold(connection, hold.id, now)
            details = {"hold_id": hold.id, "matter_id": matter_id}
            audit = access.audit.entry(
                AuditAction.HOLD_RELEASED, hold.subject, hold.owner, **details
            )
            write_audit(connection, audit)
            ended.append(hold.id)
        closed = update(matters).where(matters.c.id == matter_id).values(closed_at=now)
        connection.execute(closed)
        write_audit(connection, access.audit.entry(AuditAction.MATTER_CLOSED, matter_id, owner))
        return ended

    return await _what_waited(privacy, await access.database.write(act), reach)


async def end_one(privacy: Privacy, hold_id: str, reach: Reach) -> EndedHolds:
    """Release a hold in reach, and erase what waited there for its end. Raises UnknownSubject."""
    await release_hold(privacy, hold_id, reach)
    return await _what_waited(privacy, [hold_id], reach)


async def _what_waited(privacy: Privacy, hold_ids: Sequence[str], reach: Reach) -> EndedHolds:
    asked = await privacy.access.database.scan(requested, privacy.access.secret, reach)
    outcomes = {
        one.cbid: (await carry_out_request(privacy, one.cbid, reach)).value for one in asked
    }
    return EndedHolds(hold_ids, await carry_out_waiting(privacy, reach), outcomes)


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
