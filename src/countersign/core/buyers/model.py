"""Buyers: the states of a verification, how they move, and who may rely on them.

Only four events end `verified`: time, revocation, a new successful verification, and a provider
that withdraws its decision on the very session that verified the buyer. A failed attempt by another
session never takes it away: the response to *verify* is about the attempt, the response to *status*
about the buyer.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from countersign.base.values import Mode, Reason, from_ms, to_ms
from countersign.core.buyers.rules import Facts, VerificationRules, joined_facts, shortfalls

VALIDITY: Final = timedelta(days=365)
"""How long a simulated verification lasts, and the longest that any does."""

REMINDED_BEFORE: Final = timedelta(days=30)
"""How long before the end of a verification its vendors are reminded."""

PROOFS_MAX: Final = 4
"""Maximum stored verifications of one buyer to which rules are applied."""

ZIPS_PER_DAY: Final = 5
"""Different ZIP codes that one account may try for one buyer within 24 hours."""
ZIP_WINDOW: Final = timedelta(hours=24)

MESSAGES_KEPT: Final = timedelta(days=30)
"""How long a provider's message is remembered, so that it is acted on once."""

CHECKS_KEPT: Final = timedelta(days=30)
"""How long a started identity check is kept at least; longer if something refers to it."""


class BuyerStatus(StrEnum):
    """The verification status of a buyer."""

    PENDING = "pending"
    REQUIRES_INPUT = "requires_input"
    FAILED = "failed"
    VERIFIED = "verified"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationAttempt:
    """The result of one verification. `status` is never `expired`: that is a matter of time."""

    status: BuyerStatus
    at: datetime
    expires_at: datetime | None = None
    reasons: tuple[Reason, ...] = ()
    proof: "ProvedSession | None" = None
    """The proof from a real verification."""
    withdraws: str | None = None
    """The provider session whose proof no longer counts, as `ProvedSession.session`."""
    account_id: str | None = None
    """The account whose attempt it was; None in the sandbox, where a buyer has one account."""


class ProvedSession(Struct, frozen=True, kw_only=True):
    """One successful verification: its proof, and how long it counts.

    The times are Unix milliseconds.
    """

    session: str
    """The keyed hash of the provider session, in hexadecimal digits."""
    verified_at: int
    began_at: int
    """When the provider decided: validity runs from there."""
    expires_at: int
    facts: Facts
    zips: tuple[str, ...]
    """Keyed hashes of the proved ZIP codes with the source of each, in hexadecimal digits."""
    document_expires_on: date | None = None
    """The last day of the document if `expires_at` is not before it; None otherwise, or unknown."""
    accounts: tuple[str, ...] = ()
    """The accounts that have verified the buyer by it. Empty as earlier builds wrote it: that was
    the buyer's first account."""


class Buyer(Struct, frozen=True, kw_only=True):
    """A buyer as stored. `account_id` is the account whose verification counts for it."""

    cbid: str
    account_id: str
    mode: Mode
    status: BuyerStatus = BuyerStatus.PENDING
    reasons: tuple[Reason, ...] = ()
    verified_at: datetime | None = None
    expires_at: datetime | None = None
    simulated: bool = False
    proofs: tuple[ProvedSession, ...] = ()
    """The newest last; empty for a simulated buyer."""
    same_as: str | None = None
    """The identifier of the buyer that this one was joined to: the person was known already."""
    attempted_by: str | None = None
    """The account whose attempt led to `reasons`; None in the sandbox."""


class BuyerStatusView(Struct, frozen=True, kw_only=True):
    """An account's view of a buyer at one time."""

    status: BuyerStatus
    verified_at: datetime | None = None
    expires_at: datetime | None = None
    reasons: tuple[Reason, ...] = ()


def after_attempt(buyer: Buyer, attempt: VerificationAttempt) -> Buyer:
    """The buyer after one more attempt.

    A revoked buyer stays revoked. A verified buyer (also an expired one) changes only if the
    attempt succeeds or withdraws the verification; an attempt that revokes keeps the earlier
    verification.
    """
    if attempt.withdraws is not None:
        return _withdrawn(buyer, attempt)
    if buyer.status is BuyerStatus.REVOKED:
        return buyer
    if attempt.status is BuyerStatus.VERIFIED:
        return _verified(buyer, attempt)
    if attempt.status is BuyerStatus.REVOKED:
        return after_revocation(buyer)
    if buyer.status is BuyerStatus.VERIFIED:
        return buyer
    status, reasons = attempt.status, attempt.reasons
    return replace(buyer, status=status, reasons=reasons, attempted_by=attempt.account_id)


def after_revocation(buyer: Buyer) -> Buyer:
    """The buyer after revocation by an operator; the earlier verification is kept."""
    return replace(buyer, status=BuyerStatus.REVOKED, reasons=())


def reinstated(buyer: Buyer) -> Buyer:
    """A revoked buyer after reinstatement: as before the revocation, or asked to verify."""
    if buyer.verified_at is not None:
        return replace(buyer, status=BuyerStatus.VERIFIED, reasons=())
    reasons = (Reason.IDENTITY_REQUIRES_INPUT,)
    return replace(buyer, status=BuyerStatus.REQUIRES_INPUT, reasons=reasons)


def _withdrawn(buyer: Buyer, attempt: VerificationAttempt) -> Buyer:
    """The buyer by its other proofs; without any, it has to verify again."""
    proofs = tuple([proof for proof in buyer.proofs if proof.session != attempt.withdraws])
    if proofs:
        last = max(proofs, key=lambda proof: proof.expires_at)
        verified_at, expires_at = from_ms(last.verified_at), from_ms(last.expires_at)
        return replace(buyer, proofs=proofs, verified_at=verified_at, expires_at=expires_at)
    buyer = replace(buyer, proofs=(), verified_at=None, expires_at=None)
    if buyer.status is BuyerStatus.REVOKED:
        return buyer
    status, reasons = BuyerStatus.REQUIRES_INPUT, (Reason.VERIFICATION_WITHDRAWN,)
    return replace(buyer, status=status, reasons=reasons, attempted_by=attempt.account_id)


def _verified(buyer: Buyer, attempt: VerificationAttempt) -> Buyer:
    proof = attempt.proof
    known = next((p for p in buyer.proofs if proof and p.session == proof.session), None)
    if proof is None or known is None:
        proofs = buyer.proofs if proof is None else _kept((*buyer.proofs, proof))
        if _later(buyer, attempt):
            return replace(
                buyer,
                status=BuyerStatus.VERIFIED,
                reasons=(),
                verified_at=attempt.at,
                expires_at=attempt.expires_at,
                proofs=proofs,
            )
        return replace(buyer, proofs=proofs)
    joined = _joined(known, proof)
    if joined == known:
        # The same session once more: nothing new was proved.
        return buyer
    return replace(
        buyer,
        proofs=tuple(joined if p is known else p for p in buyer.proofs),
        expires_at=attempt.expires_at if _later(buyer, attempt) else buyer.expires_at,
    )


def _kept(proofs: tuple[ProvedSession, ...]) -> tuple[ProvedSession, ...]:
    """The proofs to keep, out of one more than the maximum.

    A proof that another one covers goes first, so that many weak verifications do not push out a
    strong one; otherwise the one that expires first.
    """
    if len(proofs) <= PROOFS_MAX:
        return proofs
    superfluous = [p for p in proofs if any(q is not p and _covers(q, p) for q in proofs)]
    goes = min(superfluous or proofs, key=lambda proof: proof.expires_at)
    return tuple(proof for proof in proofs if proof is not goes)


def _covers(one: ProvedSession, other: ProvedSession) -> bool:
    return (
        {*one.accounts} >= {*other.accounts}
        and one.expires_at >= other.expires_at
        and _last_day(one) >= _last_day(other)
        and joined_facts(one.facts, other.facts) == one.facts
    )


def _last_day(proof: ProvedSession) -> date:
    return proof.document_expires_on or from_ms(proof.expires_at).date()


def _joined(known: ProvedSession, new: ProvedSession) -> ProvedSession:
    """The proof of one session, combined over the rules of each account that asked.

    Accounts have different rules: a proof that counts for one must not vanish because another
    required less.
    """
    days = [one.document_expires_on for one in (known, new) if one.document_expires_on]
    return replace(
        known,
        began_at=max(known.began_at, new.began_at),
        expires_at=max(known.expires_at, new.expires_at),
        facts=joined_facts(known.facts, new.facts),
        zips=tuple(dict.fromkeys((*known.zips, *new.zips))),
        document_expires_on=max(days, default=None),
        accounts=tuple(dict.fromkeys((*known.accounts, *new.accounts))),
    )


def _later(buyer: Buyer, attempt: VerificationAttempt) -> bool:
    """Whether the attempt makes the buyer verified for longer; an older session never shortens."""
    return (
        buyer.status is not BuyerStatus.VERIFIED
        or buyer.expires_at is None
        or attempt.expires_at is None
        or attempt.expires_at > buyer.expires_at
    )


def reasons_for(buyer: Buyer, account_id: str) -> tuple[Reason, ...]:
    """Why the buyer is not verified; empty except for the account that made the attempt."""
    asked_by = buyer.account_id if buyer.simulated else buyer.attempted_by
    return buyer.reasons if account_id == asked_by else ()


def status_at(buyer: Buyer, now: datetime) -> BuyerStatus:
    """The status at this time: `verified` becomes `expired` when `expires_at` is reached."""
    if buyer.status is BuyerStatus.VERIFIED and (
        buyer.expires_at is None or now >= buyer.expires_at
    ):
        return BuyerStatus.EXPIRED
    return buyer.status


def reminder_at(buyer: Buyer) -> datetime | None:
    """When to report that a verification is about to expire; None: the period is too short."""
    if buyer.verified_at is None or buyer.expires_at is None:
        return None
    due_at = buyer.expires_at - REMINDED_BEFORE
    return due_at if due_at > buyer.verified_at else None


def status_view(
    buyer: Buyer, asking_account_id: str, rules: VerificationRules, now: datetime
) -> BuyerStatusView:
    """The asking account's view of a buyer.

    A simulated verification never counts outside its account: for others the buyer has to verify,
    with the reason. The asking account's `rules` apply to a real one: if they require more than was
    proved, the buyer has to verify again.

    Times of another account's verification are rounded down to the beginning of their day, so that
    shops cannot recognise a buyer by comparing them; the rounded end is the one that counts.
    """
    if buyer.simulated and buyer.account_id != asking_account_id:
        return _has_to_verify(Reason.SIMULATED_ELSEWHERE)
    status = status_at(buyer, now)
    if status is BuyerStatus.REVOKED or not buyer.proofs:
        verified_at, expires_at = times_for(buyer, asking_account_id)
        return BuyerStatusView(
            status=status,
            verified_at=verified_at,
            expires_at=expires_at,
            reasons=reasons_for(buyer, asking_account_id),
        )
    proof = best_proof(buyer, rules, asking_account_id)
    if proof is None:
        return _has_to_verify(*shortfalls(buyer.proofs[-1].facts, rules))
    expires_at = _expiry(buyer, proof, rules, asking_account_id)
    return BuyerStatusView(
        status=BuyerStatus.VERIFIED if now < expires_at else BuyerStatus.EXPIRED,
        verified_at=_shown(from_ms(proof.verified_at), buyer, proof, asking_account_id),
        expires_at=expires_at,
    )


def simulated_status_view(buyer: Buyer, now: datetime) -> BuyerStatusView:
    """The status of a sandbox buyer for its account; `now` by the account's test clock."""
    return BuyerStatusView(
        status=status_at(buyer, now),
        verified_at=buyer.verified_at,
        expires_at=buyer.expires_at,
        reasons=buyer.reasons,
    )


def best_proof(buyer: Buyer, rules: VerificationRules, account_id: str) -> ProvedSession | None:
    """The proof that satisfies these rules of an account for longest, expired or not.

    None: none does.
    """
    enough = [proof for proof in buyer.proofs if not shortfalls(proof.facts, rules)]
    return max(enough, key=lambda proof: _expiry(buyer, proof, rules, account_id), default=None)


def times_for(buyer: Buyer, account_id: str) -> tuple[datetime | None, datetime | None]:
    """When the buyer was verified and until when, whatever the status, as this account sees it."""
    if buyer.verified_at is None or buyer.expires_at is None or not buyer.proofs:
        return buyer.verified_at, buyer.expires_at
    own = [p for p in buyer.proofs if p.verified_at == to_ms(buyer.verified_at)]
    proof = own[0] if own else buyer.proofs[-1]
    verified_at = _shown(buyer.verified_at, buyer, proof, account_id)
    return verified_at, _shown(buyer.expires_at, buyer, proof, account_id)


def _expiry(
    buyer: Buyer, proof: ProvedSession, rules: VerificationRules, account_id: str
) -> datetime:
    validity = timedelta(days=rules.validity_days)
    ends = min(from_ms(proof.expires_at), from_ms(proof.began_at) + validity)
    ends = rules.within_document(ends, proof.document_expires_on)
    return _shown(ends, buyer, proof, account_id)


def _shown(at: datetime, buyer: Buyer, proof: ProvedSession, account_id: str) -> datetime:
    """A time of this proof as an account sees it: to the day, if the proof is not its own."""
    if account_id in (proof.accounts or (buyer.account_id,)):
        return at
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _has_to_verify(*reasons: Reason) -> BuyerStatusView:
    return BuyerStatusView(status=BuyerStatus.REQUIRES_INPUT, reasons=reasons)
