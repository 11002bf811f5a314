"""Data of people, and the lifetimes of links and sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple

from msgspec import Struct

from countersign.core.access.key import ApiKey
from countersign.core.access.role import Role

INVITATION_LASTS: Final = timedelta(hours=24)
"""An invitation is accepted within a day."""
WAY_BACK_LASTS: Final = timedelta(minutes=15)
"""Short, because the person waits for it, and it replaces a passkey."""
CLOCKS_APART: Final = timedelta(minutes=1)
"""Tolerated clock difference of an OpenID Connect provider."""


class LinkKind(StrEnum):
    """The purpose of a link."""

    INVITATION = "invitation"
    WAY_BACK = "way_back"


class ProviderUse(StrEnum):
    """The purpose of a redirect to the provider."""

    IN = "in"
    LINK = "link"
    """Accept an invitation, and sign in there from then on."""
    AGAIN = "again"
    """Authenticate again, before an irreversible act."""


class ProviderRefusal(StrEnum):
    """Why a provider sign-in failed."""

    UNAVAILABLE = "unavailable"
    """No response, or an invalid one."""
    DECLINED = "declined"
    """It did not sign the person in."""
    REFUSED = "refused"
    """The response does not belong to this browser's request, or is too late."""
    INVALID = "invalid"
    """A check of the response failed; the log names it."""
    LINK = "link"
    """The link does not work."""
    UNKNOWN = "unknown"
    """No person here signs in with that account; of a session: not this person."""
    TAKEN = "taken"
    """Another person signs in with that account."""
    NOT_NOW = "not_now"
    """It does not say that the person authenticated now."""


class ProviderFailed(Exception):
    """The provider did not sign the person in; `step` and `kind` are for the log, not personal."""

    def __init__(self, why: ProviderRefusal, step: str, kind: str) -> None:
        super().__init__(step, kind)
        self.why, self.step, self.kind = why, step, kind


class Named(NamedTuple):
    """The person identified by an ID token."""

    issuer: str
    subject: str
    """The issuer's identifier of the person: unique and permanent."""
    at: datetime | None
    """When the person authenticated there (`auth_time`); None: not in the token."""


class HeldRole(Struct, frozen=True, kw_only=True):
    """Where a role applies: one account, or the whole deployment (None)."""

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
    """False: the invitation is not accepted yet, a new link is open, or `has_provider`."""
    has_provider: bool
    """Whether the person signs in at the provider of OpenID Connect."""
    link_until: datetime | None
    """Until when an unused link of the person works."""
    last_used_at: datetime | None
    """When the person signed in last, or used the passkey otherwise."""
    keys: Sequence[ApiKey] = ()
    """The person's working keys there, or those just ended."""


class LinkRow(Struct, frozen=True, kw_only=True):
    """A link that was not used yet."""

    id: str
    person_id: str
    digest: bytes
    expires_at: datetime


class Link(NamedTuple):
    """A new link of a person, shown once."""

    person_id: str
    url: str
    expires_at: datetime


class Invited(NamedTuple):
    """A person with a new role. Without a link, the person signs in already."""

    person_id: str
    name: str
    link: Link | None


class LinkSays(NamedTuple):
    """The text of the page before a link is used."""

    name: str
    places: Sequence[HeldRole]
    expires_at: datetime
    options: dict[str, Any] | None = None
    """Of `navigator.credentials.create`, with bytes as base64url; None: no passkeys are possible
    here."""


class SignedIn(NamedTuple):
    """A new session: the token is given to the browser now, and never again."""

    token: str


class SignedInPerson(NamedTuple):
    """The person of a session."""

    id: str
    name: str
    places: Sequence[HeldRole]
    is_fresh: bool
    """Whether the passkey was used in the last minutes."""
