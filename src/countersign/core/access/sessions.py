"""Sessions of people: from a Bearer token, an account and a mode to a principal.

Nothing is cached: a revoked session or role ends at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from msgspec import Struct
from sqlalchemy import Connection, Row, select, update

from countersign.base.db.database import Database
from countersign.base.db.statements import row, rows
from countersign.base.db.tables import accounts, person_grants, person_sessions
from countersign.base.errors import AccountDisabled, InvalidApiKey, NotFound
from countersign.base.values import Clock, Mode, from_ns
from countersign.core.access.authenticate import note_later
from countersign.core.access.key import PERSON_SESSION, PersonAsking, Principal, Scope, well_formed
from countersign.core.access.role import OF_DEPLOYMENT, OWN, ROLES, WITHOUT_ACCOUNT, Role
from countersign.core.access.secrets import DeploymentSecret

SESSION_LASTS: Final = timedelta(hours=12)
"""A working day: on the next one the person uses a passkey again."""
IDLE_MAX: Final = timedelta(minutes=30)
"""Idle limit: the longest that OWASP allows for low risk."""
FRESH: Final = timedelta(minutes=5)
"""How long a used passkey counts as recent, for irreversible acts."""
CREDENTIAL: Final = "person"
_NOTE_GRAIN: Final = timedelta(minutes=1)
_TOKEN_LENGTH_MAX: Final = 100
_s: Final = person_sessions.c


class PersonSession(Struct, frozen=True, kw_only=True):
    """A browser where a person is signed in."""

    id: str
    person_id: str
    created_at: datetime
    last_used_at: datetime
    passkey_at: datetime

    @property
    def ends_at(self) -> datetime:
        """When it expires without further requests."""
        return min(self.created_at + SESSION_LASTS, self.last_used_at + IDLE_MAX)

    def is_fresh(self, now: datetime) -> bool:
        return now < self.passkey_at + FRESH


class Grant(Struct, frozen=True, kw_only=True):
    """A role of a person: for an account, or for the whole deployment."""

    id: str
    person_id: str
    account_id: str | None
    role: Role


_Found: TypeAlias = tuple[PersonSession, list[Grant], Row[Any] | None]
"""The session of a calling person, the person's roles, and the account asked about, if it exists.
"""


class Sessions(Struct, eq=False):
    """Turns tokens of people into principals."""

    database: Database
    secret: DeploymentSecret
    clock: Clock

    async def __call__(self, token: bytes, account_id: str, mode: Mode) -> Principal:
        """The caller for this account, or for none ("").

        A person without a role there gets a principal without scopes.

        Raises:
            InvalidApiKey: the session is unknown or has ended.
            NotFound: there is no such account.
            AccountDisabled: the operator has disabled the account, and the person is only a member
                of it.
        """
        digest = self.digest(token)
        now = from_ns(self.clock.time_ns())
        found = None
        if digest is not None:
            found = await self.database.read(find_session, digest, account_id, now)
        if found is None:
            raise InvalidApiKey("The session is unknown or has ended: sign in again.")
        session = found[0]
        if now - session.last_used_at > _NOTE_GRAIN:
            note_later(self.database.write(_touch, session.id, now))
        return _principal(found, account_id, mode, now)

    def digest(self, token: bytes) -> bytes | None:
        """The look-up key of this token's session; None: not a token."""
        text = token[: _TOKEN_LENGTH_MAX + 1].decode("ascii", "replace")
        if text.startswith(PERSON_SESSION + "_") and well_formed(text):
            return self.secret.key_digest(text)
        return None


def find_session(
    connection: Connection, digest: bytes, account_id: str, now: datetime
) -> _Found | None:
    """The open session with this token hash, and what its person may do."""
    session = session_at(connection, digest, now)
    if session is None:
        return None
    state = select(accounts.c.disabled_at).where(accounts.c.id == account_id)
    account = connection.execute(state).one_or_none() if account_id else None
    return session, grants_of(connection, session.person_id), account


def session_at(connection: Connection, digest: bytes, now: datetime) -> PersonSession | None:
    """The session that is found by this, unless it has ended."""
    own = select(person_sessions).where(_s.digest == digest)
    session = row(connection, own, PersonSession)
    return session if session is not None and now < session.ends_at else None


def grants_of(connection: Connection, person_id: str) -> list[Grant]:
    """The roles of a person, that for the deployment first."""
    g = person_grants.c
    own = select(person_grants).where(g.person_id == person_id)
    found = rows(connection, own.order_by(g.id), Grant)
    return sorted(found, key=lambda grant: grant.account_id or "")


def _touch(connection: Connection, session_id: str, now: datetime) -> None:
    later = update(person_sessions).where(_s.id == session_id, _s.last_used_at < now)
    connection.execute(later.values(last_used_at=now))


def _principal(found: _Found, account_id: str, mode: Mode, now: datetime) -> Principal:
    session, grants, account = found
    staff = [grant.role for grant in grants if grant.account_id is None]
    member = [grant.role for grant in grants if grant.account_id == account_id]
    if staff and account_id and account is None:
        raise NotFound("There is no such account.")
    if not staff and member and account is not None and account.disabled_at is not None:
        raise AccountDisabled
    held = staff + member
    acts, looks = _scopes(staff, member, account_id)
    return Principal(
        key_id=session.id,
        account_id=account_id,
        mode=mode,
        scopes=acts | looks,
        credential=CREDENTIAL,
        person=PersonAsking(
            id=session.person_id,
            role=held[0].value if held else "",
            looks=looks - acts,
            sees_personal_data=any(ROLES[role].personal for role in held),
            is_fresh=session.is_fresh(now),
        ),
    )


def _scopes(
    staff: Iterable[Role], member: Iterable[Role], account_id: str
) -> tuple[frozenset[Scope], frozenset[Scope]]:
    """The scopes to act, and those to read."""
    acts, looks = set(OWN), set[Scope]()
    for roles, never in ((staff, frozenset[Scope]()), (member, OF_DEPLOYMENT)):
        for role in roles:
            acts |= ROLES[role].acts - never
            looks |= ROLES[role].looks - never
    if not account_id:
        return frozenset(acts & WITHOUT_ACCOUNT), frozenset(looks & WITHOUT_ACCOUNT)
    return frozenset(acts), frozenset(looks)
