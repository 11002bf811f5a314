"""Every field of a VerificationSession and its report, and what it is to us.

As in Stripe's API reference, version 2026-10-28.endive. `*` stands for one name or more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from countersign.identity.fields import Use

FIELDS: Final[Mapping[str, Use]] = {
    "object": Use.CHECKED,
    "id": Use.CHECKED,
    "status": Use.CHECKED,
    "livemode": Use.CHECKED,
    "redaction.status": Use.CHECKED,
    "last_error.code": Use.CHECKED,
    # A sentence for people, which may name what is on the document.
    "last_error.reason": Use.IGNORED,
    "client_reference_id": Use.OPTIONAL,
    "metadata": Use.OPTIONAL,
    # For the browser that goes through the verification; never ours to use or to show.
    "client_secret": Use.IGNORED,
    "url": Use.IGNORED,
    # When it was begun; the report says when it was decided.
    "created": Use.IGNORED,
    # What was asked for. What was done about it stands in the report, check by check.
    "type": Use.IGNORED,
    "options.*": Use.IGNORED,
    "verification_flow": Use.IGNORED,
    # Typed by somebody or filled in beforehand: it proves nothing.
    "provided_details.*": Use.IGNORED,
    # Other objects of the same Stripe account.
    "related_customer": Use.IGNORED,
    "related_customer_account": Use.IGNORED,
    "related_person.*": Use.IGNORED,
    "verified_outputs.dob.*": Use.REQUIRED,
    "verified_outputs.address.postal_code": Use.REQUIRED,
    "verified_outputs.address.country": Use.REQUIRED,
    "verified_outputs.address.line1": Use.OPTIONAL,
    "verified_outputs.address.line2": Use.OPTIONAL,
    "verified_outputs.address.city": Use.OPTIONAL,
    "verified_outputs.address.state": Use.OPTIONAL,
    "verified_outputs.first_name": Use.OPTIONAL,
    "verified_outputs.last_name": Use.OPTIONAL,
    # Neither age nor address is in them.
    "verified_outputs.email": Use.IGNORED,
    "verified_outputs.phone": Use.IGNORED,
    "verified_outputs.id_number": Use.IGNORED,
    "verified_outputs.id_number_type": Use.IGNORED,
    "verified_outputs.sex": Use.IGNORED,
    "verified_outputs.unparsed_sex": Use.IGNORED,
    "verified_outputs.unparsed_place_of_birth": Use.IGNORED,
    "last_verification_report.verification_session": Use.CHECKED,
    "last_verification_report.created": Use.OPTIONAL,
    # Which of them vouches for what is in `verified_outputs`.
    "last_verification_report.document.status": Use.CHECKED,
    "last_verification_report.id_number.status": Use.CHECKED,
    "last_verification_report.document.type": Use.OPTIONAL,
    "last_verification_report.document.issuing_country": Use.OPTIONAL,
    "last_verification_report.document.expiration_date.*": Use.OPTIONAL,
    # Goes into the fingerprint, and no further.
    "last_verification_report.document.number": Use.OPTIONAL,
    # The same facts are in `verified_outputs`, where they are Stripe's final word.
    "last_verification_report.document.address.*": Use.IGNORED,
    "last_verification_report.document.dob.*": Use.IGNORED,
    "last_verification_report.document.first_name": Use.IGNORED,
    "last_verification_report.document.last_name": Use.IGNORED,
    "last_verification_report.document.issued_date.*": Use.IGNORED,
    "last_verification_report.document.sex": Use.IGNORED,
    "last_verification_report.document.unparsed_sex": Use.IGNORED,
    "last_verification_report.document.unparsed_place_of_birth": Use.IGNORED,
    # Pictures: never fetched.
    "last_verification_report.document.files": Use.IGNORED,
    "last_verification_report.selfie.document": Use.IGNORED,
    "last_verification_report.selfie.selfie": Use.IGNORED,
    # Why a check failed; the session's `last_error` tells the same of the last attempt.
    "last_verification_report.document.error.*": Use.IGNORED,
    "last_verification_report.selfie.error.*": Use.IGNORED,
    "last_verification_report.email.error.*": Use.IGNORED,
    "last_verification_report.phone.error.*": Use.IGNORED,
    "last_verification_report.id_number.error.*": Use.IGNORED,
    # Checks kept as evidence of what was done.
    "last_verification_report.selfie.status": Use.OPTIONAL,
    "last_verification_report.email.status": Use.OPTIONAL,
    "last_verification_report.phone.status": Use.OPTIONAL,
    "last_verification_report.email.email": Use.IGNORED,
    "last_verification_report.phone.phone": Use.IGNORED,
    "last_verification_report.id_number.dob.*": Use.IGNORED,
    "last_verification_report.id_number.first_name": Use.IGNORED,
    "last_verification_report.id_number.last_name": Use.IGNORED,
    "last_verification_report.id_number.id_number": Use.IGNORED,
    "last_verification_report.id_number.id_number_type": Use.IGNORED,
    # The session says these of itself.
    "last_verification_report.id": Use.IGNORED,
    "last_verification_report.object": Use.IGNORED,
    "last_verification_report.livemode": Use.IGNORED,
    "last_verification_report.client_reference_id": Use.IGNORED,
    "last_verification_report.type": Use.IGNORED,
    "last_verification_report.options.*": Use.IGNORED,
    "last_verification_report.verification_flow": Use.IGNORED,
}
