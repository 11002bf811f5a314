"""Permissions of people: one table, from roles to scopes. `docs/console.md` shows it in words.

A role is held for the whole deployment (staff) or for one account (members). Scopes of the
deployment are worth nothing to a member.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from countersign.core.access.key import PEOPLE_SCOPES, Scope


class Role(StrEnum):
    """What a person is there for."""

    OWNER = "owner"
    DEVELOPER = "developer"
    COMPLIANCE = "compliance"
    SUPPORT = "support"
    AUDITOR = "auditor"


class Allowed(NamedTuple):
    """The scopes of a role."""

    acts: frozenset[Scope]
    """Scopes of all operations that the person may call."""
    looks: frozenset[Scope]
    """The read-only ones among them."""
    personal: bool
    """Whether the person sees personal data, for a reason."""

    @property
    def scopes(self) -> frozenset[Scope]:
        return self.acts | self.looks


_EVIDENCE: Final = frozenset({Scope.ACKS_CREATE, Scope.BUYERS_VERIFY, Scope.CLEARANCES_CREATE})
"""Scopes that create evidence: it states that a vendor's server called, so people have none of
them."""
OWN: Final = frozenset({Scope.SESSIONS_MANAGE})
"""Scopes of every person in any role: they concern the person alone."""
_ALL: Final = frozenset(Scope) - _EVIDENCE - OWN
_STATUS: Final = frozenset(
    {
        Scope.NOTICES_READ,
        Scope.ACKS_READ,
        Scope.BUYERS_READ,
        Scope.CLEARANCES_READ,
        Scope.CHECKOUT_SESSIONS_CREATE,
        Scope.ORDERS_READ,
        Scope.EVENTS_READ,
        Scope.WEBHOOKS_MANAGE,
        Scope.SEARCH_READ,
        Scope.DEPLOYMENT_READ,
        Scope.ACCOUNTS_MANAGE,
    }
)
"""Scopes to read states, and for staff the list of accounts."""

ROLES: Final = {
    Role.OWNER: Allowed(_ALL, _ALL, personal=False),
    Role.DEVELOPER: Allowed(
        frozenset(
            {
                Scope.KEYS_MANAGE,
                Scope.WEBHOOKS_MANAGE,
                Scope.SANDBOX_MANAGE,
                Scope.CHECKOUT_SESSIONS_CREATE,
            }
        ),
        _STATUS,
        personal=False,
    ),
    Role.COMPLIANCE: Allowed(
        frozenset(
            {
                Scope.EVIDENCE_READ,
                Scope.BUYERS_REVIEW,
                Scope.CLEARANCES_OVERRIDE,
                Scope.HOLDS_MANAGE,
                Scope.ERASURE_WRITE,
                Scope.NOTICES_MANAGE,
            }
        ),
        _STATUS | {Scope.RETENTION_READ, Scope.AUDIT_READ},
        personal=True,
    ),
    Role.SUPPORT: Allowed(frozenset(), _STATUS, personal=False),
    Role.AUDITOR: Allowed(frozenset(), _ALL, personal=True),
}

WITHOUT_ACCOUNT: Final = PEOPLE_SCOPES | {
    Scope.NOTICES_READ,
    Scope.SEARCH_READ,
    Scope.HOLDS_MANAGE,
    Scope.ERASURE_WRITE,
    Scope.RETENTION_READ,
    Scope.AUDIT_READ,
    Scope.BUYERS_REVIEW,
}
"""Scopes of staff in a call that names no account: it concerns all of them."""
OF_DEPLOYMENT: Final = PEOPLE_SCOPES - {Scope.PEOPLE_MANAGE} - OWN
"""Scopes of staff alone."""
