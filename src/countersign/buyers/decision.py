"""The decision: what a provider's result makes of a buyer, by an account's rules.

One pure function. Unknown is never a pass, and all reasons are given at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from countersign.buyers.model import BuyerStatus
from countersign.buyers.rules import AbsentCountry, Facts, VerificationRules, document_reasons
from countersign.errors import (
    ProviderSessionNotBound,
    ProviderSessionNotFound,
    ProviderUnavailable,
    VerificationMisconfigured,
)
from countersign.identity.document_country import US, issuer
from countersign.identity.model import Address, Outcome, ProviderResult, Source, Tri
from countersign.identity.postal_code import document_zip5, zip5
from countersign.reason import Reason

AGES_KEPT: Final = (18, 19, 20, 21, 25, 30)
"""Of an age is kept only which of these it had reached: enough for rules, and not the age."""
_AGE_MAX: Final = 120
"""A birth date that makes a person older is a mistake, or stands in the place of a redacted one."""
_FIRST_DECISION: Final = 2000
_RETRY_AFTER_SECONDS: Final = 5
OTHER_SUBJECT: Final = (
    "The session belongs to another subject than the `subject_reference` of the request."
)
_TEST_SESSION: Final = (
    "The session is of the provider's test mode or of another integration, and a live key needs a "
    "live session of the integration in the account's credentials."
)
_NOT_LIVE: Final = (
    "The provider does not confirm that the session is a live session of the integration in the "
    "account's credentials."
)
_UNDECIDED: Final[dict[Outcome, tuple[BuyerStatus, tuple[Reason, ...]]]] = {
    Outcome.PENDING: (BuyerStatus.PENDING, ()),
    Outcome.REQUIRES_INPUT: (BuyerStatus.REQUIRES_INPUT, (Reason.IDENTITY_REQUIRES_INPUT,)),
    Outcome.CANCELED: (BuyerStatus.REQUIRES_INPUT, (Reason.SESSION_CANCELED,)),
    Outcome.EXPIRED: (BuyerStatus.REQUIRES_INPUT, (Reason.SESSION_EXPIRED,)),
    Outcome.FAILED: (BuyerStatus.FAILED, (Reason.IDENTITY_FAILED,)),
    Outcome.UNPROVED: (BuyerStatus.FAILED, (Reason.IDENTITY_NOT_PROVED,)),
    Outcome.REDACTED: (BuyerStatus.FAILED, (Reason.SESSION_REDACTED,)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDecision:
    """What came of it.

    `facts` and `zips` are given only with `verified`: what was proved, and the five digits of
    every ZIP code that is proved, with its source and whether its country is assumed,
    which are personal and kept only as keyed hashes.
    """

    status: BuyerStatus
    reasons: tuple[Reason, ...]
    began_at: datetime | None = None
    """With `verified`: when the provider decided. Validity runs from there."""
    expires_at: datetime | None = None
    document_expires_on: date | None = None
    """The last day of the document, if `expires_at` is not before it."""
    facts: Facts | None = None
    zips: tuple[tuple[str, Source, bool], ...] = ()

    @property
    def not_bound(self) -> bool:
        """Whether the session is not one that this buyer may be verified by."""
        return not {Reason.SESSION_NOT_BOUND, Reason.TEST_SESSION}.isdisjoint(self.reasons)

    @property
    def is_followed(self) -> bool:
        """Whether the provider is asked again: it has not decided, or the buyer can continue."""
        return self.status is BuyerStatus.PENDING or (
            self.status is BuyerStatus.REQUIRES_INPUT
            and Reason.IDENTITY_REQUIRES_INPUT in self.reasons
        )

    def __repr__(self) -> str:
        return f"<Decision: {self.status}>"


def decide(
    result: ProviderResult,
    rules: VerificationRules,
    *,
    shipping_zip: str,
    subject_reference: str | None,
    now: datetime,
    first_verified_at: datetime | None = None,
) -> SessionDecision:
    """Decide on what a provider said of a session.

    Args:
        result: what it said. Outcomes that say nothing of a session (not found, unavailable,
            rejected, invalid) never verify a buyer: they come out as `failed`.
        rules: those of the account, the deployment's floor included.
        shipping_zip: where the goods shall go: five digits, or ZIP+4.
        subject_reference: the buyer whom the session has to be about, where that is asked.
        now: the time.
        first_verified_at: when this session verified somebody first. A session that is sent
            again and again does not get younger by it.
    """
    unbound = _unbound(result, rules, subject_reference)
    if unbound:
        return _decision(BuyerStatus.FAILED, *unbound)
    if result.outcome is not Outcome.VERIFIED:
        status, reasons = _UNDECIDED.get(
            result.outcome, (BuyerStatus.FAILED, (Reason.IDENTITY_FAILED,))
        )
        # While it is not decided, nothing is held against the buyer.
        finer = (result.reason,) if reasons and result.reason else ()
        return _decision(status, *reasons, *finer)
    today = rules.day_of(now)
    unexpired = _unexpired(result, today)
    proved = proved_zips(result, rules)
    matching = [address for zip_, address in proved if zip_ == zip5(shipping_zip)]
    reasons = (
        *document_reasons(unexpired, rules),
        *_age_reasons(result, rules, today),
        *([] if matching else [Reason.ZIP_MISMATCH if proved else Reason.ZIP_UNKNOWN]),
    )
    born = result.date_of_birth
    if reasons or born is None:
        return _decision(BuyerStatus.FAILED, *(reasons or (Reason.AGE_UNKNOWN,)))
    began = min(at for at in (now, _decided_at(result), first_verified_at) if at is not None)
    last = result.document.expires_on if result.document else None
    expires_at = rules.within_document(began + timedelta(days=rules.validity_days), last)
    # The first zone in which the day is over is 14 hours ahead of UTC.
    outlasts = last is not None and last <= expires_at.astimezone(UTC).date()
    return SessionDecision(
        status=BuyerStatus.VERIFIED,
        reasons=(),
        began_at=began,
        expires_at=expires_at,
        document_expires_on=last if outlasts else None,
        facts=Facts(
            age_over=max(
                age for age in (*AGES_KEPT, rules.minimum_age) if age <= age_on(born, today)
            ),
            document_checked=result.document is not None,
            document_unexpired=unexpired,
            zip_sources=tuple(sorted({address.source for address in matching})),
            country_assumed=all(_country_assumed(address) for address in matching),
        ),
        zips=tuple(sorted({(zip_, a.source, _country_assumed(a)) for zip_, a in proved})),
    )


def age_on(born: date, day: date) -> int:
    """Completed years of age on a day; below 0 for a birth after it.

    A year is complete from the beginning of the birthday (California Family Code § 6500); who was
    born on 29 February has it on 1 March in a common year, as the statute does not say otherwise.
    """
    return day.year - born.year - ((day.month, day.day) < (born.month, born.day))


def final(decision: SessionDecision) -> SessionDecision:
    """The decision when the provider will not be asked again."""
    if decision.status in {BuyerStatus.PENDING, BuyerStatus.REQUIRES_INPUT}:
        return _decision(BuyerStatus.REQUIRES_INPUT, Reason.SESSION_UNDECIDED)
    return decision


def refuse_unusable(result: ProviderResult) -> None:
    """Go on only if the provider has said something of the session.

    Raises:
        ProviderSessionNotFound, VerificationMisconfigured, ProviderUnavailable: it has not.
    """
    match result.outcome:
        case Outcome.NOT_FOUND:
            raise ProviderSessionNotFound
        case Outcome.PROVIDER_REJECTED:
            raise VerificationMisconfigured
        case Outcome.PROVIDER_UNAVAILABLE | Outcome.INVALID_RESPONSE:
            raise ProviderUnavailable(retry_after=result.retry_after or _RETRY_AFTER_SECONDS)
        case _:
            return


def refuse_unbound(decision: SessionDecision, result: ProviderResult) -> None:
    """Go on only if the buyer may be verified by this session.

    Raises:
        ProviderSessionNotBound: it is not a live one of the integration, or about somebody else.
    """
    if Reason.TEST_SESSION in decision.reasons:
        raise ProviderSessionNotBound(_TEST_SESSION if result.live is False else _NOT_LIVE)
    if decision.not_bound:
        raise ProviderSessionNotBound(OTHER_SUBJECT)


def is_withheld(result: ProviderResult) -> bool:
    """Whether a birth date is missing because the account's credentials may not read it."""
    evidence = result.evidence
    return (
        result.outcome is Outcome.VERIFIED
        and result.live is True
        and result.date_of_birth is None
        and evidence is not None
        and not evidence.sensitive_complete
    )


def proved_zips(
    result: ProviderResult, rules: VerificationRules
) -> tuple[tuple[str, Address], ...]:
    """The first five digits of each ZIP code that a source proves, with its address."""
    found = []
    for address in result.addresses:
        if address.source not in rules.zip_sources or address.source in {Source.USER, Source.NONE}:
            continue
        # A territory has a country code of its own, and ZIP codes of the United States.
        where = issuer(address.country, None)
        if where is None and rules.absent_country is not AbsentCountry.US:
            continue
        if where is not None and where[0] != US:
            continue
        digits = document_zip5(address.postal_code or "")
        if digits is not None:
            found.append((digits, address))
    return tuple(found)


def _decision(status: BuyerStatus, *reasons: Reason) -> SessionDecision:
    return SessionDecision(status=status, reasons=reasons)


def _unbound(
    result: ProviderResult, rules: VerificationRules, subject_reference: str | None
) -> list[Reason]:
    """Why this session cannot be the buyer's, or not a real one."""
    reasons = []
    # Of a session that is not decided, some providers do not say yet in which mode it is.
    if result.live is False or (result.live is None and result.outcome is Outcome.VERIFIED):
        reasons.append(Reason.TEST_SESSION)
    if subject_reference is None:
        if rules.subject_reference_required:
            reasons.append(Reason.SESSION_NOT_BOUND)
    elif result.subject_reference != subject_reference:
        # Nor, of such a session, whom it is about; a different reference says enough.
        unnamed = result.subject_reference is None and result.outcome is not Outcome.VERIFIED
        if not unnamed:
            reasons.append(Reason.SESSION_NOT_BOUND)
    return reasons


def _country_assumed(address: Address) -> bool:
    return issuer(address.country, None) is None


def _decided_at(result: ProviderResult) -> datetime | None:
    """When the provider decided; what stands in the place of a time that is gone is none."""
    at = result.decided_at
    return at if at is not None and at.year >= _FIRST_DECISION else None


def _unexpired(result: ProviderResult, today: date) -> Tri:
    """Whether the document is valid today; on the day of its expiry it still is."""
    expires_on = result.document.expires_on if result.document else None
    if expires_on is None:
        return Tri.UNKNOWN
    return Tri.PASS if today <= expires_on else Tri.FAIL


def _age_reasons(
    result: ProviderResult, rules: VerificationRules, today: date
) -> tuple[Reason, ...]:
    born = result.date_of_birth
    if (
        born is None
        or result.date_of_birth_source in {Source.USER, Source.NONE}
        or born > today
        or age_on(born, today) > _AGE_MAX
    ):
        return (Reason.AGE_UNKNOWN,)
    return (Reason.AGE_BELOW_MINIMUM,) if age_on(born, today) < rules.minimum_age else ()
