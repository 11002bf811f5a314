"""What a verification proved, without anything personal, and what rules ask for beyond it."""

from __future__ import annotations

from msgspec import Struct

from countersign.buyers.rules import AbsentCountry, DocumentExpiry, VerificationRules
from countersign.identity.model import Source, Tri
from countersign.reason import Reason


class Facts(Struct, frozen=True, kw_only=True):
    """What was proved of a person."""

    age_over: int
    """An age in years that the person had reached: one of a few, not the age."""
    document_checked: bool
    document_unexpired: Tri
    zip_sources: tuple[Source, ...]
    """What vouches for the addresses whose ZIP code was the one shipped to."""
    country_assumed: bool = False
    """Whether they are in the United States only as far as the account assumes it."""


def joined_facts(one: Facts, other: Facts) -> Facts:
    """What two verifications of the same session proved of a person, taken together."""
    found = {one.document_unexpired, other.document_unexpired}
    unexpired = next(tri for tri in (Tri.PASS, Tri.UNKNOWN, Tri.FAIL) if tri in found)
    return Facts(
        age_over=max(one.age_over, other.age_over),
        document_checked=one.document_checked or other.document_checked,
        document_unexpired=unexpired,
        zip_sources=tuple(sorted({*one.zip_sources, *other.zip_sources})),
        country_assumed=one.country_assumed and other.country_assumed,
    )


def shortfalls(facts: Facts, rules: VerificationRules) -> tuple[Reason, ...]:
    """What these rules ask for beyond what was proved; empty if they are satisfied."""
    reasons = []
    if facts.age_over < rules.minimum_age:
        reasons.append(Reason.AGE_NOT_PROVED)
    assumed = facts.country_assumed and rules.absent_country is not AbsentCountry.US
    if assumed or set(facts.zip_sources).isdisjoint(rules.zip_sources):
        reasons.append(Reason.ADDRESS_NOT_PROVED)
    return (*document_reasons(facts.document_unexpired, rules), *reasons)


def document_reasons(unexpired: Tri, rules: VerificationRules) -> tuple[Reason, ...]:
    """What the rules have against a document."""
    if rules.document_expiry is DocumentExpiry.IGNORED or unexpired is Tri.PASS:
        return ()
    if unexpired is Tri.FAIL:
        return (Reason.DOCUMENT_EXPIRED,)
    if rules.document_expiry is DocumentExpiry.UNEXPIRED:
        return (Reason.DOCUMENT_EXPIRY_UNKNOWN,)
    return ()
