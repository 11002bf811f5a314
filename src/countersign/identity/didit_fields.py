"""Every field of Didit's decision, and what it is to us."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from countersign.identity.fields import Use

_PARSED: Final = {
    "street_1": Use.OPTIONAL,
    "street_2": Use.OPTIONAL,
    "city": Use.OPTIONAL,
    "region": Use.OPTIONAL,
    "country": Use.OPTIONAL,
    "postal_code": Use.REQUIRED,
    "is_verified": Use.CHECKED,
    # What a map service made of it.
    "address_type": Use.IGNORED,
    "document_location.*": Use.IGNORED,
    "raw_results.*": Use.IGNORED,
}

FIELDS: Final[Mapping[str, Use]] = {
    "session_id": Use.CHECKED,
    "session_kind": Use.CHECKED,
    "status": Use.CHECKED,
    "environment": Use.CHECKED,
    "vendor_data": Use.OPTIONAL,
    "id_verifications[].status": Use.CHECKED,
    "id_verifications[].document_type": Use.REQUIRED,
    "id_verifications[].document_number": Use.OPTIONAL,
    # A country of three letters, not a state of the US.
    "id_verifications[].issuing_state": Use.OPTIONAL,
    "id_verifications[].expiration_date": Use.OPTIONAL,
    "id_verifications[].first_name": Use.OPTIONAL,
    "id_verifications[].last_name": Use.OPTIONAL,
    "id_verifications[].date_of_birth": Use.REQUIRED,
    **{f"id_verifications[].parsed_address.{name}": use for name, use in _PARSED.items()},
    "id_verifications[].warnings[].risk": Use.OPTIONAL,
    "liveness_checks[].status": Use.OPTIONAL,
    "face_matches[].status": Use.OPTIONAL,
    "database_validations[].status": Use.OPTIONAL,
    "poa_verifications[].status": Use.CHECKED,
    "poa_verifications[].issuing_state": Use.OPTIONAL,
    **{f"poa_verifications[].poa_parsed_address.{name}": use for name, use in _PARSED.items()},
    # Disagrees with the date of birth in Didit's own examples.
    "id_verifications[].age": Use.IGNORED,
    # One line without parts: a ZIP code cannot be told from a house number in it.
    "id_verifications[].address": Use.IGNORED,
    "id_verifications[].formatted_address": Use.IGNORED,
    "poa_verifications[].poa_address": Use.IGNORED,
    "poa_verifications[].poa_formatted_address": Use.IGNORED,
    # Whether the proof is of the person on the document: the status does not say it.
    "poa_verifications[].name_match_score_id_verification": Use.CHECKED,
    "poa_verifications[].warnings[].risk": Use.CHECKED,
    # Didit has weighed it in the status of the proof of address.
    "poa_verifications[].issue_date": Use.IGNORED,
    # Compared with what we said before, which proves nothing.
    "poa_verifications[].name_match_score_expected_details": Use.IGNORED,
    # About the person or the pictures, but no condition of a purchase.
    "id_verifications[].*": Use.IGNORED,
    "liveness_checks[].*": Use.IGNORED,
    "face_matches[].*": Use.IGNORED,
    "poa_verifications[].*": Use.IGNORED,
    # A match tells of what was sent in, and not in a way that is described well enough to trust.
    "database_validations[].*": Use.IGNORED,
    "ip_analyses[].*": Use.IGNORED,
    # What we or the buyer said before: no proof.
    "expected_details.*": Use.IGNORED,
    "metadata.*": Use.IGNORED,
    # Of the making of the session: it was not decided before, and when, no member tells.
    "created_at": Use.OPTIONAL,
    # How the operator has set up Didit.
    "session_number": Use.IGNORED,
    "workflow_id": Use.IGNORED,
    "features[]": Use.IGNORED,
}
