"""What is known of people, and how long what lets them in works."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from countersign.access.role import Role

PERSON: Final = "per"
INVITATION_LASTS: Final = timedelta(hours=24)
"""A person is invited on one day, and comes in by the next."""
WAY_BACK_LASTS: Final = timedelta(minutes=15)
"""For one who waits for it: it takes the place of a passkey."""


class LinkKind(StrEnum):
    """What a link is for."""

    INVITATION = "invitation"
    WAY_BACK = "way_back"


class HeldRole(Struct, frozen=True, kw_only=True):
    """Where a person has a role: in one account, or in the whole deployment (None)."""

    account_id: str | None
    account_name: str | None
    role: Role


class Member(Struct, frozen=True, kw_only=True):
    """A person with a role in one place."""

    id: str
    name: str
    role: Role
    granted_at: datetime
    granted_by: str
    has_passkey: bool
    """False: the person has not come in yet, or is to come in again."""
    link_until: datetime | None
    """Until when an unused link of the person works."""
    last_used_at: datetime | None
    """When the person signed in last, or used the passkey otherwise."""


class LinkRow(Struct, frozen=True, kw_only=True):
    """A link that was not used yet."""

    id: str
    person_id: str
    kind: LinkKind
    digest: bytes
    expires_at: datetime


class Link(NamedTuple):
    """A new link, shown once."""

    url: str
    kind: LinkKind
    expires_at: datetime


class Invited(NamedTuple):
    """A person with a new role. Without a link it is one who signs in already."""

    person_id: str
    name: str
    link: Link | None


class LinkSays(NamedTuple):
    """What the page says before a link is used."""

    name: str
    kind: LinkKind
    places: Sequence[HeldRole]
    expires_at: datetime


class SignedIn(NamedTuple):
    """A new session: the token is given to the browser now, and never again."""

    token: str
    person_id: str


class SignedInPerson(NamedTuple):
    """Who is signed in with a session."""

    id: str
    name: str
    session_id: str
    places: Sequence[HeldRole]
    is_fresh: bool
    """Whether the passkey was used in the last minutes."""
    ends_at: datetime
    """When the session ends, if nothing more is done."""
