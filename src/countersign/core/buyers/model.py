"""Buyers: the states of a verification, how they move, and who may rely on them.

A yes lives as long as what it rests on: the buyer's proofs, each of one provider session. A proof
ends with its time or its documents, or if its own session is taken back or read again as of a
younger person; if another session contradicts it, it does not count for that session's account. A
revocation suspends all of them. Other failed attempts take nothing away: the response to *verify*
is about the attempt, the response to *status* about the buyer.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from countersign.base.values import Mode, Reason, from_ms
from countersign.core.buyers.rules import Facts, VerificationRules, joined_facts, shortfalls

VALIDITY: Final = timedelta(days=365)
"""How long a simulated verification lasts, and the longest that any does."""

REMINDED_BEFORE: Final = timedelta(days=30)
"""How long before the end of a verification its vendors are reminded."""

PROOFS_MAX: Final = 4
"""Maximum stored verifications of one buyer to which rules are applied."""

_WITHDRAWN: Final[tuple[Reason, ...]] = (Reason.VERIFICATION_WITHDRAWN,)

ZIPS_PER_DAY: Final = 5
"""Different ZIP codes that one account may try for one buyer within 24 hours."""
STRANGE_ZIPS_PER_DAY: Final = 10
"""Wrong ones for a buyer, of all accounts together that have not met the buyer."""
ZIP_WINDOW: Final = timedelta(hours=24)

MESSAGES_KEPT: Final = timedelta(days=30)
"""How long a provider's message is remembered, so that it is acted on once."""

RESPONSE_KEPT: Final = timedelta(days=30)
"""How long a provider's whole response waits for a review."""
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
    """The result of one verification: `verified` if and only if it has a proof."""

    status: BuyerStatus
    session: str = ""
    """The provider session, as `ProvedSession.session`."""
    reasons: tuple[Reason, ...] = ()
    proof: "ProvedSession | None" = None
    withdraws: bool = False
    """Whether the provider takes back its decision on the session."""
    younger_than: int | None = None
    """The age that the buyer has not reached, by a birth date that the session proves."""
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
    zip_days: dict[str, date] = {}
    """By ZIP code that another document of the session shows: its last day."""
    contradicted_for: tuple[str, ...] = ()
    """The accounts for which it does not count: a session of theirs shows a younger person."""
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

    @property
    def asked_by(self) -> str | None:
        """The account that learns `reasons`."""
        return self.account_id if self.simulated else self.attempted_by

    @property
    def contradicted(self) -> bool:
        """Whether a verified buyer has to verify for `attempted_by`: none of its proofs counts."""
        return self.status is BuyerStatus.VERIFIED and bool(self.reasons)


class BuyerStatusView(Struct, frozen=True, kw_only=True):
    """An account's view of a buyer at one time."""

    status: BuyerStatus
    verified_at: datetime | None = None
    expires_at: datetime | None = None
    reasons: tuple[Reason, ...] = ()


def after_attempt(buyer: Buyer, attempt: VerificationAttempt) -> Buyer:
    """The buyer after one more attempt: by its proofs, or else as the attempt ends.

    A failed attempt takes nothing from a verified buyer (also an expired one), unless it is against
    a proof; a revoked buyer stays revoked.
    """
    revoked = buyer.status is BuyerStatus.REVOKED
    proofs = tuple(left for one in buyer.proofs if (left := _left_of(one, attempt)))
    if attempt.proof is not None and not revoked:
        proofs = _with(proofs, attempt.proof)
    if proofs == buyer.proofs and buyer.status in {BuyerStatus.VERIFIED, BuyerStatus.REVOKED}:
        return buyer
    again = attempt.younger_than is not None and buyer.reasons == _WITHDRAWN
    taken = attempt.withdraws or bool(buyer.proofs) or again
    last = _last(proofs)
    buyer = replace(
        buyer,
        proofs=proofs,
        verified_at=last and from_ms(last.verified_at),
        expires_at=last and from_ms(last.expires_at),
    )
    if revoked:
        return buyer
    if proofs:
        asked = (attempt.account_id, buyer.attempted_by)
        told = next((one for one in asked if one and not proofs_for(buyer, one)), None)
        status, reasons = BuyerStatus.VERIFIED, _WITHDRAWN if told else ()
    else:
        told, status, reasons = attempt.account_id, attempt.status, attempt.reasons
        if taken:
            status, reasons = BuyerStatus.REQUIRES_INPUT, _WITHDRAWN
    return replace(buyer, status=status, reasons=reasons, attempted_by=told)


def is_against(attempt: VerificationAttempt, proof: ProvedSession) -> bool:
    """Whether the attempt takes from what this proof says."""
    if attempt.withdraws and attempt.session == proof.session:
        return True
    return attempt.younger_than is not None and proof.facts.age_over >= attempt.younger_than


def proofs_for(buyer: Buyer, account_id: str) -> list[ProvedSession]:
    """The proofs that count for an account, as far as no session of its own contradicts them."""
    return [proof for proof in buyer.proofs if account_id not in proof.contradicted_for]


def after_revocation(buyer: Buyer) -> Buyer:
    """The buyer after revocation by an operator; the earlier verification is kept."""
    return replace(buyer, status=BuyerStatus.REVOKED, reasons=())


def reinstated(buyer: Buyer) -> Buyer:
    """A revoked buyer after reinstatement: as its proofs say, or asked to verify."""
    if buyer.verified_at is not None:
        return replace(buyer, status=BuyerStatus.VERIFIED, reasons=())
    reasons = (Reason.IDENTITY_REQUIRES_INPUT,)
    return replace(buyer, status=BuyerStatus.REQUIRES_INPUT, reasons=reasons)


def _left_of(proof: ProvedSession, attempt: VerificationAttempt) -> ProvedSession | None:
    """A proof after an attempt: its own session can end it, another one only for its account."""
    if not is_against(attempt, proof):
        return proof
    if proof.session == attempt.session or attempt.account_id is None:
        return None
    accounts = dict.fromkeys((*proof.contradicted_for, attempt.account_id))
    return replace(proof, contradicted_for=tuple(accounts))


def _last(proofs: tuple[ProvedSession, ...]) -> ProvedSession | None:
    return max(proofs, key=lambda proof: proof.expires_at, default=None)


def _with(proofs: tuple[ProvedSession, ...], new: ProvedSession) -> tuple[ProvedSession, ...]:
    if any(one.session == new.session for one in proofs):
        return tuple(_joined(one, new) if one.session == new.session else one for one in proofs)
    return _kept((*proofs, new))


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
        and {*one.contradicted_for} <= {*other.contradicted_for}
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
        zip_days={**known.zip_days, **new.zip_days},
        accounts=tuple(dict.fromkeys((*known.accounts, *new.accounts))),
    )


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
        last = _last(buyer.proofs) if buyer.proofs else None
        verified_at, expires_at = (
            at if at is None or last is None else _shown(at, buyer, last, asking_account_id)
            for at in (buyer.verified_at, buyer.expires_at)
        )
        return BuyerStatusView(
            status=status,
            verified_at=verified_at,
            expires_at=expires_at,
            reasons=buyer.reasons if buyer.reasons and asking_account_id == buyer.asked_by else (),
        )
    proof = best_proof(buyer, rules, asking_account_id)
    if proof is None:
        counting = proofs_for(buyer, asking_account_id)
        lacking = shortfalls(counting[-1].facts, rules) if counting else _WITHDRAWN
        return _has_to_verify(*lacking)
    expires_at = _expiry(buyer, proof, rules, asking_account_id)
    return BuyerStatusView(
        status=BuyerStatus.VERIFIED if now < expires_at else BuyerStatus.EXPIRED,
        verified_at=_shown(from_ms(proof.verified_at), buyer, proof, asking_account_id),
        expires_at=expires_at,
    )


def best_proof(buyer: Buyer, rules: VerificationRules, account_id: str) -> ProvedSession | None:
    """The proof that satisfies these rules of an account for longest, expired or not.

    None: none does.
    """
    counting = proofs_for(buyer, account_id)
    enough = [proof for proof in counting if not shortfalls(proof.facts, rules)]
    return max(enough, key=lambda proof: _expiry(buyer, proof, rules, account_id), default=None)


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
