"""People in the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, delete, exists, func, select, update

from countersign.base.db.statements import row, rows
from countersign.base.db.tables import (
    accounts,
    audit_log,
    audit_owners,
    people,
    person_grants,
    person_links,
    person_passkeys,
    person_sessions,
    person_subjects,
)
from countersign.base.values import Mode
from countersign.core.access.audit import AuditAction
from countersign.core.access.reach import Reach
from countersign.core.access.role import Role
from countersign.staff.people.model import HeldRole, LinkRow, Member

_g: Final = person_grants.c


def members_of(connection: Connection, reach: Reach) -> Sequence[Member]:
    """The people with a role there, in the order in which they got it."""
    used = select(func.max(person_passkeys.c.last_used_at))
    used = used.where(person_passkeys.c.person_id == people.c.id)
    until = select(person_links.c.expires_at).where(person_links.c.person_id == people.c.id)
    at_provider = select(person_subjects.c.last_used_at)
    at_provider = at_provider.where(person_subjects.c.person_id == people.c.id)
    last, there = used.scalar_subquery(), at_provider.scalar_subquery()
    found = (
        select(
            people.c.id.label("person_id"),
            people.c.name,
            _g.role,
            _g.granted_at,
            _g.granted_by,
            last.is_not(None).label("has_passkey"),
            until.scalar_subquery().label("link_until"),
            there.is_not(None).label("has_provider"),
            func.coalesce(last, there).label("last_used_at"),
        )
        .join(person_grants, _g.person_id == people.c.id)
        .where(_g.account_id.is_not_distinct_from(reach.account_id))
        .order_by(_g.id)
    )
    return rows(connection, found, Member)


def name_of(connection: Connection, person_id: str) -> str | None:
    """The name of a person; it stays after removal, so that the audit remains readable."""
    return names_of(connection, [person_id]).get(person_id)


def names_of(connection: Connection, person_ids: Sequence[str]) -> dict[str, str]:
    """The names of these people."""
    query = select(people.c.id, people.c.name).where(people.c.id.in_(person_ids))
    return {found.id: found.name for found in connection.execute(query)}


def ever_of(connection: Connection, account_id: str) -> dict[str, str]:
    """The names of all who were ever invited to an account; "": of all people."""
    c, own, query = audit_log.c, audit_owners.c, select(people.c.id, people.c.name)
    if account_id:
        entry = exists().where(c.subject == people.c.id, c.action == AuditAction.PERSON_INVITED)
        of_account = (own.account_id == account_id, own.mode == Mode.LIVE)  # it is in both
        query = query.where(entry.where(own.entry_id == c.id, *of_account))
    return {found.id: found.name for found in connection.execute(query)}


def places_of(connection: Connection, person_id: str) -> Sequence[HeldRole]:
    """The places where a person has a role: the deployment first, then accounts by name."""
    found = (
        select(_g.account_id, accounts.c.name.label("account_name"), _g.role)
        .outerjoin(accounts, accounts.c.id == _g.account_id)
        .where(_g.person_id == person_id)
    )
    return sorted(rows(connection, found, HeldRole), key=lambda place: place.account_name or "")


def is_last_owner(connection: Connection, member: Member, reach: Reach) -> bool:
    """Whether no other person owns this place."""
    if member.role is not Role.OWNER:
        return False
    there = members_of(connection, reach)
    return [one.person_id for one in there if one.role is Role.OWNER] == [member.person_id]


def end_alerts(connection: Connection, person_id: str) -> None:
    """Delete the address for a person's alerts."""
    own = update(people).where(people.c.id == person_id)
    connection.execute(own.values(address=None, told_at=None))


def lock_out(connection: Connection, person_id: str) -> None:
    """Take from a person all that lets the person in."""
    for table in (person_links, person_passkeys, person_subjects, person_sessions):
        connection.execute(delete(table).where(table.c.person_id == person_id))


def has_link(connection: Connection, person_id: str, now: datetime) -> bool:
    """Whether this person has an unused link that still works."""
    c = person_links.c
    found = select(c.id).where(c.person_id == person_id, c.expires_at > now)
    return connection.execute(found).first() is not None


def find_link(connection: Connection, digest: bytes, now: datetime) -> LinkRow | None:
    """The link that is found by this, while it works."""
    c = person_links.c
    found = select(person_links).where(c.digest == digest, c.expires_at > now)
    return row(connection, found, LinkRow)


def take_link(connection: Connection, link: LinkRow, now: datetime) -> bool:
    """Use a link up; False if it was used or replaced meanwhile."""
    c = person_links.c
    one = delete(person_links).where(c.id == link.id, c.expires_at > now)
    return connection.execute(one).rowcount == 1
