"""Every field of Plaid's answer, and what it is to us.

`[]` stands for each item of a list; `.*` at the end for everything below.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from countersign.identity.fields import Use

_DOCUMENT: Final = "documentary_verification.documents[]"
_READ: Final = f"{_DOCUMENT}.extracted_data"
_ANALYSIS: Final = f"{_DOCUMENT}.analysis"

FIELDS: Final[Mapping[str, Use]] = {
    "id": Use.CHECKED,
    "client_user_id": Use.CHECKED,
    "status": Use.CHECKED,
    "redacted_at": Use.CHECKED,
    "completed_at": Use.OPTIONAL,
    # Kept with the evidence, to name the answer to Plaid.
    "request_id": Use.OPTIONAL,
    # Links and the other ends of them: nothing of the person.
    "created_at": Use.IGNORED,
    "previous_attempt_id": Use.IGNORED,
    "shareable_url": Use.IGNORED,
    "template.*": Use.IGNORED,
    # Typed by the person or sent in advance: taken only where `kyc_check` has it matched.
    "user.date_of_birth": Use.OPTIONAL,
    "user.name.given_name": Use.OPTIONAL,
    "user.name.family_name": Use.OPTIONAL,
    "user.address.*": Use.OPTIONAL,
    # Ways to reach a person, and a number that is not of the document.
    "user.phone_number": Use.IGNORED,
    "user.email_address": Use.IGNORED,
    "user.ip_address": Use.IGNORED,
    "user.id_number.*": Use.IGNORED,
    # Three of them decide what the status proves; all are kept as checks.
    "steps.documentary_verification": Use.CHECKED,
    "steps.kyc_check": Use.CHECKED,
    "steps.selfie_check": Use.CHECKED,
    "steps.accept_tos": Use.OPTIONAL,
    "steps.verify_sms": Use.OPTIONAL,
    "steps.watchlist_screening": Use.OPTIONAL,
    "steps.risk_check": Use.OPTIONAL,
    # The document.
    "documentary_verification.status": Use.CHECKED,
    f"{_DOCUMENT}.status": Use.CHECKED,
    f"{_DOCUMENT}.attempt": Use.CHECKED,
    f"{_DOCUMENT}.redacted_at": Use.CHECKED,
    f"{_READ}.date_of_birth": Use.REQUIRED,
    f"{_READ}.address.postal_code": Use.REQUIRED,
    f"{_READ}.address.country": Use.REQUIRED,
    f"{_READ}.expiration_date": Use.REQUIRED,
    f"{_READ}.address.street": Use.OPTIONAL,
    f"{_READ}.address.city": Use.OPTIONAL,
    f"{_READ}.address.region": Use.OPTIONAL,
    f"{_READ}.name.given_name": Use.OPTIONAL,
    f"{_READ}.name.family_name": Use.OPTIONAL,
    # Into the fingerprint; the number is dropped then.
    f"{_READ}.id_number": Use.OPTIONAL,
    f"{_READ}.category": Use.OPTIONAL,
    f"{_READ}.issuing_country": Use.OPTIONAL,
    f"{_READ}.issuing_region": Use.OPTIONAL,
    f"{_READ}.issue_date": Use.IGNORED,
    f"{_ANALYSIS}.authenticity": Use.OPTIONAL,
    f"{_ANALYSIS}.aamva_verification.is_verified": Use.OPTIONAL,
    # Whether the document is that of the person typed, and whether it was found expired.
    f"{_ANALYSIS}.extracted_data.name": Use.CHECKED,
    f"{_ANALYSIS}.extracted_data.date_of_birth": Use.CHECKED,
    f"{_ANALYSIS}.extracted_data.expiration_date": Use.CHECKED,
    f"{_ANALYSIS}.extracted_data.issuing_country": Use.IGNORED,
    # How Plaid came to its verdict: the verdict itself is the document's status.
    f"{_ANALYSIS}.aamva_verification.*": Use.IGNORED,
    f"{_ANALYSIS}.fraud_analysis_details.*": Use.IGNORED,
    f"{_ANALYSIS}.human_review.*": Use.IGNORED,
    f"{_ANALYSIS}.image_quality": Use.IGNORED,
    f"{_ANALYSIS}.image_quality_details.*": Use.IGNORED,
    # Links that open for a minute to whoever has them.
    f"{_DOCUMENT}.images.*": Use.IGNORED,
    # What was matched against a data source.
    "kyc_check.status": Use.CHECKED,
    "kyc_check.name.summary": Use.CHECKED,
    "kyc_check.date_of_birth.summary": Use.CHECKED,
    "kyc_check.address.summary": Use.CHECKED,
    "kyc_check.address.postal_code": Use.CHECKED,
    # Newer than the description: of the person whose number was typed.
    "kyc_check.id_number.ssa_verification.is_deceased": Use.CHECKED,
    "kyc_check.id_number.ssa_verification.match": Use.IGNORED,
    "kyc_check.id_number.summary": Use.OPTIONAL,
    "kyc_check.phone_number.summary": Use.OPTIONAL,
    # Parts of a summary, and what kind of address it is.
    "kyc_check.name.given_name": Use.IGNORED,
    "kyc_check.name.family_name": Use.IGNORED,
    "kyc_check.date_of_birth.day": Use.IGNORED,
    "kyc_check.date_of_birth.month": Use.IGNORED,
    "kyc_check.date_of_birth.year": Use.IGNORED,
    "kyc_check.phone_number.area_code": Use.IGNORED,
    "kyc_check.address.street": Use.IGNORED,
    "kyc_check.address.city": Use.IGNORED,
    "kyc_check.address.region": Use.IGNORED,
    "kyc_check.address.po_box": Use.IGNORED,
    "kyc_check.address.type": Use.IGNORED,
    "kyc_check.address.international_details.*": Use.IGNORED,
    # The status of the step says it; the rest is a face, a device, a telephone, a score.
    "selfie_check.*": Use.IGNORED,
    "risk_check.*": Use.IGNORED,
    "verify_sms.*": Use.IGNORED,
    "latest_scored_protect_event.*": Use.IGNORED,
    # Links to Plaid's other products.
    "watchlist_screening_id": Use.IGNORED,
    "beacon_user_id": Use.IGNORED,
    "user_id": Use.IGNORED,
}
