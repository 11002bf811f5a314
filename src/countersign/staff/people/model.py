"""Data of people, and the lifetimes of links and sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Meta, Struct

from countersign.base.http.schemas import Timestamp
from countersign.core.access.role import Role

PERSON_ID: Final = "per_01km9wtz3tfs8v8j2c7n5k9m0d"
_LINK: Final = "https://evidence.example.com/console/link#csign_pl_…"
_PersonId = Annotated[str, Meta(examples=[PERSON_ID])]
_Name = Annotated[str, Meta(examples=["Ada Lovelace"])]
HeldAs = Annotated[Role, Meta(examples=[Role.COMPLIANCE])]

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

    person_id: _PersonId
    name: _Name
    role: HeldAs
    granted_at: Timestamp
    granted_by: Annotated[str, Meta(examples=["root"])]
    """The person (`per_…`), or the user of the system."""
    has_passkey: bool
    """false: the person has not come in yet, or has `has_provider`."""
    has_provider: bool
    """true: the person signs in at the provider of OpenID Connect."""
    link_until: Timestamp | None
    """Until when an unused link of the person works."""
    last_used_at: Timestamp | None
    """When the person signed in last, or used the passkey."""


class LinkRow(Struct, frozen=True, kw_only=True):
    """A link that was not used yet."""

    id: str
    person_id: str
    digest: bytes
    expires_at: datetime


class PersonLink(Struct, frozen=True, kw_only=True):
    """A link by which a person comes in: present only in the response that makes it."""

    person_id: _PersonId
    link: Annotated[str | None, Meta(examples=[_LINK])]
    """It works once. Give it to this person alone. null: the person signs in as before."""
    expires_at: Timestamp | None


class InvitedPerson(PersonLink, frozen=True, kw_only=True):
    """Who was invited, and the link by which the person comes in."""

    name: _Name
    role: HeldAs


class EndedView(Struct, frozen=True, kw_only=True):
    """Sessions that were ended."""

    person_id: _PersonId
    sessions: Annotated[int, Meta(examples=[2])]
    """How many."""


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
