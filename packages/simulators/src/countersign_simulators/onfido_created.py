"""Accepted requests to create an applicant or a run at the simulated Onfido.

Written from the published description (onfido-openapi-spec, `applicant_builder` and
`workflow_run_builder`).
"""

from __future__ import annotations

from typing import Final

from countersign_simulators.shapes import (
    Shape,
    by_field,
    each,
    is_day,
    is_flag,
    is_object,
    is_time,
    is_url,
    is_uuid,
    listed,
    nullable,
    one_of,
    text,
)

WORKFLOW: Final = "f10f10f1-0000-4000-8000-000000000001"
_NAME: Final = text(pattern=r'[^!#$%*=<>;{}"]+')
_COUNTRY: Final = text(pattern="[A-Z]{3}")
_ADDRESS: Final = Shape(
    {
        **each("flat_number building_number building_name street sub_street town postcode", text()),
        "country": _COUNTRY,
        **each("state line1 line2 line3", text()),
    },
    frozenset({"postcode", "country"}),
)
_CONSENT: Final = Shape(
    {
        "name": one_of("privacy_notices_read", "ssn_verification", "phone_number_verification"),
        "granted": is_flag,
    },
    frozenset({"name", "granted"}),
)
_ID_NUMBER: Final = Shape({"type": text(), "value": text(), "state_code": text(2)})
APPLICANT: Final = Shape(
    {
        **each("first_name last_name", _NAME),
        "email": text(),
        "dob": is_day,
        "id_numbers": listed(_ID_NUMBER),
        "phone_number": text(),
        "consents": listed(_CONSENT),
        "address": _ADDRESS,
        "location": Shape({"ip_address": text(), "country_of_residence": _COUNTRY}),
    },
    frozenset({"first_name", "last_name"}),
)
_LINK: Final = Shape(
    {
        **each("completed_redirect_url expired_redirect_url", nullable(is_url)),
        "expires_at": nullable(is_time),
        "language": nullable(one_of("en_US", "de_DE", "es_ES", "fr_FR", "it_IT", "pt_PT", "nl_NL")),
    }
)
RUN: Final = Shape(
    {
        **each("applicant_id workflow_id", is_uuid),
        "tags": nullable(listed(text(128, pattern=r"[\s\S]+"), 30)),
        "customer_user_id": text(256),
        "link": _LINK,
        "custom_data": is_object,
    },
    frozenset({"applicant_id", "workflow_id"}),
)
_WORDS: Final = {
    "missing": "can't be blank",
    "unknown": "is not permitted",
    "invalid": "is invalid",
}


def mistakes(body: object, shape: Shape) -> dict[str, list[str]]:
    """Errors in a body, by field."""
    return by_field(body, shape, _WORDS, whole="body")
