"""What Plaid says of an identity verification, in the words that all providers share.

From Plaid's published description, API version 2020-09-14.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Final

from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import Document, Outcome, ProviderEvidence, ProviderResult, Tri
from countersign.identity.plaid_facts import (
    ABSENT,
    ACCEPTED,
    STEPS,
    Person,
    accepted_document,
    checks_of,
    expired_without_date,
    person_of,
    steps_of,
)
from countersign.identity.reading import (
    Unreadable,
    facts_unknown,
    instant,
    mapping,
    outcome_of_status,
    read_object,
    refused,
    text,
)
from countersign.identity.transport import ProviderReply
from countersign.reason import Reason

NAME: Final = "plaid"

_OUTCOMES: Final[Mapping[str, Outcome]] = {
    "active": Outcome.REQUIRES_INPUT,
    "success": Outcome.VERIFIED,
    "failed": Outcome.FAILED,
    "expired": Outcome.EXPIRED,
    "canceled": Outcome.CANCELED,
    "pending_review": Outcome.PENDING,
}
# Error codes that are about our credentials or about what we sent. Which code answers an unknown
# identifier is not published: what is left of the types INVALID_INPUT and INVALID_REQUEST is that.
_OURS: Final = frozenset(
    {
        "INCOMPATIBLE_API_VERSION",
        "INVALID_API_KEYS",
        "INVALID_BODY",
        "INVALID_HEADERS",
        "INVALID_PRODUCT",
        "INVALID_PRODUCTS",
        "MISSING_FIELDS",
        "PRODUCTS_NOT_ENABLED",
        "PRODUCT_NOT_ENABLED",
        "SANDBOX_ONLY",
        "UNKNOWN_FIELDS",
    }
)
_ABOUT_THE_ID: Final = frozenset({"INVALID_INPUT", "INVALID_REQUEST"})
_LATER: Final = frozenset({"API_ERROR", "RATE_LIMIT_EXCEEDED"})
REASONS: Final[Mapping[str, Reason]] = {
    "accept_tos": Reason.CONSENT_DECLINED,
    "verify_sms": Reason.CONTACT_UNVERIFIED,
    "kyc_check": Reason.DETAILS_MISMATCH,
    "documentary_verification": Reason.DOCUMENT_NOT_ACCEPTED,
    "selfie_check": Reason.SELFIE_NOT_ACCEPTED,
}
"""What a failed step says."""
_SAYS_WHY: Final = frozenset({Outcome.FAILED, Outcome.PENDING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked, and what the account has decided about the answer."""

    session_id: str
    live: bool
    """Plaid's answer does not say which environment it is of: the credentials do."""
    accept_kyc: bool
    """Whether data that a data source confirmed proves a person without any document."""


def translate(
    reply: ProviderReply, asked: Asked, evidence: ProviderEvidence, fingerprint: Fingerprint
) -> ProviderResult:
    """What an answer to `/identity_verification/get` says; any answer whatever has a result."""
    try:
        body = read_object(reply.body)
        request_id = text(body.get("request_id"), "request_id")
        evidence = replace(evidence, request_id=request_id)
        if reply.status != 200:
            return _error(body, reply, asked, evidence)
        return _session(body, asked, evidence, fingerprint)
    except Unreadable as unread:
        return _unreadable(reply, asked, evidence, unread)


def _unreadable(
    reply: ProviderReply, asked: Asked, evidence: ProviderEvidence, unread: Unreadable
) -> ProviderResult:
    outcome = Outcome.INVALID_RESPONSE
    # A gateway's page instead of Plaid's own words can say "later", and nothing else.
    if outcome_of_status(reply.status) is Outcome.PROVIDER_UNAVAILABLE and reply.status != 200:
        outcome = Outcome.PROVIDER_UNAVAILABLE
    reason = "unreadable" if reply.status == 200 else None
    return refused(
        NAME,
        asked.session_id,
        outcome,
        reply,
        evidence=evidence,
        reason_code=reason,
        unread=unread,
    )


def _error(
    body: Mapping[str, Any], reply: ProviderReply, asked: Asked, evidence: ProviderEvidence
) -> ProviderResult:
    kind = text(body.get("error_type"), "error_type")
    code = text(body.get("error_code"), "error_code")
    outcome = outcome_of_status(reply.status)
    if kind in _LATER:
        outcome = Outcome.PROVIDER_UNAVAILABLE
    elif outcome in {Outcome.PROVIDER_REJECTED, Outcome.NOT_FOUND}:
        ours = code is None or code in _OURS or code.startswith("UNAUTHORIZED_")
        about_the_id = kind in _ABOUT_THE_ID and reply.status in {400, 404} and not ours
        if reply.status == 404 and kind is None:
            # Some other server's 404: that says nothing of the session, nor of the credentials.
            outcome = Outcome.INVALID_RESPONSE
        else:
            outcome = Outcome.NOT_FOUND if about_the_id else Outcome.PROVIDER_REJECTED
    return refused(
        NAME, asked.session_id, outcome, reply, evidence=evidence, reason_code=_word(code)
    )


def _word(code: str | None) -> str | None:
    """An error code; not a sentence, in which there could be anything."""
    if code is None or len(code) > 64 or not code.isascii():
        return None
    return code if code.replace("_", "").isalnum() else None


def _session(
    body: Mapping[str, Any], asked: Asked, evidence: ProviderEvidence, fingerprint: Fingerprint
) -> ProviderResult:
    document = accepted_document(body)
    result = ProviderResult(
        provider=NAME,
        session_id=asked.session_id,
        outcome=Outcome.INVALID_RESPONSE,
        live=asked.live,
        evidence=evidence,
    )
    if text(body.get("id"), "id") != asked.session_id:
        return replace(result, reason_code="other_session")
    status = text(body.get("status"), "status") or ""
    result = replace(result, provider_status=_word(status))
    if body.get("redacted_at") is not None or (document or {}).get("redacted_at") is not None:
        return replace(result, outcome=Outcome.REDACTED)
    if status not in _OUTCOMES:
        return replace(result, reason_code="unknown_status")
    steps = steps_of(body)
    outcome = _OUTCOMES[status]
    failed = (name for name, step in steps.items() if STEPS.get(step) is Tri.FAIL)
    why = next(failed, None) if outcome in _SAYS_WHY else None
    result = replace(
        result,
        outcome=outcome,
        reason_code=why,
        reason=REASONS.get(why or ""),
        subject_reference=text(body.get("client_user_id"), "client_user_id"),
    )
    with facts_unknown() as unread:
        result = replace(
            result,
            decided_at=instant(body.get("completed_at"), "completed_at"),
            checks=checks_of(body, steps, document),
        )
    if outcome is not Outcome.VERIFIED:
        return replace(result, unread=tuple(unread))
    why_not = _unproved(body, asked, steps, document)
    if why_not is not None:
        step, _, status = why_not.partition(".")
        fails = STEPS[status] is Tri.FAIL
        return replace(
            result,
            outcome=Outcome.FAILED if fails else Outcome.UNPROVED,
            reason_code=why_not,
            reason=REASONS.get(step) if fails else None,
        )
    by_document = document if steps["documentary_verification"] in ACCEPTED else None
    with facts_unknown() as unread_of_person:
        person = person_of(body, steps, by_document, fingerprint)
        if by_document is not None and expired_without_date(by_document):
            person = replace(person, document=_expired(person.document, result.decided_at))
    unread += [name for name in unread_of_person if name not in unread]
    return _with_person(replace(result, unread=tuple(unread)), person)


def _unproved(
    body: Mapping[str, Any],
    asked: Asked,
    steps: Mapping[str, str],
    document: Mapping[str, Any] | None,
) -> str | None:
    """Why `success` proves nobody: it says that every step of the template is settled, no more."""
    selfie, shown = steps["selfie_check"], steps["documentary_verification"]
    if not {selfie, shown, steps["kyc_check"]} <= STEPS.keys():
        raise Unreadable("steps")
    if selfie not in ACCEPTED | ABSENT:
        return f"selfie_check.{selfie}"
    if shown in ACCEPTED and document is not None:
        section = mapping(body.get("documentary_verification"), "documentary_verification")
        # The section may still say what Plaid found where a reviewer decided the step.
        if text(section.get("status"), "documentary_verification.status") not in ACCEPTED:
            raise Unreadable("documentary_verification.status")
        return None
    if asked.accept_kyc and shown in ABSENT and steps["kyc_check"] == "success":
        return None
    return f"documentary_verification.{shown}"


def _expired(document: Document | None, decided_at: datetime | None) -> Document | None:
    """A document that had expired when Plaid looked at it, if nobody knows on which day.

    The account's rule for expired documents is to judge it, so it gets the latest day that it can
    have been: one that was over everywhere when Plaid decided.
    """
    if document is None:
        return None
    latest = date.min if decided_at is None else decided_at.date() - timedelta(days=2)
    return replace(document, expires_on=latest)


def _with_person(result: ProviderResult, person: Person) -> ProviderResult:
    return replace(
        result,
        given_name=person.given_name,
        family_name=person.family_name,
        date_of_birth=person.date_of_birth,
        date_of_birth_source=person.date_of_birth_source,
        addresses=person.addresses,
        document=person.document,
        document_fingerprint=person.document_fingerprint,
    )
