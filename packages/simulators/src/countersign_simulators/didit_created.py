"""Accepted requests to create a session at the simulated Didit.

Written from Didit's pages "Create Session" and "API errors".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from countersign_simulators.shapes import (
    Shape,
    by_field,
    each,
    is_day,
    is_flag,
    is_object,
    is_url,
    is_uuid,
    listed,
    nullable,
    one_of,
    text,
)

WORKFLOW: Final = "d1d17000-f10e-4000-8000-000000000000"
_LANGUAGE: Final = text(pattern="[a-z]{2,3}(?:-[A-Z]{2})?")
_CONTACT: Final = Shape(
    {
        "email": text(),
        "send_notification_emails": is_flag,
        "email_lang": _LANGUAGE,
        "phone": text(),
    }
)
_EXPECTED: Final = Shape(
    {
        **each("first_name last_name", text()),
        "date_of_birth": is_day,
        "gender": nullable(one_of("M", "F")),
        **each("nationality country id_country poa_country", text()),
        **each("address identification_number ip_address", text()),
        "expected_document_types": listed(text()),
    }
)
_BODY: Final = Shape(
    {
        "workflow_id": is_uuid,
        "vendor_data": text(),
        "callback": is_url,
        "callback_method": one_of("initiator", "completer", "both"),
        "metadata": lambda value: is_object(value) or isinstance(value, str),
        "language": _LANGUAGE,
        "contact_details": _CONTACT,
        "expected_details": _EXPECTED,
        "portrait_image": text(),
    },
    frozenset({"workflow_id"}),
)
_WORDS: Final = {
    "missing": "This field is required.",
    "unknown": "This field is not known.",
    "invalid": "Enter a valid value.",
}


def mistakes(body: object) -> dict[str, list[str]]:
    """Errors in a body, by field."""
    found = by_field(body, _BODY, _WORDS, whole="non_field_errors")
    if not found and isinstance(body, Mapping) and body["workflow_id"] != WORKFLOW:
        return {"workflow_id": ["There is no published workflow with this id."]}
    return found
