"""Provider results and rules for the tests of the decision."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any, Final

from countersign.core.buyers.decision import SessionDecision, decide
from countersign.core.buyers.rules import VerificationRules
from countersign.identity.model import Address, Document, FactSource, Finding, ProviderResult

NOW: Final = datetime(2026, 11, 20, 21, 31, tzinfo=UTC)
ADULT: Final = date(1980, 5, 17)
ZIP: Final = "94110"


def address(
    postal_code: str | None = ZIP,
    source: FactSource = FactSource.DOCUMENT,
    country: str | None = "US",
) -> Address:
    """An address that a source has proved."""
    return Address(source=source, postal_code=postal_code, country=country)


def document(expires_on: date | None = date(2031, 1, 31)) -> Document:
    """A driving licence."""
    return Document(
        type="driving_license", issuing_country="US", issuing_region="CA", expires_on=expires_on
    )


def result(**different: Any) -> ProviderResult:  # noqa: ANN401 - the fields of a result
    """A provider's result for a faultless adult."""
    fields: dict[str, Any] = {
        "provider": "stripe",
        "session_id": "vs_1",
        "outcome": Finding.VERIFIED,
        "live": True,
        "subject_reference": "buyer-1",
        "date_of_birth": ADULT,
        "date_of_birth_source": FactSource.DOCUMENT,
        "addresses": (address(),),
        "document": document(),
    }
    return ProviderResult(**fields | different)


def decided(
    said: ProviderResult | None = None,
    rules: VerificationRules | None = None,
    first_verified_at: datetime | None = None,
    **different: Any,  # noqa: ANN401 - the arguments of decide
) -> SessionDecision:
    """Judge a result by rules; the plain ones unless given."""
    arguments: dict[str, Any] = {
        "shipping_zip": ZIP,
        "subject_reference": "buyer-1",
        "now": NOW,
    }
    rules = rules or VerificationRules()
    decision = decide(said or result(), rules, **arguments | different)
    if first_verified_at is None:
        return decision
    return decision.since(first_verified_at, rules)
