"""Accept an invitation, sign in with a passkey, and sign out.

A new session has a new token, whatever the browser sent before. Challenges are not stored: each is
a keyed hash of its purpose, and a passkey signs one only once.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple

import structlog
from sqlalchemy import Connection, Row, delete, insert, select, update

from countersign.base.db.statements import rows
from countersign.base.db.tables import person_passkeys, person_sessions
from countersign.base.errors import UnknownSession
from countersign.base.passkeys import (
    TIMEOUT_MS,
    asserted,
    assertion_options,
    checked,
    creation_options,
    credential_id,
    registered,
)
from countersign.base.values import digits, from_ms, from_ns, timed_id, to_ms
from countersign.core.access.audit import AuditAction, write_audit
from countersign.core.access.key import (
    PERSON_ENTROPY_BYTES,
    PERSON_LINK,
    PERSON_SESSION,
    compose_token,
    well_formed,
)
from countersign.core.access.reach import DEPLOYMENT, Reach
from countersign.core.access.sessions import PersonSession, session_at
from countersign.staff.people import sql
from countersign.staff.people.model import EndedView, LinkRow, LinkSays, SignedIn, SignedInPerson
from countersign.staff.people.roles import STAFF, as_owner, find_member
from countersign.staff.people.room import People
from countersign_evidence.disclosure import b64url

_s: Final = person_sessions.c


def open_sessions(connection: Connection, room: People, person_id: str) -> list[PersonSession]:
    """The sessions of a person that have not ended, the newest first."""
    now = from_ns(room.access.clock.time_ns())
    own = select(person_sessions).where(_s.person_id == person_id).order_by(_s.id.desc())
    return [one for one in rows(connection, own, PersonSession) if now < one.ends_at]


def end_session(connection: Connection, room: People, person_id: str, session_id: str) -> EndedView:
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
    return EndedView(person_id=person_id, sessions=1)


def sign_out(connection: Connection, room: People, session: str) -> None:
    """End the session with this token, unless it has ended."""
    if own := session_at(connection, _bound(room, session), _now(room)):
        end_session(connection, room, own.person_id, own.id)


def sign_out_member(
    connection: Connection, room: People, person_id: str, reach: Reach, by: str
) -> EndedView:
    """End all sessions of a person with a role in an account or the deployment.

    The person signs in again with the passkey: what takes that too is a removal, or a way back.

    Raises:
        UnknownPerson: no one there has this id.
        Forbidden: `by` is no owner there any more.
    """
    as_owner(connection, by, reach)
    member = find_member(connection, person_id, reach)
    return end_sessions(connection, room, member.person_id, place=reach.account_id or STAFF)


def end_sessions(connection: Connection, room: People, person_id: str, **details: str) -> EndedView:
    """End all sessions of a person, the calling one included."""
    all_of = delete(person_sessions).where(_s.person_id == person_id)
    number = connection.execute(all_of).rowcount
    noted = room.access.audit.entry(
        AuditAction.PERSON_SESSIONS_ENDED, person_id, sessions=number, **details
    )
    write_audit(connection, noted)
    return EndedView(person_id=person_id, sessions=number)


_STATE_LENGTH_MAX: Final = 64
_p: Final = person_passkeys.c
_log: Final = structlog.get_logger("countersign.people")


async def link_says(room: People, token: str) -> LinkSays | None:
    """The holder and purpose of a link; None: the link is unknown, used, replaced or expired."""
    link = await find_link(room, token)
    if link is None:
        return None
    said = await room.access.database.read(_says, link)
    if room.party is None:
        return said
    options = creation_options(
        room.party,
        user_handle=_handle(room, link.person_id),
        challenge=_challenge(room, "link", link.id, link.digest),
        name=said.name,
    )
    return said._replace(options=options)


async def use_link(room: People, token: str, response: str) -> SignedIn | None:
    """Come in by a link, with the passkey that the browser has made.

    It replaces the person's earlier passkeys, whose sessions end. None: the link does not work, or
    the passkey is invalid; an invalid passkey does not use the link up.
    """
    link, party = await find_link(room, token), room.party
    if link is None or party is None:
        return None
    challenge = _challenge(room, "link", link.id, link.digest)
    made = await checked(lambda: registered(party, challenge, response))
    if made is None:
        return None
    now = _now(room)
    passkey = {
        "id": timed_id("pky", room.access.clock.time_ns(), room.access.entropy(8)),
        "person_id": link.person_id,
        "lookup": _lookup(room, b64url(made.credential_id)),
        "public_key": made.public_key,
        "sign_count": made.sign_count,
        "created_at": now,
        "last_used_at": now,
    }
    return await room.access.database.write(_come_in, room, link, passkey, now)


def sign_in_options(room: People, session: str = "") -> tuple[dict[str, Any], str] | None:
    """The options of `navigator.credentials.get`, and the state that comes back with the response.

    With the token of a session: to use the passkey again. None: no passkeys are possible here.
    """
    if room.party is None:
        return None
    state = f"{to_ms(_now(room))}.{b64url(room.access.entropy(16))}"
    return assertion_options(
        room.party, _challenge(room, "sign in", state, _bound(room, session))
    ), state


async def sign_in(room: People, state: str, response: str) -> SignedIn | None:
    """Sign in with a passkey; None: no one with a role has it, or the challenge is wrong."""
    if (used := await _used(room, state, response, "")) is None:
        return None
    return await room.access.database.write(_sign_in, room, *used, _now(room))


async def freshen(room: People, session: str, state: str, response: str) -> bool:
    """Use the passkey again before an irreversible act; False: another person's passkey."""
    if (used := await _used(room, state, response, session)) is None:
        return False
    return await room.access.database.write(_freshen, _bound(room, session), *used, _now(room))


async def signed_in(room: People, session: str) -> SignedInPerson | None:
    """The person signed in with this session; None: no one."""
    return await room.access.database.read(_who, _bound(room, session), _now(room))


async def owner(room: People, session: str) -> str | None:
    """The person of a session, also of one that has ended by itself; None: there is none."""
    own = select(_s.person_id).where(_s.digest == _bound(room, session))
    return await room.access.database.read(lambda connection: connection.execute(own).scalar())


def _now(room: People) -> datetime:
    return from_ns(room.access.clock.time_ns())


def _bound(room: People, session: str) -> bytes:
    """The look-up key of a session; b"" for an invalid token."""
    return room.access.sessions.digest(session.encode()) or b""


async def find_link(room: People, token: str) -> LinkRow | None:
    """The link with this token; None: the link is unknown, used, replaced or expired."""
    if not (token.startswith(PERSON_LINK + "_") and well_formed(token)):
        return None
    digest = room.access.secret.key_digest(token)
    return await room.access.database.read(sql.find_link, digest, _now(room))


def _says(connection: Connection, link: LinkRow) -> LinkSays:
    return LinkSays(
        name=sql.name_of(connection, link.person_id) or "",
        places=sql.places_of(connection, link.person_id),
        expires_at=link.expires_at,
    )


def _challenge(room: People, use: str, about: str, bound: bytes) -> bytes:
    return room.access.secret.page_code(f"person {use}", about, bound)


def _handle(room: People, person_id: str) -> bytes:
    return room.access.secret.blind_index("person", "user_handle", person_id)


def _lookup(room: People, named: str) -> bytes:
    return room.access.secret.blind_index("person", "passkey", named)


async def _used(
    room: People, state: str, response: str, session: str
) -> tuple[Row[*tuple[Any, ...]], int] | None:
    """The passkey that has signed this challenge, and its counter."""
    party, named = room.party, credential_id(response)
    asked_ms = digits(state.partition(".")[0], _STATE_LENGTH_MAX)
    if party is None or named is None or asked_ms is None or len(state) > _STATE_LENGTH_MAX:
        return None
    if not 0 <= to_ms(_now(room)) - asked_ms <= TIMEOUT_MS:
        return None
    passkey = await room.access.database.read(_passkey, _lookup(room, named))
    if passkey is None or from_ms(asked_ms) <= passkey.last_used_at:
        return None
    challenge = _challenge(room, "sign in", state, _bound(room, session))
    handle = _handle(room, passkey.person_id)
    count = await checked(lambda: asserted(party, passkey.public_key, handle, challenge, response))
    return None if count is None else (passkey, count)


def _passkey(connection: Connection, lookup: bytes) -> Row[*tuple[Any, ...]] | None:
    return connection.execute(select(person_passkeys).where(_p.lookup == lookup)).one_or_none()


def _come_in(
    connection: Connection, room: People, link: LinkRow, passkey: dict[str, object], now: datetime
) -> SignedIn | None:
    if not sql.take_link(connection, link, now):
        return None
    sql.lock_out(connection, link.person_id)
    connection.execute(insert(person_passkeys), passkey)
    begun = Begun(link.person_id, AuditAction.PERSON_CAME_IN, now, now)
    return begin_session(connection, room, begun)


def _sign_in(
    connection: Connection, room: People, passkey: Row[*tuple[Any, ...]], count: int, now: datetime
) -> SignedIn | None:
    is_used = _use(connection, passkey, count, now)
    if not is_used or not sql.places_of(connection, passkey.person_id):
        return None
    begun = Begun(passkey.person_id, AuditAction.PERSON_SIGNED_IN, now, now)
    return begin_session(connection, room, begun)


def _freshen(
    connection: Connection, digest: bytes, passkey: Row[*tuple[Any, ...]], count: int, now: datetime
) -> bool:
    session = session_at(connection, digest, now)
    if session is None or session.person_id != passkey.person_id:
        return False
    if not _use(connection, passkey, count, now):
        return False
    own = update(person_sessions).where(_s.id == session.id)
    connection.execute(own.values(passkey_at=now, last_used_at=now))
    return True


def _use(connection: Connection, passkey: Row[*tuple[Any, ...]], count: int, now: datetime) -> bool:
    """Note a use; a counter that did not grow means a copy (§6.1.1), and the passkey goes."""
    if (count or passkey.sign_count) and count <= passkey.sign_count:
        connection.execute(delete(person_passkeys).where(_p.id == passkey.id))
        _log.warning("passkey_copied", id=passkey.id)
        return False
    read = {"last_used_at": passkey.last_used_at, "sign_count": passkey.sign_count}
    same = update(person_passkeys).filter_by(id=passkey.id, **read)
    return connection.execute(same.values(sign_count=count, last_used_at=now)).rowcount == 1


class Begun(NamedTuple):
    """Start a session."""

    person_id: str
    action: AuditAction
    at: datetime
    authenticated_at: datetime
    """When the person authenticated: with a passkey now, or before at the provider."""


def begin_session(connection: Connection, room: People, begun: Begun, **facts: str) -> SignedIn:
    """A new session, noted with these facts."""
    access, person_id = room.access, begun.person_id
    token = compose_token(PERSON_SESSION, access.entropy(PERSON_ENTROPY_BYTES))
    session_id = timed_id("ps", access.clock.time_ns(), access.entropy(8))
    row = {
        "id": session_id,
        "person_id": person_id,
        "digest": access.secret.key_digest(token),
        "created_at": begun.at,
        "last_used_at": begun.at,
        "passkey_at": begun.authenticated_at,
    }
    connection.execute(insert(person_sessions), row)
    audit = access.audit.of(person_id, DEPLOYMENT)
    entry = audit.entry(begun.action, person_id, session=session_id, **facts)
    write_audit(connection, entry)
    return SignedIn(token)


def _who(connection: Connection, digest: bytes, now: datetime) -> SignedInPerson | None:
    own = session_at(connection, digest, now)
    if own is None:
        return None
    return SignedInPerson(
        id=own.person_id,
        name=sql.name_of(connection, own.person_id) or "",
        places=sql.places_of(connection, own.person_id),
        is_fresh=own.is_fresh(now),
    )
