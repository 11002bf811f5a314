"""A verification: one provider session judged once, and what it made of the buyer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from countersign.access.audit import AuditEntry
from countersign.access.idempotency import IdempotencyEntry
from countersign.buyers.model import Attempt, Buyer, BuyerStatus
from countersign.buyers.rules import VerificationRules
from countersign.log.record import NewRecord
from countersign.mode import Mode

MESSAGES_KEPT: Final = timedelta(days=30)
"""How long a provider's message is remembered, so that it is acted upon once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVerification:
    """What one call of *verify* writes in the sandbox, in one transaction.

    `subject_index` and `zip_index` are keyed hashes: of the provider session (who is asked about)
    and of the ZIP code; both None where the call gave none.
    """

    record: NewRecord
    """What is written down of it, if it changes the buyer; its identifier is the verification's."""
    account_id: str
    mode: Mode
    provider: str
    cbid: str
    attempt: Attempt
    simulated: bool
    subject_index: bytes | None
    zip_index: bytes | None
    at: datetime
    decide: Callable[[Buyer | None], Buyer]
    """The buyer after this verification, from the buyer as stored; pure, run inside the write."""
    remember: Callable[[Buyer], IdempotencyEntry] | None
    judged_at: datetime | None = None
    """What the account's test clock shows; None: it goes by real time."""


class AskedSession(Struct, frozen=True, kw_only=True):
    """A provider session as it was asked about, and what the provider told of it; keyed hashes.

    Until the provider has named the reference, whoever asks with one gets a buyer of its own:
    else a stranger's reference would lead to the buyer that the session turns out to be about.
    """

    session: bytes
    reference: bytes | None
    """The subject reference that was given."""
    with_reference: bytes | None
    """The session and that reference, together."""
    told_reference: bytes | None
    """The subject reference that the provider names."""
    fingerprint: bytes | None
    """Of the document."""
    verifies: bool
    """Whether the attempt succeeds."""


class Resolution(Struct, frozen=True, kw_only=True):
    """Whom a provider session is about, as far as it is known."""

    cbid: str | None
    """None: nobody who was here before."""
    bound: bool
    """False: the session is about another reference than the one that was given."""
    first_verified_at: datetime | None
    """When this session verified somebody first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """A session that is not decided, as it is kept to be asked about again."""

    id: str
    """Its shred key is found under this id."""
    request: bytes
    """Session id, ZIP code and subject, sealed by the vault."""
    shred_key: bytes
    next_poll_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """What an operator accepted in the place of a provider's proof, and the audit entry of it."""

    verification_id: str
    """The verification in which the provider approved the person."""
    document: str
    reason: str
    audit: AuditEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveVerification:
    """What judging a provider session writes, in one transaction."""

    record: NewRecord
    evidence: bytes
    """The provider's answer and the decision, sealed with the record's shred key."""
    account_id: str
    mode: Mode
    provider: str
    cbid: str
    """That of `Resolution`, or a new one. If it has changed meanwhile, nothing is written."""
    session: AskedSession
    attempt: Attempt
    subject_index: bytes
    """The keyed hash of the buyer for the count of ZIP codes tried."""
    zip_index: bytes | None
    """None where the ZIP code was not compared, so that nothing could be learned of it."""
    at: datetime
    following: Following | None
    """None: the session is decided, and is not asked about again."""
    polled: str | None
    """Of a poll, the followed session that it is for: if that is gone, nothing is written."""
    remember: Callable[[Buyer], IdempotencyEntry] | None
    audit: AuditEntry | None = None
    """Of an operator's act."""


class Pending(Struct, frozen=True, kw_only=True):
    """A session that is followed, as stored."""

    id: str
    account_id: str
    mode: Mode
    cbid: str
    request: bytes
    shred_key: bytes | None
    polls: int
    created_at: datetime
    next_poll_at: datetime


class Known(Struct, frozen=True, kw_only=True):
    """A buyer, and the rules of the account that asks; None where it has none of its own."""

    buyer: Buyer
    rules: VerificationRules | None


class StoredEvidence(Struct, frozen=True, kw_only=True):
    """The evidence of one verification, as stored: sealed, or erased."""

    verification_id: str
    account_id: str
    mode: Mode
    provider: str
    status: BuyerStatus
    at: datetime
    payload: bytes
    """Empty if it was erased."""
    shred_key: bytes
    """As above."""
    erased_at: datetime | None
