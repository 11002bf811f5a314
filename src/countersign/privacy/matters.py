"""Matters: legal holds on several orders under one name, and what the end of a hold brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, and_, func, insert, select, update

from countersign.access.audit import AuditAction, write_audit
from countersign.access.idempotency import Remember, keeping
from countersign.access.key import Principal
from countersign.access.references import named
from countersign.db.rows import of_row, rows
from countersign.db.tables import accounts, buyer_references, buyers, legal_holds, matters, records
from countersign.errors import UnknownSubject
from countersign.ids import timed_id
from countersign.instant import from_ns
from countersign.mode import Mode
from countersign.privacy.holds import (
    end_hold,
    find_matter,
    hold_audit,
    new_hold,
    place,
    release_hold,
)
from countersign.privacy.model import Hold, Matter
from countersign.privacy.requests import carry_out_request, carry_out_waiting, requested
from countersign.privacy.room import Privacy

_ACCOUNT: Any = func.coalesce(records.c.account_id, buyers.c.account_id, accounts.c.id)
_MODE: Any = func.coalesce(records.c.mode, buyers.c.mode)


class OwnedHold(NamedTuple):
    """A hold, and the account and the mode of what it is on; None: both modes, or it is gone."""

    hold: Hold
    account_id: str | None
    mode: Mode | None


class EndedHolds(NamedTuple):
    """What the end of holds brought: what was to be erased and waited for it."""

    hold_ids: Sequence[str]
    erased: Sequence[str]
    requested: dict[str, str]
    """By buyer who had asked to be erased: what came of it."""


async def open_matter(
    privacy: Privacy,
    who: Principal,
    name: str,
    orders: Sequence[tuple[str, str]],
    entry: Remember[Matter] = None,
) -> Matter:
    """Open a matter, with a hold on each of these subjects, for its reason: all or nothing.

    Raises UnknownSubject.
    """
    access, time_ns = privacy.access, privacy.access.clock.time_ns()
    matter = Matter(
        id=timed_id("mat", time_ns, access.entropy(8)),
        account_id=who.account_id,
        mode=who.mode,
        name=name.strip(),
        opened_at=from_ns(time_ns),
        closed_at=None,
    )
    holds = [new_hold(privacy, subject, reason, matter.id) for subject, reason in orders]

    def act(connection: Connection) -> Matter:
        connection.execute(insert(matters), asdict(matter))
        write_audit(connection, access.audit.entry(AuditAction.MATTER_OPENED, matter.id))
        for hold in holds:
            refusal = place(connection, hold, hold_audit(privacy, hold), who)
            if refusal is not None:
                raise refusal
        return matter

    return await access.database.write(keeping(act, entry))


async def close_matter(privacy: Privacy, who: Principal, matter_id: str) -> EndedHolds:
    """Release all holds of a matter, and erase what waited for that; an earlier end is kept.

    So one whose close was interrupted can be closed again. Raises UnknownSubject.
    """
    access = privacy.access

    def act(connection: Connection) -> list[str]:
        matter = find_matter(connection, matter_id, who, closed=True)
        if matter.closed_at is not None:
            return []
        own = select(legal_holds).where(
            legal_holds.c.matter_id == matter_id, legal_holds.c.released_at.is_(None)
        )
        now, ended = from_ns(access.clock.time_ns()), []
        for hold in rows(connection, own, Hold):
            end_hold(connection, hold.id, now)
            details = {"hold_id": hold.id, "matter_id": matter_id}
            audit = access.audit.entry(AuditAction.HOLD_RELEASED, hold.subject, **details)
            write_audit(connection, audit)
            ended.append(hold.id)
        closed = update(matters).where(matters.c.id == matter_id).values(closed_at=now)
        connection.execute(closed)
        write_audit(connection, access.audit.entry(AuditAction.MATTER_CLOSED, matter_id))
        return ended

    return await _what_waited(privacy, await access.database.write(act))


async def end_one(privacy: Privacy, hold_id: str, who: Principal | None = None) -> EndedHolds:
    """Release a hold, and erase what waited for its end. Raises UnknownSubject."""
    if who is not None and not await privacy.access.database.scan(find_holds, who, hold_id=hold_id):
        raise UnknownSubject(f"The hold {hold_id!r} does not exist.")
    await release_hold(privacy, hold_id)
    return await _what_waited(privacy, [hold_id])


async def _what_waited(privacy: Privacy, hold_ids: Sequence[str]) -> EndedHolds:
    asked = await privacy.access.database.read(requested)
    outcomes = {cbid: (await carry_out_request(privacy, cbid)).value for cbid in asked}
    return EndedHolds(hold_ids, await carry_out_waiting(privacy), outcomes)


def find_holds(
    connection: Connection,
    who: Principal,
    *,
    hold_id: str | None = None,
    matter_id: str | None = None,
    active: bool | None = None,
    after: str = "",
    limit: int | None = None,
) -> list[OwnedHold]:
    """Holds within the reach of this caller, oldest first; on accounts, whatever the mode."""
    wanted = _owned().where(legal_holds.c.id > after, (who.mode == _MODE) | _MODE.is_(None))
    if who.account_id:
        wanted = wanted.where(who.account_id == _ACCOUNT)
    if hold_id is not None:
        wanted = wanted.where(legal_holds.c.id == hold_id)
    if matter_id is not None:
        wanted = wanted.where(legal_holds.c.matter_id == matter_id)
    if active is not None:
        ended = legal_holds.c.released_at
        wanted = wanted.where(ended.is_(None) if active else ended.is_not(None))
    found = connection.execute(wanted.order_by(legal_holds.c.id).limit(limit)).all()
    shown = named(connection, [(one.subject, one.reason) for one in found])
    return [
        OwnedHold(
            replace(of_row(one, Hold), subject=subject, reason=reason),
            one.owner,
            Mode(one.of_mode) if one.of_mode else None,
        )
        for one, (subject, reason) in zip(found, shown, strict=True)
    ]


def _owned() -> Select[Any]:
    """Holds with the account and the mode of what they are on."""
    references = buyer_references.c
    return (
        select(legal_holds, _ACCOUNT.label("owner"), _MODE.label("of_mode"))
        .outerjoin(records, records.c.id == legal_holds.c.subject)
        .outerjoin(buyer_references, references.reference == legal_holds.c.subject)
        .outerjoin(buyers, buyers.c.cbid == references.cbid)
        .outerjoin(accounts, accounts.c.id == legal_holds.c.subject)
    )


def find_matters(
    connection: Connection, who: Principal, after: str, limit: int
) -> list[tuple[Matter, int]]:
    """Matters within the reach of this caller, oldest first, and how many holds of each last."""
    lasts = and_(legal_holds.c.matter_id == matters.c.id, legal_holds.c.released_at.is_(None))
    number = select(func.count()).select_from(legal_holds).where(lasts).scalar_subquery()
    wanted = select(matters, number.label("holds")).where(
        matters.c.id > after, matters.c.mode == who.mode
    )
    if who.account_id:
        wanted = wanted.where(matters.c.account_id == who.account_id)
    found = connection.execute(wanted.order_by(matters.c.id).limit(limit))
    return [(of_row(one, Matter), one.holds) for one in found]
