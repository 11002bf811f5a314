"""The decision: a buyer's status from a provider's result, by an account's rules.

One pure function. Unknown is never a pass, and all reasons are given at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

from countersign.base.errors import (
    ProviderSessionNotBound,
    ProviderSessionNotFound,
    ProviderUnavailable,
    VerificationMisconfigured,
)
from countersign.base.values import Reason
from countersign.core.buyers.identity_check import FOLLOWED, UNDECIDED, state_of
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.rules import (
    AbsentCountry,
    Facts,
    VerificationRules,
    document_reasons,
    document_zip5,
    zip5,
)
from countersign.identity.fingerprint import US, issuer
from countersign.identity.model import Document, FactSource, Finding, ProviderResult, Tri

AGES_KEPT: Final = (18, 19, 20, 21, 25, 30)
"""An age is stored only as the largest of these that it has reached: enough for rules, without the
age."""
_AGE_MAX: Final = 120
"""A birth date that makes a person older is a mistake, or a placeholder for a redacted one."""
_FIRST_DECISION: Final = 2000
_RETRY_AFTER_SECONDS: Final = 5
OTHER_SUBJECT: Final = (
    "The session belongs to another subject than the `subject_reference` of the request."
)
_OTHER_MODE: Final = {
    False: "The session is of the provider's test mode or of another integration, and a live key "
    "needs a live session of the integration in the account's credentials.",
    True: "The session is a live one, and sessions of test keys must be of the provider's test "
    "mode.",
    None: "The provider does not confirm that the session is of the mode of the key, and of the "
    "integration in the account's credentials.",
}
TAKEN_BACK: Final = frozenset({Finding.FAILED, Finding.CANCELED, Finding.EXPIRED})
"""Final and negative. Redacted, undecided or unknown results do not contradict an earlier decision,
and `unproved` depends on the account's own credentials."""
_UNDER_WAY: Final = frozenset({None, "created", "started", "In Progress"})
"""The words of providers that say `pending` before anything is submitted: Veriff's, which says
nothing until there is a decision, and Didit's."""
_NOT_BEGUN: Final = frozenset({Reason.CONSENT_DECLINED, Reason.DEVICE_UNSUPPORTED})
_UNDECIDED: Final[dict[Finding, tuple[BuyerStatus, tuple[Reason, ...]]]] = {
    Finding.PENDING: (BuyerStatus.PENDING, ()),
    Finding.REQUIRES_INPUT: (BuyerStatus.REQUIRES_INPUT, (Reason.IDENTITY_REQUIRES_INPUT,)),
    Finding.CANCELED: (BuyerStatus.REQUIRES_INPUT, (Reason.SESSION_CANCELED,)),
    Finding.EXPIRED: (BuyerStatus.REQUIRES_INPUT, (Reason.SESSION_EXPIRED,)),
    Finding.FAILED: (BuyerStatus.FAILED, (Reason.IDENTITY_FAILED,)),
    Finding.UNPROVED: (BuyerStatus.FAILED, (Reason.IDENTITY_NOT_PROVED,)),
    Finding.REDACTED: (BuyerStatus.FAILED, (Reason.SESSION_REDACTED,)),
}


class ProvedZip(NamedTuple):
    """A ZIP code that a source proves. It is personal, and kept only as a keyed hash."""

    digits: str
    """The first five."""
    source: FactSource
    country_assumed: bool
    document: Document | None = None
    """The document that shows it, if not the only one of the session."""

    @property
    def last_day(self) -> date:
        """The last day of that document."""
        return (self.document and self.document.expires_on) or date.max

    def lapsed(self, rules: VerificationRules, today: date) -> tuple[Reason, ...]:
        """Why the rules refuse that document."""
        return document_reasons(self.document, rules, today) if self.document else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDecision:
    """What came of it. `facts` and `zips`, the proved values, are set only with `verified`."""

    status: BuyerStatus
    reasons: tuple[Reason, ...]
    began_at: datetime | None = None
    """With `verified`: when the provider decided. Validity runs from there."""
    expires_at: datetime | None = None
    document_expires_on: date | None = None
    """The last day of the document, if `expires_at` is not before it."""
    facts: Facts | None = None
    zips: tuple[ProvedZip, ...] = ()

    @property
    def is_followed(self) -> bool:
        """Whether the provider is polled again: it has not decided, or the buyer can continue."""
        return state_of(self.status, self.reasons) in FOLLOWED

    def since(self, first: datetime, rules: VerificationRules) -> SessionDecision:
        """The decision on a session that verified somebody then: sent again, it gets no younger."""
        if self.began_at is None or self.began_at <= first:
            return self
        ends, last = _ends(first, self.document_expires_on, rules)
        return replace(self, began_at=first, expires_at=ends, document_expires_on=last)

    def __repr__(self) -> str:
        return f"<Decision: {self.status}>"


def decide(
    result: ProviderResult,
    rules: VerificationRules,
    *,
    shipping_zip: str,
    subject_reference: str | None,
    now: datetime,
    live: bool | None = True,
) -> SessionDecision:
    """Decide on a provider's result for a session.

    Args:
        result: what it said. Outcomes without a statement about a session (not found, unavailable,
            rejected, invalid) never verify a buyer: they become `failed`.
        rules: those of the account, including the deployment's floor.
        shipping_zip: where the goods shall go: five digits, or ZIP+4.
        subject_reference: the buyer that the session must be about, if required.
        now: the time.
        live: whether the session has to be a live one; None: either.
    """
    unbound = _unbound(result, rules, subject_reference, live=live)
    if unbound:
        return _decision(BuyerStatus.FAILED, *unbound)
    if result.outcome is not Finding.VERIFIED:
        status, reasons = _UNDECIDED.get(
            result.outcome, (BuyerStatus.FAILED, (Reason.IDENTITY_FAILED,))
        )
        # While it is not decided, nothing is held against the buyer.
        finer = (result.reason,) if reasons and result.reason else ()
        return _decision(status, *reasons, *finer)
    today, wanted = rules.day_of(now), zip5(shipping_zip)
    document, age = result.document, _age(result, today)
    against = [*document_reasons(document, rules, today)]
    if age is None or age < rules.minimum_age:
        against.append(Reason.AGE_UNKNOWN if age is None else Reason.AGE_BELOW_MINIMUM)
    found = proved_zips(result, rules)
    proved = [one for one in found if not one.lapsed(rules, today)]
    matching = [one for one in proved if one.digits == wanted]
    if not matching:
        lapsed = [one for one in found if one.digits == wanted]
        unmatched = Reason.ZIP_MISMATCH if found else Reason.ZIP_UNKNOWN
        against += lapsed[0].lapsed(rules, today) if lapsed else [unmatched]
    if against or age is None:
        return _decision(BuyerStatus.FAILED, *dict.fromkeys(against))
    last = max(one.last_day for one in matching)
    if document is not None and document.expires_on is not None:
        last = min(last, document.expires_on)
    decided_at = result.decided_at
    # An impossible time counts as missing.
    known = decided_at is not None and decided_at.year >= _FIRST_DECISION
    began = min(now, decided_at) if decided_at is not None and known else now
    ends, decisive = _ends(began, last, rules)
    return SessionDecision(
        status=BuyerStatus.VERIFIED,
        reasons=(),
        began_at=began,
        expires_at=ends,
        document_expires_on=decisive,
        facts=Facts(
            age_over=max([one for one in (*AGES_KEPT, rules.minimum_age) if one <= age]),
            document_checked=document is not None,
            document_unexpired=document.unexpired(today) if document else Tri.UNKNOWN,
            expiry_unread=document is not None and document.expiry_unread,
            zip_sources=tuple(sorted({one.source for one in matching})),
            country_assumed=all(one.country_assumed for one in matching),
        ),
        zips=tuple(dict.fromkeys(proved)),
    )


def _ends(
    began: datetime, last: date | None, rules: VerificationRules
) -> tuple[datetime, date | None]:
    """When a verification that began then ends, and the last day of the document, if it decides."""
    ends = rules.within_document(began + timedelta(days=rules.validity_days), last)
    # The first zone to complete the day is 14 hours ahead of UTC.
    return ends, last if last is not None and last <= ends.astimezone(UTC).date() else None


def age_on(born: date, day: date) -> int:
    """Completed years of age on a day; below 0 for a birth after it.

    A year is complete at the beginning of the birthday (California Family Code § 6500); a person
    born on 29 February reaches it on 1 March in a common year, as the statute does not say
    otherwise.
    """
    return day.year - born.year - ((day.month, day.day) < (born.month, born.day))


def final(decision: SessionDecision) -> SessionDecision:
    """The decision when the provider will not be polled again."""
    if state_of(decision.status, decision.reasons) in UNDECIDED:
        return _decision(BuyerStatus.REQUIRES_INPUT, Reason.SESSION_UNDECIDED)
    return decision


def nothing_submitted(result: ProviderResult) -> bool:
    """Whether the buyer has, according to the provider, submitted nothing to judge."""
    match result.outcome:
        case Finding.REQUIRES_INPUT | Finding.CANCELED | Finding.EXPIRED:
            # Any other reason means that something was judged.
            return result.reason is None or result.reason in _NOT_BEGUN
        case Finding.FAILED:
            return result.reason in _NOT_BEGUN
        case Finding.PENDING:
            return result.provider_status in _UNDER_WAY
        case _:
            return False


def before_submission(decision: SessionDecision, result: ProviderResult) -> SessionDecision:
    """The decision for the buyer of a session to which apparently nothing was submitted.

    Where the provider says that the buyer has begun, it is the buyer's turn.
    """
    if decision.status is BuyerStatus.PENDING and result.provider_status is not None:
        return _decision(BuyerStatus.REQUIRES_INPUT, Reason.IDENTITY_REQUIRES_INPUT)
    return decision


def refuse_unusable(result: ProviderResult) -> None:
    """Go on only if the provider has said something of the session.

    Raises:
        ProviderSessionNotFound, VerificationMisconfigured, ProviderUnavailable: it has not.
    """
    match result.outcome:
        case Finding.NOT_FOUND:
            raise ProviderSessionNotFound
        case Finding.PROVIDER_REJECTED:
            raise VerificationMisconfigured
        case Finding.PROVIDER_UNAVAILABLE | Finding.INVALID_RESPONSE:
            raise ProviderUnavailable(retry_after=result.retry_after or _RETRY_AFTER_SECONDS)
        case _:
            return


def refuse_unbound(decision: SessionDecision, result: ProviderResult) -> None:
    """Go on only if the buyer may be verified by this session.

    Raises ProviderSessionNotBound if it is not a live one of the integration, or about somebody
    else.
    """
    if Reason.TEST_SESSION in decision.reasons:
        raise ProviderSessionNotBound(_OTHER_MODE[result.live])
    if Reason.SESSION_NOT_BOUND in decision.reasons:
        raise ProviderSessionNotBound(OTHER_SUBJECT)


def is_withheld(result: ProviderResult, *, live: bool | None) -> bool:
    """Whether a birth date is missing because the account's credentials may not read it."""
    evidence = result.evidence
    return (
        result.outcome is Finding.VERIFIED
        and (live is None or result.live is live)
        and result.date_of_birth is None
        and evidence is not None
        and not evidence.sensitive_complete
    )


def proved_zips(result: ProviderResult, rules: VerificationRules) -> list[ProvedZip]:
    """The ZIP codes in the United States that a source proves."""
    found = []
    for address in result.addresses:
        source = address.source
        if source not in rules.zip_sources or source in {FactSource.USER, FactSource.NONE}:
            continue
        # A territory has a country code of its own, and ZIP codes of the United States.
        where = issuer(address.country, None)
        assumed = where is None and rules.absent_country is AbsentCountry.US
        digits = document_zip5(address.postal_code or "")
        if digits is not None and (assumed or (where is not None and where[0] == US)):
            found.append(ProvedZip(digits, source, assumed, address.document))
    return found


def _decision(status: BuyerStatus, *reasons: Reason) -> SessionDecision:
    return SessionDecision(status=status, reasons=reasons)


def _unbound(
    result: ProviderResult,
    rules: VerificationRules,
    subject_reference: str | None,
    *,
    live: bool | None,
) -> list[Reason]:
    """Why this session cannot be the buyer's, or not a real one."""
    reasons = []
    # For undecided sessions some providers do not tell the mode yet.
    unknown = result.live is None and result.outcome is not Finding.VERIFIED
    if live is not None and result.live is not live and not unknown:
        reasons.append(Reason.TEST_SESSION)
    if subject_reference is None:
        if rules.subject_reference_required:
            reasons.append(Reason.SESSION_NOT_BOUND)
    elif result.subject_reference != subject_reference:
        # Nor its subject; a different reference is reason enough.
        unnamed = result.subject_reference is None and result.outcome is not Finding.VERIFIED
        if not unnamed:
            reasons.append(Reason.SESSION_NOT_BOUND)
    return reasons


def _age(result: ProviderResult, today: date) -> int | None:
    """The age in years; None if it is not proved, or impossible."""
    born = result.date_of_birth
    if born is None or result.date_of_birth_source in {FactSource.USER, FactSource.NONE}:
        return None
    age = age_on(born, today)
    return age if 0 <= age <= _AGE_MAX else None
