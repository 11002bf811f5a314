"""Who has which role: inviting, listing, removing people, and their way back in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from sqlalchemy import Connection, delete, insert

from countersign.access.account import checked_account_name
from countersign.access.audit import AuditAction, write_audit
from countersign.access.key import PERSON_ENTROPY_BYTES, PERSON_LINK, compose_person_token
from countersign.access.role import Role, may_grant
from countersign.db.tables import people, person_grants, person_links
from countersign.errors import InvalidArgument, InvalidRequest, NotFound, PeopleRefused
from countersign.ids import is_id, timed_id
from countersign.instant import from_ns
from countersign.people import sql
from countersign.people.model import (
    INVITATION_LASTS,
    PERSON,
    WAY_BACK_LASTS,
    Invited,
    Link,
    LinkKind,
    Member,
)
from countersign.people.room import People

LINK_PATH: Final = "/console/link"
_DEPLOYMENT: Final = "deployment"
_LASTS: Final[dict[LinkKind, timedelta]] = {
    LinkKind.INVITATION: INVITATION_LASTS,
    LinkKind.WAY_BACK: WAY_BACK_LASTS,
}


async def invite(
    room: People, name: str, role: Role, account_id: str | None, by: Role = Role.OWNER
) -> Invited:
    """Give a new person a role in an account, or (None) in the deployment, and a link to come in.

    With the id of a person in place of a name, that person gets the role, and signs in as before:
    a link would let the one who invites take the person's place elsewhere. `by` is the role of the
    one who invites.

    Raises:
        InvalidRequest: the name cannot be used.
        NotFound: there is no person with this id.
        PeopleRefused: the role is more than that of the one who invites, or the name is taken.
    """
    wanted = name if is_id(PERSON, name) else checked_name(name)
    return await room.access.database.write(
        _invite, room, wanted, role, account_id=account_id, by=by
    )


def checked_name(name: str) -> str:
    """The name of a person without white space around it; raises InvalidRequest."""
    try:
        return checked_account_name(name)
    except InvalidArgument as error:
        raise InvalidRequest(error.message.replace("An account name", "A name")) from None


async def members(room: People, account_id: str | None) -> Sequence[Member]:
    """The people of an account, or (None) the staff of the deployment."""
    return await room.access.database.read(sql.members_of, account_id)


async def remove(room: People, who: str, account_id: str | None) -> Member:
    """Take a person's role; without any role left, the person is signed out and cannot sign in.

    Raises:
        NotFound: no one there has this id or name.
        PeopleRefused: it is the last owner.
    """
    return await room.access.database.write(_remove, room, who, account_id)


async def way_back(
    room: People, who: str, account_id: str | None, *, on_the_machine: bool = False
) -> Link:
    """A link by which a person comes in again, with a new passkey in place of those of before.

    Over the API it is made of no owner, and of no one who has a role elsewhere too: the one who
    makes it could use it. `on_the_machine`: the one who makes it may do everything anyway.

    Raises:
        NotFound: no one there has this id or name.
        PeopleRefused: the link is made on the machine only.
    """
    return await room.access.database.write(
        _way_back, room, who, account_id, on_the_machine=on_the_machine
    )


def _invite(
    connection: Connection,
    room: People,
    name: str,
    role: Role,
    *,
    account_id: str | None,
    by: Role,
) -> Invited:
    if not may_grant(by, role):
        raise PeopleRefused(f"The role {role} is more than your own.")
    sql.lock_grants(connection)
    access = room.access
    time_ns = access.clock.time_ns()
    person_id, link = name, None
    there = sql.members_of(connection, account_id)
    if is_id(PERSON, name):
        known = sql.name_of(connection, name)
        if known is None:
            raise NotFound("There is no such person.")
        if any(one.id == name for one in there):
            raise PeopleRefused(f"{known} has a role there: remove it first.")
        name = known
    else:
        if any(one.name.casefold() == name.casefold() for one in there):
            raise PeopleRefused(f"A person named {name!r} has a role there already.")
        person_id = timed_id(PERSON, time_ns, access.entropy(8))
        row = {"id": person_id, "name": name, "created_at": from_ns(time_ns)}
        connection.execute(insert(people), row)
        link = _new_link(connection, room, person_id, LinkKind.INVITATION)
    entry = access.audit.entry(
        AuditAction.PERSON_INVITED, person_id, role=role.value, place=account_id or _DEPLOYMENT
    )
    connection.execute(
        insert(person_grants),
        {
            "id": timed_id("grt", time_ns, access.entropy(8)),
            "person_id": person_id,
            "account_id": account_id,
            "role": role.value,
            "granted_at": from_ns(time_ns),
            "granted_by": entry.actor,
        },
    )
    write_audit(connection, entry)
    return Invited(person_id, name, link)


def _remove(connection: Connection, room: People, who: str, account_id: str | None) -> Member:
    sql.lock_grants(connection)
    member = _find(connection, who, account_id)
    if sql.is_last_owner(connection, member, account_id):
        raise PeopleRefused(f"{member.name} is the last owner: invite another one first.")
    g = person_grants.c
    here = g.account_id == account_id if account_id else g.account_id.is_(None)
    connection.execute(delete(person_grants).where(g.person_id == member.id, here))
    if not sql.places_of(connection, member.id):
        sql.lock_out(connection, member.id)
    audit = room.access.audit.entry(
        AuditAction.PERSON_REMOVED, member.id, place=account_id or _DEPLOYMENT
    )
    write_audit(connection, audit)
    return member


def _way_back(
    connection: Connection,
    room: People,
    who: str,
    account_id: str | None,
    *,
    on_the_machine: bool,
) -> Link:
    member = _find(connection, who, account_id)
    places = sql.places_of(connection, member.id)
    if not on_the_machine and (len(places) > 1 or member.role is Role.OWNER):
        raise PeopleRefused(
            f"{member.name} is an owner or has a role elsewhere: the operator makes the link on "
            "the machine, with `countersign staff link` or `countersign members link`."
        )
    audit = room.access.audit.entry(
        AuditAction.PERSON_LINK_MADE, member.id, place=account_id or _DEPLOYMENT
    )
    write_audit(connection, audit)
    return _new_link(connection, room, member.id, LinkKind.WAY_BACK)


def _find(connection: Connection, who: str, account_id: str | None) -> Member:
    for member in sql.members_of(connection, account_id):
        if who == member.id or who.casefold() == member.name.casefold():
            return member
    raise NotFound(f"No one there has the id or name {who!r}.")


def _new_link(connection: Connection, room: People, person_id: str, kind: LinkKind) -> Link:
    """A link in place of those of before."""
    access = room.access
    token = compose_person_token(PERSON_LINK, access.entropy(PERSON_ENTROPY_BYTES))
    time_ns = access.clock.time_ns()
    now = from_ns(time_ns)
    connection.execute(delete(person_links).where(person_links.c.person_id == person_id))
    row = {
        "id": timed_id("lnk", time_ns, access.entropy(8)),
        "person_id": person_id,
        "kind": kind.value,
        "digest": access.secret.key_digest(token),
        "created_at": now,
        "expires_at": now + _LASTS[kind],
    }
    connection.execute(insert(person_links), row)
    # Behind the #, so that no server and no log on the way sees it.
    return Link(f"{room.url}{LINK_PATH}#{token}", kind, now + _LASTS[kind])
