"""What people may do: one table, from roles to scopes. `docs/console.md` shows it in words.

A role is held for the whole deployment (staff) or for one account (members). Scopes of the
deployment are worth nothing to a member.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from countersign.access.key import PEOPLE_SCOPES, Scope


class Role(StrEnum):
    """What a person is there for."""

    OWNER = "owner"
    DEVELOPER = "developer"
    COMPLIANCE = "compliance"
    SUPPORT = "support"
    AUDITOR = "auditor"


class Allowed(NamedTuple):
    """What a role allows."""

    acts: frozenset[Scope]
    """Scopes of all operations that the person may call."""
    looks: frozenset[Scope]
    """Scopes of those that change nothing."""
    personal: bool
    """Whether the person sees personal data, for a reason."""

    @property
    def scopes(self) -> frozenset[Scope]:
        return self.acts | self.looks


_EVIDENCE: Final = frozenset({Scope.ACKS_CREATE, Scope.BUYERS_VERIFY, Scope.CLEARANCES_CREATE})
"""What evidence is made by: it says that a vendor's server asked, so people do not."""
OWN: Final = frozenset({Scope.SESSIONS_MANAGE})
"""What every person may do, whatever the role: it is about the person alone."""
_ALL: Final = frozenset(Scope) - _EVIDENCE - OWN
_STATUS: Final = frozenset(
    {
        Scope.NOTICES_READ,
        Scope.ACKS_READ,
        Scope.BUYERS_READ,
        Scope.CLEARANCES_READ,
        Scope.CHECKOUT_SESSIONS_CREATE,
        Scope.EVENTS_READ,
        Scope.WEBHOOKS_MANAGE,
        Scope.SEARCH_READ,
        Scope.DEPLOYMENT_READ,
        Scope.ACCOUNTS_MANAGE,
    }
)
"""How things stand, and for staff in which accounts."""

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
"""What staff may do in a call that names no account: it is about all of them."""
OF_DEPLOYMENT: Final = PEOPLE_SCOPES - {Scope.PEOPLE_MANAGE} - OWN
"""What only staff may do."""
