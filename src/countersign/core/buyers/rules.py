"""An account's requirements for a verification, and the proofs of a verification."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from countersign.base.config import AGE_MIN, VALIDITY_DAYS_MAX
from countersign.base.values import Reason
from countersign.identity.model import Document, FactSource, Tri

PROOFS: Final = (FactSource.DOCUMENT, FactSource.DATABASE, FactSource.PROOF_OF_ADDRESS)
"""The sources that can prove an address; text that a person typed cannot."""


ACCEPTABLE: Final = (*PROOFS, FactSource.OPERATOR)
"""The sources that rules may name: the word of an operator counts only if an account asks for
it."""


class DocumentExpiry(StrEnum):
    """The requirement for the document's expiry date."""

    UNEXPIRED_IF_KNOWN = "unexpired_if_known"
    """A document that is known to have expired fails, as does one with an unreadable date; one
    without a date passes."""
    UNEXPIRED = "unexpired"
    """It has to be known, and not reached."""
    IGNORED = "ignored"


class AbsentCountry(StrEnum):
    """The assumed country of an address without one."""

    US = "us"
    UNKNOWN = "unknown"


class VerificationRules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An account's requirements for a verification."""

    minimum_age: int = AGE_MIN
    """In years, on the day in `zone`."""
    zone: str = "America/Los_Angeles"
    """The zone where a birthday begins: the westernmost one that is served."""
    zip_sources: tuple[FactSource, ...] = PROOFS
    """Which sources of an address are accepted."""
    absent_country: AbsentCountry = AbsentCountry.UNKNOWN
    document_expiry: DocumentExpiry = DocumentExpiry.UNEXPIRED_IF_KNOWN
    validity_days: int = VALIDITY_DAYS_MAX
    subject_reference_required: bool = False

    def day_of(self, now: datetime) -> date:
        """The calendar day in the account's zone."""
        return now.astimezone(ZoneInfo(self.zone)).date()

    def within_document(self, ends: datetime, last: date | None) -> datetime:
        """When a verification ends: at `ends`, or before that with the document's last day.

        Args:
            ends: when its validity ends.
            last: the last day of the document, which counts in `zone`; None if it is not known.
        """
        ignored = self.document_expiry is DocumentExpiry.IGNORED
        if ignored or last is None or last >= self.day_of(ends):
            return ends
        midnight = datetime.combine(last + timedelta(days=1), time.min, ZoneInfo(self.zone))
        return midnight.astimezone(UTC)

    def at_least(self, floor: VerificationRules) -> VerificationRules:
        """These rules, raised to the deployment's minimum."""
        return replace(
            self,
            minimum_age=max(self.minimum_age, floor.minimum_age),
            validity_days=min(self.validity_days, floor.validity_days),
        )


_EXPIRY_STRICTNESS: Final = (
    DocumentExpiry.IGNORED,
    DocumentExpiry.UNEXPIRED_IF_KNOWN,
    DocumentExpiry.UNEXPIRED,
)


def weakened(old: VerificationRules, new: VerificationRules) -> tuple[str, ...]:
    """The names of the rules by which `new` can accept a person that `old` refuses.

    Another zone always counts: which of two zones comes first can depend on the day.
    """
    strict = _EXPIRY_STRICTNESS.index
    weaker = {
        "minimum_age": new.minimum_age < old.minimum_age,
        "zone": new.zone != old.zone,
        "zip_sources": not set(new.zip_sources) <= set(old.zip_sources),
        "absent_country": (old.absent_country, new.absent_country)
        == (AbsentCountry.UNKNOWN, AbsentCountry.US),
        "document_expiry": strict(new.document_expiry) < strict(old.document_expiry),
        "validity_days": new.validity_days > old.validity_days,
        "subject_reference_required": old.subject_reference_required
        and not new.subject_reference_required,
    }
    return tuple(name for name, is_weaker in weaker.items() if is_weaker)


class VerificationSettings(Struct, frozen=True, kw_only=True):
    """How one account verifies live buyers."""

    account_id: str
    revision: int
    """Grows with every change."""
    provider: str
    base_url: str | None
    """Another address than the provider's: a simulator's. Such a verification proves nothing."""
    rules: VerificationRules
    credentials: bytes
    """Sealed by the vault."""
    changed_at: datetime

    def __repr__(self) -> str:
        return f"<VerificationSettings of {self.account_id}: {self.revision}>"


class Facts(Struct, frozen=True, kw_only=True):
    """The proved facts about a person."""

    age_over: int
    """An age in years that the person had reached: one of a few, not the age."""
    document_checked: bool
    document_unexpired: Tri
    expiry_unread: bool = False
    """Whether the document says when it expires, in a form that could not be read."""
    zip_sources: tuple[FactSource, ...]
    """The sources of the addresses whose ZIP code matched the destination."""
    country_assumed: bool = False
    """Whether they are in the United States only as far as the account assumes it."""


def joined_facts(one: Facts, other: Facts) -> Facts:
    """The facts proved by two verifications of the same session, combined."""
    found = {one.document_unexpired, other.document_unexpired}
    unexpired = next(tri for tri in (Tri.PASS, Tri.UNKNOWN, Tri.FAIL) if tri in found)
    return Facts(
        age_over=max(one.age_over, other.age_over),
        document_checked=one.document_checked or other.document_checked,
        document_unexpired=unexpired,
        expiry_unread=one.expiry_unread and other.expiry_unread,
        zip_sources=tuple(sorted({*one.zip_sources, *other.zip_sources})),
        country_assumed=one.country_assumed and other.country_assumed,
    )


def shortfalls(facts: Facts, rules: VerificationRules) -> tuple[Reason, ...]:
    """The requirements that these facts do not meet; empty if all are met."""
    reasons = [*_of_expiry(facts.document_unexpired, rules, unread=facts.expiry_unread)]
    if facts.age_over < rules.minimum_age:
        reasons.append(Reason.AGE_NOT_PROVED)
    assumed = facts.country_assumed and rules.absent_country is not AbsentCountry.US
    if assumed or set(facts.zip_sources).isdisjoint(rules.zip_sources):
        reasons.append(Reason.ADDRESS_NOT_PROVED)
    return tuple(reasons)


def document_reasons(
    document: Document | None, rules: VerificationRules, today: date
) -> tuple[Reason, ...]:
    """The reasons of these rules to refuse a document, or that there is none, on this day."""
    if document is None:
        return _of_expiry(Tri.UNKNOWN, rules, unread=False)
    return _of_expiry(document.unexpired(today), rules, unread=document.expiry_unread)


def _of_expiry(unexpired: Tri, rules: VerificationRules, *, unread: bool) -> tuple[Reason, ...]:
    """The same, by what is known of the expiry."""
    if rules.document_expiry is DocumentExpiry.IGNORED or unexpired is Tri.PASS:
        return ()
    if unexpired is Tri.FAIL:
        return (Reason.DOCUMENT_EXPIRED,)
    if unread or rules.document_expiry is DocumentExpiry.UNEXPIRED:
        return (Reason.DOCUMENT_EXPIRY_UNKNOWN,)
    return ()


_ZIP: Final = re.compile(r"[0-9]{5}(?:-[0-9]{4})?\Z")
_DOCUMENT_ZIP: Final = re.compile(r"(?!00000)([0-9]{5})(?:-|-?[0-9]{4})?\Z")


def is_zip(text: str) -> bool:
    """Whether the text is a ZIP code: five ASCII digits, or ZIP+4."""
    return _ZIP.match(text) is not None


def zip5(text: str) -> str:
    """The first five digits, which are compared."""
    return text[:5]


def document_zip5(text: str) -> str | None:
    """The first five digits of a ZIP code as documents carry it; None if it is invalid.

    Licences hold five digits, ZIP+4, or nine digits in a row, with spaces around, or a hyphen
    before four digits that are missing. Five zeros mean that it is missing.
    """
    match = _DOCUMENT_ZIP.match(text.replace(" ", ""))
    return match[1] if match else None
