"""Accepted requests to create a session at the simulated Veriff.

Written from Veriff's pages "/v1/sessions" and "Some troubleshooting codes (table)", and "Is it
possible to set a certain language" in its help centre.
"""

from __future__ import annotations

from typing import Any, Final

from countersign_simulators.shapes import (
    Problem,
    Shape,
    each,
    is_day,
    is_flag,
    is_safe_url,
    is_time,
    is_uuid,
    listed,
    one_of,
    problems,
    text,
)

_PERSON: Final = Shape(
    {
        **each("firstName lastName idNumber phoneNumber", text()),
        "gender": one_of("M", "MALE", "F", "FEMALE"),
        "dateOfBirth": is_day,
        "email": text(),
        "maritalStatus": one_of("SINGLE", "MARRIED", "DIVORCED", "WIDOWED"),
        "isDeceased": is_flag,
    }
)
_DOCUMENT: Final = Shape(
    {
        "number": text(pattern="[a-zA-Z0-9]*"),
        "country": text(pattern="[A-Z]{2}"),
        "type": one_of("ID_CARD", "PASSPORT", "DRIVERS_LICENSE", "RESIDENCE_PERMIT"),
        "idCardType": one_of("CC", "CE", "TI"),
        "firstIssue": is_day,
    }
)
_ACCEPTABLE: Final = Shape({"name": text()}, frozenset({"name"}))
_CONSENT: Final = Shape(
    {"type": one_of("ine", "bipa", "aadhaar"), "approved": is_flag},
    frozenset({"type", "approved"}),
)
_VERIFICATION: Final = Shape(
    {
        "callback": is_safe_url,
        "person": _PERSON,
        "document": _DOCUMENT,
        "address": Shape({"fullAddress": text()}),
        "proofOfAddress": Shape({"acceptableTypes": listed(_ACCEPTABLE)}),
        "vendorData": text(1000),
        "endUserId": is_uuid,
        "consents": listed(_CONSENT),
        "lang": text(pattern="[a-z]{2}"),
        "timestamp": is_time,
    }
)
_BODY: Final = Shape({"verification": _VERIFICATION}, frozenset({"verification"}))
_SEMANTIC: Final = "We require only non-semantic data to be submitted"


def refusal(body: object) -> tuple[str, str] | None:
    """Code and message for the first thing that is wrong with a body, if anything."""
    wrong = next(problems(body, _BODY), None)
    return None if wrong is None else _words(wrong, body)


def _words(wrong: Problem, body: Any) -> tuple[str, str]:  # noqa: ANN401 - any JSON
    if wrong.kind == "missing" or wrong.path == "":
        return "1102", "Mandatory parameters are missing from the request."
    if wrong == Problem("verification.callback", "invalid"):
        return "1302", "Only HTTPS return URLs are allowed."
    if wrong == Problem("verification.vendorData", "invalid"):
        if isinstance(body["verification"]["vendorData"], str):
            return "1500", f"vendorData field cannot be more than 1000 symbols. {_SEMANTIC}"
        return "1501", f"vendorData must be a string. {_SEMANTIC}"
    return "1104", "Request includes invalid parameters."
