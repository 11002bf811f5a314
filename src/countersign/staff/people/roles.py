"""Roles of people: inviting, listing, removing, and new links."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final

from msgspec.structs import asdict
from sqlalchemy import Connection, delete, insert

from countersign.base.db.tables import people, person_grants, person_links
from countersign.base.errors import (
    Forbidden,
    InvalidArgument,
    InvalidRequest,
    KeysRemain,
    LinkOnMachine,
    PeopleRefused,
    UnknownPerson,
)
from countersign.base.values import PERSON, from_ns, is_id, timed_id
from countersign.core.access.account import checked_account_name, lock_grants
from countersign.core.access.audit import AuditAction, write_audit
from countersign.core.access.key import (
    PERSON_ENTROPY_BYTES,
    PERSON_LINK,
    ApiKey,
    Scope,
    compose_token,
)
from countersign.core.access.keys import keys_made, revoke_key, unknown_key
from countersign.core.access.reach import Reach
from countersign.core.access.role import Role
from countersign.staff.people import sql
from countersign.staff.people.model import (
    INVITATION_LASTS,
    WAY_BACK_LASTS,
    InvitedPerson,
    LinkKind,
    Member,
    PersonLink,
)
from countersign.staff.people.room import People

ALL_KEYS: Final = "all"
"""All keys that a person made, in the place of a list of their ids."""
STAFF: Final = "deployment"
"""The audit's name for the deployment."""


def invite(
    connection: Connection, room: People, name: str, role: Role, reach: Reach, *, by: str = ""
) -> InvitedPerson:
    """Give a new person a role in an account, or in the deployment, and a link to come in.

    Given the id of a person in place of a name, that person gets the role, and signs in as before:
    a link would let the inviter take the person's place elsewhere. `by` is the id of the owner who
    invites; "": the command line.

    Raises:
        InvalidRequest: the name cannot be used.
        UnknownPerson: there is no person with this id, or `by` is not staff: only staff know people
            of other accounts.
        LinkOnMachine: the link would sign in an owner.
        PeopleRefused: the name is taken, or the person has an unused link.
        Forbidden: `by` is no owner there any more.
    """
    access = room.access
    wanted = name if is_id(PERSON, name) else checked_name(name)
    by_staff = as_owner(connection, by, reach)
    time_ns = access.clock.time_ns()
    person_id, called = wanted, wanted
    link = PersonLink(person_id=wanted, link=None, expires_at=None)
    there = sql.members_of(connection, reach)
    if is_id(PERSON, wanted):
        known = sql.name_of(connection, wanted)
        if any(one.person_id == wanted for one in there):
            raise PeopleRefused(f"{known} has a role there: remove it first.")
        if known is None or not by_staff:
            raise UnknownPerson
        if sql.has_link(connection, wanted, from_ns(time_ns)):
            # The maker of the link could use it, and would get this role too.
            raise PeopleRefused(f"{known} has a link that was not used yet: it is used first.")
        called = known
    else:
        if role is Role.OWNER and by:
            raise LinkOnMachine(_line("invite", shlex.quote(called), reach, " --role owner"))
        if any(one.name.casefold() == called.casefold() for one in there):
            raise PeopleRefused(f"A person named {called!r} has a role there already.")
        person_id = timed_id(PERSON, time_ns, access.entropy(8))
        row = {"id": person_id, "name": called, "created_at": from_ns(time_ns)}
        connection.execute(insert(people), row)
        link = _new_link(connection, room, person_id, LinkKind.INVITATION, INVITATION_LASTS)
    place = reach.account_id or STAFF
    entry = access.audit.entry(AuditAction.PERSON_INVITED, person_id, role=role.value, place=place)
    grant = {
        "id": timed_id("grt", time_ns, access.entropy(8)),
        "person_id": person_id,
        "account_id": reach.account_id,
        "role": role.value,
        "granted_at": from_ns(time_ns),
        "granted_by": entry.actor,
    }
    connection.execute(insert(person_grants), grant)
    write_audit(connection, entry)
    return InvitedPerson(**asdict(link), name=called, role=role)


def checked_name(name: str) -> str:
    """The name of a person without white space around it; raises InvalidRequest."""
    try:
        return checked_account_name(name)
    except InvalidArgument as error:
        raise InvalidRequest(error.message.replace("An account name", "A name")) from None


def members(
    connection: Connection, room: People, reach: Reach
) -> Sequence[tuple[Member, Sequence[ApiKey]]]:
    """The people of an account, or the staff of the deployment, with the working keys of each."""
    made = keys_made(connection, reach, from_ns(room.access.clock.time_ns()))
    return [(one, made.get(one.person_id, ())) for one in sql.members_of(connection, reach)]


def remove(
    connection: Connection,
    room: People,
    who: str,
    reach: Reach,
    by: str = "",
    *,
    end_keys: Collection[str] | None = None,
) -> tuple[Member, Sequence[ApiKey]]:
    """Take a person's role; without any role left, the person is signed out and cannot sign in.

    Returns the person, and the keys that worked, as they are now.

    `end_keys` are the working keys made there by the person that end, by id or `ALL_KEYS`; the
    other keys stay valid.

    Raises:
        UnknownPerson: no one there has this id or name.
        PeopleRefused: it is the last owner.
        KeysRemain: the person has such keys, and `end_keys` is missing.
        UnknownKey: `end_keys` has another key.
        Forbidden: `by` is no owner there any more.
    """
    as_owner(connection, by, reach)
    member = find_member(connection, who, reach)
    if sql.is_last_owner(connection, member, reach):
        raise PeopleRefused(f"{member.name} is the last owner: invite another one first.")
    now, g = from_ns(room.access.clock.time_ns()), person_grants.c
    made = {key.id: key for key in keys_made(connection, reach, now).get(member.person_id, ())}
    if made and end_keys is None:
        listed = ", ".join(f"{key.id} ({key.mode}, {key.hint})" for key in made.values())
        raise KeysRemain(f"{member.name} has made keys that work: {listed}. Say which of them end.")
    for key_id in made if end_keys == ALL_KEYS else end_keys or ():
        if key_id not in made:
            raise unknown_key(key_id)
        made[key_id] = revoke_key(connection, room.access, key_id)
    here = g.account_id.is_not_distinct_from(reach.account_id)
    connection.execute(delete(person_grants).where(g.person_id == member.person_id, here))
    if reach.account_id is None:
        sql.end_alerts(connection, member.person_id)
    if not sql.places_of(connection, member.person_id):
        sql.lock_out(connection, member.person_id)
    entry, place = room.access.audit.entry, reach.account_id or STAFF
    write_audit(connection, entry(AuditAction.PERSON_REMOVED, member.person_id, place=place))
    return member, [*made.values()]


def way_back(
    connection: Connection, room: People, who: str, reach: Reach, by: str = ""
) -> PersonLink:
    """A link for a person to sign in with a new passkey, which replaces the earlier ones.

    Raises:
        UnknownPerson: no one there has this id or name.
        LinkOnMachine: `by` asks for a link of an owner, or of a person with a role
            elsewhere: whoever makes a link could use it. The command line ("") may do everything
            anyway.
        Forbidden: `by` is no owner there any more.
    """
    as_owner(connection, by, reach)
    member = find_member(connection, who, reach)
    places = sql.places_of(connection, member.person_id)
    if by and (len(places) > 1 or member.role is Role.OWNER):
        raise LinkOnMachine(_line("link", member.person_id, reach))
    entry, place = room.access.audit.entry, reach.account_id or STAFF
    write_audit(connection, entry(AuditAction.PERSON_LINK_MADE, member.person_id, place=place))
    return _new_link(connection, room, member.person_id, LinkKind.WAY_BACK, WAY_BACK_LASTS)


def as_owner(connection: Connection, by: str, reach: Reach) -> bool:
    """Let no role there change until this transaction ends, and see that `by` owns the place.

    The session was judged before: since then another owner may have removed this one. Gives whether
    `by` is of the staff; "" is, on the machine.

    Raises:
        Forbidden: `by` is no owner there any more.
    """
    lock_grants(connection)
    if not by:
        return True
    held = {place.account_id: place.role for place in sql.places_of(connection, by)}
    if Role.OWNER not in {held.get(None), held.get(reach.account_id)}:
        scope = Scope.PEOPLE_MANAGE if reach.account_id else Scope.STAFF_MANAGE
        raise Forbidden("You are no owner there any more.", scope=scope)
    return None in held


def find_member(connection: Connection, who: str, reach: Reach) -> Member:
    """The person with this id or name there; raises UnknownPerson."""
    for member in sql.members_of(connection, reach):
        if who == member.person_id or who.casefold() == member.name.casefold():
            return member
    raise UnknownPerson(f"No one there has the id or name {who!r}.")


def _line(act: str, who: str, reach: Reach, more: str = "") -> str:
    """The refusal for links that only the machine makes, with the command to type."""
    account = reach.account_id
    group, of = ("members", f" --account {account}") if account else ("staff", "")
    return f"On the machine, type: countersign {group} {act} {who}{of}{more}"


def _new_link(
    connection: Connection, room: People, person_id: str, kind: LinkKind, lasts: timedelta
) -> PersonLink:
    """A link that replaces the earlier ones."""
    access = room.access
    token = compose_token(PERSON_LINK, access.entropy(PERSON_ENTROPY_BYTES))
    time_ns = access.clock.time_ns()
    now = from_ns(time_ns)
    connection.execute(delete(person_links).where(person_links.c.person_id == person_id))
    row = {
        "id": timed_id("lnk", time_ns, access.entropy(8)),
        "person_id": person_id,
        "kind": kind.value,
        "digest": access.secret.key_digest(token),
        "created_at": now,
        "expires_at": now + lasts,
    }
    connection.execute(insert(person_links), row)
    # After the #, so that no server and no log on the way sees it.
    link = f"{room.url}/console/link#{token}"
    return PersonLink(person_id=person_id, link=link, expires_at=now + lasts)
