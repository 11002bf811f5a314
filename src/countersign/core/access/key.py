"""API keys: `csign_<sk|rk>_<test|live>_` + 32 random characters + a checksum of 6.

The prefix lets secret scanners find a leaked key, and the checksum lets a typo be refused without
a look into the database. Keys are stored only as a keyed hash.
"""

from __future__ import annotations

import re
from binascii import crc32
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from countersign.base.values import Mode
from countersign.core.access.reach import Reach, reach_of

BRAND: Final = "csign"
CLIENT_TOKEN: Final = "cst"  # noqa: S105 - a mark, not a token
"""Prefix of a checkout session's token: made like a key, but not a key."""
PERSON_SESSION: Final = f"{BRAND}_ps"
"""Prefix of the token of a person's session."""
PERSON_LINK: Final = f"{BRAND}_pl"
"""Prefix of the token of an invitation link."""
RANDOM_LENGTH: Final = 32
ENTROPY_BYTES: Final = 24
PERSON_ENTROPY_BYTES: Final = 32
HINT_LENGTH: Final = 4
MACHINE: Final = "machine"
"""The maker shown for a key that no person made."""
OPERATOR: Final = "operator"
"""Stands for the key id when a command on the machine acts."""
_CHECKSUM_LENGTH: Final = 6
_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PERSON_LENGTH: Final = 43
_FORM: Final = re.compile(
    rf"(({BRAND}_[sr]k|{CLIENT_TOKEN})_(test|live)_[0-9A-Za-z]{{{RANDOM_LENGTH}}}"
    rf"|({PERSON_SESSION}|{PERSON_LINK})_[0-9A-Za-z]{{{_PERSON_LENGTH}}})[0-9A-Za-z]{{6}}\Z"
)


class Scope(StrEnum):
    """What a key may do."""

    NOTICES_READ = "notices:read"
    ACKS_CREATE = "acks:create"
    ACKS_READ = "acks:read"
    BUYERS_VERIFY = "buyers:verify"
    BUYERS_READ = "buyers:read"
    BUYERS_REVIEW = "buyers:review"
    EVIDENCE_READ = "evidence:read"
    CLEARANCES_CREATE = "clearances:create"
    CLEARANCES_READ = "clearances:read"
    CLEARANCES_OVERRIDE = "clearances:override"
    CHECKOUT_SESSIONS_CREATE = "checkout_sessions:create"
    ORDERS_READ = "orders:read"
    EVENTS_READ = "events:read"
    WEBHOOKS_MANAGE = "webhooks:manage"
    SANDBOX_MANAGE = "sandbox:manage"
    KEYS_MANAGE = "keys:manage"
    SEARCH_READ = "search:read"
    HOLDS_MANAGE = "holds:manage"
    ERASURE_WRITE = "erasure:write"
    RETENTION_READ = "retention:read"
    AUDIT_READ = "audit:read"
    ACCOUNTS_MANAGE = "accounts:manage"
    NOTICES_MANAGE = "notices:manage"
    PEOPLE_MANAGE = "people:manage"
    DEPLOYMENT_READ = "deployment:read"
    STAFF_MANAGE = "staff:manage"
    SESSIONS_MANAGE = "sessions:manage"


PEOPLE_SCOPES: Final = frozenset(
    {
        Scope.ACCOUNTS_MANAGE,
        Scope.NOTICES_MANAGE,
        Scope.PEOPLE_MANAGE,
        Scope.STAFF_MANAGE,
        Scope.SESSIONS_MANAGE,
        Scope.DEPLOYMENT_READ,
    }
)
"""Scopes that no key has: the audit must name a person."""

LIVE_SCOPES: Final = frozenset({Scope.ACCOUNTS_MANAGE, Scope.PEOPLE_MANAGE})
"""With these, both modes of an account are changed: test mode only looks."""

MACHINE_SCOPES: Final = frozenset(
    {Scope.BUYERS_REVIEW, Scope.HOLDS_MANAGE, Scope.ERASURE_WRITE, Scope.AUDIT_READ}
)
"""Scopes that destroy, decide or read personal data: for people, and for keys made on the machine.
A key made by a person cannot use these scopes.
"""
STAFF_SCOPES: Final = (
    PEOPLE_SCOPES
    | MACHINE_SCOPES
    | {Scope.KEYS_MANAGE, Scope.SEARCH_READ, Scope.RETENTION_READ, Scope.CLEARANCES_OVERRIDE}
)
"""For acts of staff: a key made without `--scope` has none of them."""

READING_SCOPES: Final = frozenset({Scope.ACKS_READ, Scope.CLEARANCES_READ, Scope.EVIDENCE_READ})
"""Scopes that read personal data."""

VENDOR_SCOPES: Final = frozenset(Scope) - STAFF_SCOPES
"""The scopes of a vendor's server: the default of a key made without `--scope`."""


class KeyKind(StrEnum):
    """How a key is marked. A restricted key has only the scopes it was made with."""

    SECRET = "sk"  # noqa: S105 - a mark, not a password
    RESTRICTED = "rk"

    @property
    def credential(self) -> str:
        """The word in a record for the kind of credential that was used."""
        return "secret_key" if self is KeyKind.SECRET else "restricted_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """The stored data of a key; the key itself is shown once and not stored."""

    id: str
    account_id: str
    mode: Mode
    kind: KeyKind
    scopes: frozenset[Scope]
    hint: str
    created_at: datetime
    lifetime: timedelta | None
    """The lifetime at creation; rotation moves `expires_at`, and leaves this as it is."""
    expires_at: datetime | None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    replaces: str | None
    made_by: str | None = None
    """The person (`per_…`); None: it was made on the machine."""
    name: str | None = None

    def works_at(self, now: datetime) -> bool:
        # A revocation is not compared with the clock: a slow clock would undo it.
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def compose_key(kind: KeyKind, mode: Mode, entropy: bytes) -> str:
    """A new key from 24 random bytes (190 bits of them are used)."""
    return compose_token(f"{BRAND}_{kind}_{mode}", entropy)


def compose_token(mark: str, entropy: bytes) -> str:
    """A token that begins with this mark; `entropy` as for a key, or 32 bytes for a person's."""
    size, length = ENTROPY_BYTES, RANDOM_LENGTH
    if mark in {PERSON_SESSION, PERSON_LINK}:
        size, length = PERSON_ENTROPY_BYTES, _PERSON_LENGTH
    if len(entropy) != size:
        raise ValueError(f"{size} random bytes are needed")
    random = _base62(int.from_bytes(entropy, "big") % 62**length, length)
    stem = f"{mark}_{random}"
    return stem + _checksum(stem)


def well_formed(token: str) -> bool:
    """Whether the text has the form of a key and its checksum is right."""
    stem, checksum = token[:-_CHECKSUM_LENGTH], token[-_CHECKSUM_LENGTH:]
    return _FORM.match(token) is not None and _checksum(stem) == checksum


def key_hint(token: str) -> str:
    """The recognisable part of a key: its beginning and its last 4 characters."""
    stem = token[: -(RANDOM_LENGTH + _CHECKSUM_LENGTH)]
    return f"{stem}…{token[-HINT_LENGTH:]}"


def _checksum(stem: str) -> str:
    return _base62(crc32(stem.encode()), _CHECKSUM_LENGTH)


def _base62(value: int, length: int) -> str:
    characters = []
    for _ in range(length):
        value, digit = divmod(value, 62)
        characters.append(_BASE62[digit])
    return "".join(reversed(characters))


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonAsking:
    """Further properties of a person's session, for one account or for none."""

    id: str
    role: str
    looks: frozenset[Scope]
    """Scopes that let the person read only."""
    sees_personal_data: bool
    is_fresh: bool
    """Whether the person has used a passkey in the last minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The caller: properties of a valid key, or of a person's session."""

    key_id: str
    """Of the key, or of the session."""
    account_id: str
    """"" for a call of a person that is about no account."""
    mode: Mode
    scopes: frozenset[Scope]
    credential: str
    person: PersonAsking | None = None
    """None: the caller is a key."""
    made_by: str | None = None
    """The person who made the calling key; None: it was made on the machine."""

    @property
    def reach(self) -> Reach:
        """The reach of the caller."""
        return reach_of(self.account_id, self.mode)

    @property
    def person_id(self) -> str:
        return "" if self.person is None else self.person.id

    @property
    def is_operator(self) -> bool:
        """Whether a command on the machine asks, where everything is allowed anyway."""
        return self.key_id == OPERATOR

    @property
    def by_key(self) -> str | None:
        """The key that asks; None: the caller is a person or an operator."""
        return None if self.person or self.is_operator else self.key_id

    @property
    def actor(self) -> str:
        """The actor for the audit: the person, or the key."""
        return self.person_id or self.key_id

    @property
    def maker(self) -> str | None:
        """The creator of this caller's keys: the person, or the calling key's creator."""
        return self.person_id or self.made_by
