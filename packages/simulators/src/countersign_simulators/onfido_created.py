"""Applicants and runs that are created at the simulated Onfido, and how such a run ends.

Written from the published description (onfido-openapi-spec, `applicant_builder` and
`workflow_run_builder`) and the guide "Document report: suggested client actions". Which reasons a
run has is up to a workflow; that a run of which the link is closed, declined or expired is
abandoned, is an assumption.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from countersign_simulators.hosted import Created, Outcome, person_of
from countersign_simulators.onfido_sessions import Check, Run
from countersign_simulators.shapes import (
    Shape,
    is_day,
    is_object,
    is_time,
    is_url,
    is_uuid,
    listed,
    nullable,
    one_of,
    problems,
    text,
)

WORKFLOW: Final = "f10f10f1-0000-4000-8000-000000000001"
_NAME: Final = text(pattern=r'[^!#$%*=<>;{}"]+')
_COUNTRY: Final = text(pattern="[A-Z]{3}")
_ADDRESS: Final = Shape(
    {
        "flat_number": text(),
        "building_number": text(),
        "building_name": text(),
        "street": text(),
        "sub_street": text(),
        "town": text(),
        "postcode": text(),
        "country": _COUNTRY,
        "state": text(),
        "line1": text(),
        "line2": text(),
        "line3": text(),
    },
    frozenset({"postcode", "country"}),
)
_CONSENT: Final = Shape(
    {
        "name": one_of("privacy_notices_read", "ssn_verification", "phone_number_verification"),
        "granted": lambda value: isinstance(value, bool),
    },
    frozenset({"name", "granted"}),
)
_ID_NUMBER: Final = Shape({"type": text(), "value": text(), "state_code": text(2)})
APPLICANT: Final = Shape(
    {
        "first_name": _NAME,
        "last_name": _NAME,
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
        "completed_redirect_url": nullable(is_url),
        "expired_redirect_url": nullable(is_url),
        "expires_at": nullable(is_time),
        "language": nullable(one_of("en_US", "de_DE", "es_ES", "fr_FR", "it_IT", "pt_PT", "nl_NL")),
    }
)
RUN: Final = Shape(
    {
        "applicant_id": is_uuid,
        "workflow_id": is_uuid,
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
    """What is wrong with a body, by field."""
    found = problems(body, shape)
    return {problem.path or "body": [_WORDS[problem.kind]] for problem in found}


_PLAIN: Final[Mapping[str, Any]] = {}
_STATUS: Final = {
    Outcome.DOCUMENT_EXPIRED: "declined",
    Outcome.PHOTO_BLURRED: "declined",
    Outcome.FAILED: "declined",
    Outcome.CONSENT_DECLINED: "abandoned",
    Outcome.CANCELLED: "abandoned",
    Outcome.EXPIRED: "abandoned",
    Outcome.LATER: "processing",
}
"""The status of a run by its outcome; those that are not here are approved."""
ABANDONED: Final = frozenset(
    outcome for outcome, status in _STATUS.items() if status == "abandoned"
)
"""The interactive part is not completed, and its link leads nowhere any more."""


def _consider(sub_result: str, breakdown: str, part: str, result: str) -> Mapping[str, Any]:
    found = {"result": "consider", "breakdown": {part: {"result": result, "properties": {}}}}
    return {"result": "consider", "sub_result": sub_result, "breakdown": {breakdown: found}}


_REPORTS: Final[Mapping[Outcome, Mapping[str, Any]]] = {
    Outcome.DOCUMENT_EXPIRED: _consider(
        "caution", "data_validation", "document_expiration", "consider"
    ),
    Outcome.PHOTO_BLURRED: {
        **_consider("rejected", "image_integrity", "image_quality", "unidentified"),
        "properties": ...,
    },
    Outcome.FAILED: _consider("suspected", "visual_authenticity", "fonts", "consider"),
}
"""How the document report of an outcome differs from a clear one."""
_REASONS: Final = {
    Outcome.DOCUMENT_EXPIRED: ["DOCUMENT_EXPIRED"],
    Outcome.PHOTO_BLURRED: ["IMAGE_QUALITY"],
    Outcome.FAILED: ["DOCUMENT_FRAUD"],
}


def _checks(created: Created, now: float) -> tuple[Check, ...]:
    """The document check, once the buyer has shown a document."""
    outcome = created.outcome
    if outcome in {None, Outcome.LATER} or outcome in ABANDONED:
        return ()
    person = replace(person_of(created, now), country="USA")
    changes = _REPORTS.get(outcome, _PLAIN) if outcome else _PLAIN
    return (Check(person=person, changes=changes),)


_REPEATED: Final = ("applicant_id", "workflow_id", "tags", "link", "sdk_token")


def run_of(created: Created, now: float) -> Run:
    """A created run as the API returns it; `now` is in Unix seconds."""
    checks, outcome = _checks(created, now), created.outcome
    status = _STATUS.get(outcome, "approved") if outcome else "awaiting_input"
    changes = {
        **{name: created.made[name] for name in _REPEATED if name in created.made},
        "status": status,
        "reasons": _REASONS.get(outcome, []) if outcome else [],
        "customer_user_id": ... if created.reference is None else created.reference,
    }
    fields = ("first", "last", "born", "number", "street")
    return Run(
        session_id=created.session_id,
        number=created.made["number"],
        scenario=outcome or created.state.value,
        shipping_zip=created.zip,
        subject_reference=created.reference,
        personal=tuple(text for check in checks for text in check.person.texts(*fields)),
        checks=checks,
        changes=changes,
        environment=created.made["environment"],
        between=(created.created_at, created.changed_at),
    )
