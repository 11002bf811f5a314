"""The browsers in which people are signed in: listed and ended, by the person or by an owner."""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import Connection, delete, select

from countersign.base.db.statements import rows
from countersign.base.db.tables import person_sessions
from countersign.base.errors import UnknownSession
from countersign.base.values import from_ns
from countersign.core.access.audit import AuditAction, write_audit
from countersign.core.access.key import DEPLOYMENT, Reach
from countersign.core.access.sessions import PersonSession
from countersign.staff.people.roles import STAFF, as_owner, find_member
from countersign.staff.people.room import People

_s: Final = person_sessions.c


class EndedSessions(NamedTuple):
    """The person whose sessions were ended, and their number."""

    person_id: str
    number: int


def open_sessions(connection: Connection, room: People, person_id: str) -> list[PersonSession]:
    """The sessions of a person that have not ended, the newest first."""
    now = from_ns(room.access.clock.time_ns())
    own = select(person_sessions).where(_s.person_id == person_id).order_by(_s.id.desc())
    return [one for one in rows(connection, own, PersonSession) if now < one.ends_at]


def end_session(
    connection: Connection, room: People, person_id: str, session_id: str
) -> EndedSessions:
    """End one session of a person.

    Raises:
        UnknownSession: the person has no such session.
    """
    one = delete(person_sessions).where(_s.id == session_id, _s.person_id == person_id)
    if connection.execute(one).rowcount == 0:
        raise UnknownSession
    audit = room.access.audit.of(person_id, DEPLOYMENT)
    noted = audit.entry(AuditAction.PERSON_SIGNED_OUT, person_id, session=session_id)
    write_audit(connection, noted)
    return EndedSessions(person_id, 1)


def sign_out_member(
    connection: Connection, room: People, person_id: str, reach: Reach, by: str
) -> EndedSessions:
    """End all sessions of a person with a role in an account or the deployment.

    The person signs in again with the passkey: what takes that too is a removal, or a way back.

    Raises:
        UnknownPerson: no one there has this id.
        Forbidden: `by` is no owner there any more.
    """
    as_owner(connection, by, reach)
    member = find_member(connection, person_id, reach)
    return end_sessions(connection, room, member.id, place=reach.account_id or STAFF)


def end_sessions(
    connection: Connection, room: People, person_id: str, **details: str
) -> EndedSessions:
    """End all sessions of a person, the calling one included."""
    all_of = delete(person_sessions).where(_s.person_id == person_id)
    number = connection.execute(all_of).rowcount
    noted = room.access.audit.entry(
        AuditAction.PERSON_SESSIONS_ENDED, person_id, sessions=number, **details
    )
    write_audit(connection, noted)
    return EndedSessions(person_id, number)
