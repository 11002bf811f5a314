"""Sessions that are created at the simulated Veriff: what they are made of, and how they end.

Written from Veriff's pages "/v1/sessions", "Some troubleshooting codes (table)", "Verification
session decision codes (table)", "Verification session status codes (table)" and "Redirection
Guide", and "Is it possible to set a certain language" in its help centre. That a declined consent
leaves a session abandoned is an assumption.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from zlib import crc32

from countersign_simulators.hosted import Created, Outcome, State, person_of
from countersign_simulators.shapes import (
    Problem,
    Shape,
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
from countersign_simulators.veriff_sessions import APPROVED, VeriffSession, without_data

_PERSON: Final = Shape(
    {
        "firstName": text(),
        "lastName": text(),
        "idNumber": text(),
        "phoneNumber": text(),
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
RETRIED: Final = frozenset({Outcome.DOCUMENT_EXPIRED, Outcome.PHOTO_BLURRED})
"""After these the buyer may repeat the check in the same session."""


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


_ABANDONED: Final = without_data("abandoned", 9104, None)
_DECISIONS: Final[Mapping[Outcome, Mapping[str, Any]]] = {
    Outcome.DOCUMENT_EXPIRED: {
        "status": "resubmission_requested",
        "code": 9103,
        "reasonCode": 207,
        "reason": "Document expired",
    },
    Outcome.PHOTO_BLURRED: without_data("resubmission_requested", 9103, 204),
    Outcome.CONSENT_DECLINED: _ABANDONED,
    Outcome.CANCELLED: _ABANDONED,
    Outcome.EXPIRED: without_data("expired", 9104, None),
    Outcome.FAILED: {"status": "declined", "code": 9102, "reasonCode": 106, "reason": "Fraud"},
}
"""How an outcome differs from an approval; those that are not here are one."""


def session_of(created: Created, now: float) -> VeriffSession:
    """A created session as the API returns it; `now` is in Unix seconds."""
    person = person_of(created, now)
    ended = created.state is State.ENDED and created.outcome is not None
    decision = _DECISIONS.get(created.outcome, APPROVED) if ended and created.outcome else None
    return VeriffSession(
        session_id=created.session_id,
        number=crc32(created.session_id.encode()),
        scenario=created.outcome or created.state.value,
        shipping_zip=created.zip,
        subject_reference=created.reference,
        end_user=created.made.get("endUserId"),
        personal=person.texts("first", "last", "born", "number", "street"),
        person=person,
        decision=decision,
        decided_at=created.changed_at,
        submitted=created.state in {State.PENDING, State.ENDED},
    )
