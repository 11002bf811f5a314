"""Sessions that are created at the simulated Didit: what they are made of, and how they end.

Written from Didit's pages "Create Session", "API errors", "Verification Statuses" and "ID
verification warnings". That a cancelled check and a declined consent leave a session abandoned at
once is an assumption.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from countersign_simulators.base import merged
from countersign_simulators.didit_sessions import WITHOUT_RESULTS, DiditSession
from countersign_simulators.hosted import Created, Outcome, State, person_of
from countersign_simulators.shapes import (
    Shape,
    is_day,
    is_flag,
    is_object,
    is_url,
    is_uuid,
    listed,
    nullable,
    one_of,
    problems,
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
        "first_name": text(),
        "last_name": text(),
        "date_of_birth": is_day,
        "gender": nullable(one_of("M", "F")),
        "nationality": text(),
        "country": text(),
        "id_country": text(),
        "poa_country": text(),
        "address": text(),
        "identification_number": text(),
        "ip_address": text(),
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
UNFINISHED: Final = frozenset({State.CREATED, State.BEGUN})
"""A session that the same buyer is given again."""


def mistakes(body: object) -> dict[str, list[str]]:
    """What is wrong with a body, by field."""
    found = list(problems(body, _BODY))
    if not found and isinstance(body, Mapping) and body["workflow_id"] != WORKFLOW:
        return {"workflow_id": ["There is no published workflow with this id."]}
    return {problem.path or "non_field_errors": [_WORDS[problem.kind]] for problem in found}


_PLAIN: Final[Mapping[str, Any]] = {}
_ABANDONED: Final = {**WITHOUT_RESULTS, "status": "Abandoned"}
_DECISIONS: Final[Mapping[Outcome, Mapping[str, Any]]] = {
    Outcome.DOCUMENT_EXPIRED: {"status": "Declined"},
    Outcome.PHOTO_BLURRED: {"status": "Declined"},
    Outcome.FAILED: {"status": "Declined"},
    Outcome.CONSENT_DECLINED: _ABANDONED,
    Outcome.CANCELLED: _ABANDONED,
    Outcome.EXPIRED: {**WITHOUT_RESULTS, "status": "Expired"},
    Outcome.LATER: {"status": "In Review"},
}
"""How the decision of an outcome differs from an approval; those that are not here are one."""
_UNREAD: Final = ("document_number", "date_of_birth", "expiration_date", "first_name", "last_name")


def _declined(risk: str, **other: Any) -> Mapping[str, Any]:  # noqa: ANN401 - JSON
    warning = {"feature": "ID_VERIFICATION", "risk": risk, "log_type": "error"}
    return {"status": "Declined", "warnings": [warning], **other}


_DOCUMENTS: Final[Mapping[Outcome, Mapping[str, Any]]] = {
    Outcome.DOCUMENT_EXPIRED: _declined("DOCUMENT_EXPIRED"),
    Outcome.PHOTO_BLURRED: _declined(
        "COULD_NOT_RECOGNIZE_DOCUMENT", parsed_address=None, **dict.fromkeys(_UNREAD)
    ),
    Outcome.FAILED: _declined("SCREEN_CAPTURE_DETECTED"),
}
"""The same for its document."""
_NOT_YET: Final = {
    State.CREATED: {**WITHOUT_RESULTS, "status": "Not Started"},
    State.BEGUN: {**WITHOUT_RESULTS, "status": "In Progress"},
}


def session_of(created: Created, now: float) -> DiditSession:
    """A created session as the API returns it; `now` is in Unix seconds."""
    person, outcome = person_of(created, now), created.outcome
    expires = {"expiration_date": person.expires.isoformat()} if person.expires else {}
    decision = _DECISIONS.get(outcome, _PLAIN) if outcome else _NOT_YET[created.state]
    asked = {
        "workflow_id": created.made["workflow_id"],
        "metadata": created.made.get("metadata") or {},
        "expected_details": created.made.get("expected_details") or {},
    }
    return DiditSession(
        session_id=created.session_id,
        number=created.made["number"],
        scenario=outcome or created.state.value,
        shipping_zip=created.zip,
        subject_reference=created.reference,
        personal=person.texts("first", "last", "born", "number", "street"),
        person=person,
        decision=merged(asked, decision),
        document=merged(expires, _DOCUMENTS.get(outcome, _PLAIN) if outcome else _PLAIN),
        created_at=created.created_at,
    )


def described(created: Created, origin: str) -> dict[str, Any]:
    """What the creation returns; `origin` is where the simulator is reached."""
    return {
        "session_id": created.session_id,
        "session_kind": "user",
        "session_number": created.made["number"],
        "session_token": created.page.rpartition("/")[2],
        "url": origin + created.page,
        "vendor_data": created.reference,
        "metadata": created.made.get("metadata"),
        "status": _NOT_YET[created.state]["status"],
        "callback": created.return_url,
        "workflow_id": created.made["workflow_id"],
        "workflow_version": 1,
    }
