"""Stripe Identity: from the bytes of a VerificationSession to the neutral result.

What a VerificationSession is: Stripe's API reference, version 2026-10-28.endive, and "Access
verification results" for which key may read what.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import Outcome, ProviderEvidence, ProviderResult
from countersign.identity.reading import (
    Unreadable,
    facts_unknown,
    flag,
    mapping,
    outcome_of_status,
    parts_date,
    read_object,
    refused,
    text,
)
from countersign.identity.stripe_person import with_person, word
from countersign.identity.transport import ProviderReply
from countersign.reason import Reason

NAME: Final = "stripe"

_OUTCOMES: Final[Mapping[str, Outcome]] = {
    "verified": Outcome.VERIFIED,
    "processing": Outcome.PENDING,
    "requires_input": Outcome.REQUIRES_INPUT,
    "canceled": Outcome.CANCELED,
}
REASONS: Final[Mapping[str, Reason]] = {
    "consent_declined": Reason.CONSENT_DECLINED,
    "country_not_supported": Reason.DOCUMENT_UNSUPPORTED,
    "device_not_supported": Reason.DEVICE_UNSUPPORTED,
    "document_expired": Reason.DOCUMENT_EXPIRED,
    "document_type_not_supported": Reason.DOCUMENT_UNSUPPORTED,
    "document_unverified_other": Reason.DOCUMENT_NOT_ACCEPTED,
    "email_unverified_other": Reason.CONTACT_UNVERIFIED,
    "email_verification_declined": Reason.CONTACT_UNVERIFIED,
    "id_number_insufficient_document_data": Reason.DOCUMENT_UNREADABLE,
    "id_number_mismatch": Reason.DETAILS_MISMATCH,
    "id_number_unverified_other": Reason.DETAILS_MISMATCH,
    "phone_unverified_other": Reason.CONTACT_UNVERIFIED,
    "phone_verification_declined": Reason.CONTACT_UNVERIFIED,
    "selfie_document_missing_photo": Reason.DOCUMENT_UNSUPPORTED,
    "selfie_face_mismatch": Reason.SELFIE_MISMATCH,
    "selfie_manipulated": Reason.SELFIE_NOT_ACCEPTED,
    "selfie_unverified_other": Reason.SELFIE_NOT_ACCEPTED,
    "under_supported_age": Reason.AGE_BELOW_MINIMUM,
}
"""What the codes of `last_error` say; `abandoned` says no more than that there is no result."""
_REDACTED: Final = "[redacted]"
_REDACTED_BIRTH: Final = date(1, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What we know of our side of the question."""

    session_id: str
    failing_errors: Collection[str]
    """The codes of `last_error` that count as a final no."""
    subject_metadata_key: str | None
    """Where the reference to the buyer stands, if not in `client_reference_id`."""


def translate(
    reply: ProviderReply, asked: Asked, evidence: ProviderEvidence, fingerprint: Fingerprint
) -> ProviderResult:
    """The result of any answer of `GET /v1/identity/verification_sessions/{id}`."""
    if reply.status != 200:
        return _error(reply, asked, evidence)
    try:
        return _session(read_object(reply.body), asked, evidence, fingerprint)
    except Unreadable as unread:
        return refused(
            NAME,
            asked.session_id,
            Outcome.INVALID_RESPONSE,
            reply,
            evidence=evidence,
            reason_code="unreadable",
            unread=unread,
        )


def withholds_sensitive(body: bytes) -> bool:
    """Whether a verified session came without members that were asked for.

    Stripe leaves them out for a restricted key without an allow-list 48 hours after the
    verification; a document that has none shows null instead.
    """
    try:
        session = read_object(body)
        if session.get("status") != "verified":
            return False
        outputs = mapping(session.get("verified_outputs"), "verified_outputs")
        document = mapping(_report(session).get("document"), "document")
    except Unreadable:
        return False
    return "dob" not in outputs or (bool(document) and "expiration_date" not in document)


def _error(reply: ProviderReply, asked: Asked, evidence: ProviderEvidence) -> ProviderResult:
    code = _error_code(reply.body)
    outcome = outcome_of_status(reply.status)
    if outcome is Outcome.NOT_FOUND and code != "resource_missing":
        # Some other server's 404, or a wrong path: that says nothing of the session.
        outcome = Outcome.INVALID_RESPONSE
    return refused(NAME, asked.session_id, outcome, reply, evidence=evidence, reason_code=code)


def _error_code(body: bytes) -> str | None:
    """`error.code`, never `error.message`, which names the session."""
    try:
        return word(mapping(read_object(body).get("error"), "error").get("code"))
    except Unreadable:
        return None


def _session(
    session: Mapping[str, Any],
    asked: Asked,
    evidence: ProviderEvidence,
    fingerprint: Fingerprint,
) -> ProviderResult:
    if session.get("object") != "identity.verification_session":
        raise Unreadable("object")
    if session.get("id") != asked.session_id:
        raise Unreadable("id")
    live = flag(session.get("livemode"), "livemode")
    if live is None:
        raise Unreadable("livemode")
    status = text(session.get("status"), "status")
    report = _report(session)
    # Before the status: a redacted session still says `verified`.
    outcome = Outcome.REDACTED if _redacted(session, report) else _outcome(session, status, asked)
    code = word(_last_error(session).get("code"))
    result = ProviderResult(
        provider=NAME,
        session_id=asked.session_id,
        outcome=outcome,
        provider_status=word(status),
        reason_code="unknown_status" if outcome is Outcome.INVALID_RESPONSE else code,
        reason=REASONS.get(code or ""),
        live=live,
        subject_reference=_subject(session, asked),
        evidence=evidence,
    )
    if outcome is not Outcome.VERIFIED:
        return result
    if report and report.get("verification_session") != asked.session_id:
        raise Unreadable("last_verification_report.verification_session")
    with facts_unknown() as unread:
        result = with_person(result, session, report, fingerprint)
    return replace(result, unread=tuple(unread))


def _redacted(session: Mapping[str, Any], report: Mapping[str, Any]) -> bool:
    """Whether Stripe has redacted it, or is about to.

    The strings count too, so that a session is recognised while `redaction` lags behind or is
    withheld.
    """
    if session.get("redaction") is not None:
        return True
    with facts_unknown():
        outputs = mapping(session.get("verified_outputs"), "verified_outputs")
        if parts_date(outputs.get("dob"), "verified_outputs.dob") == _REDACTED_BIRTH:
            return True
    return _says_redacted(outputs) or _says_redacted(report)


def _says_redacted(value: object) -> bool:
    if isinstance(value, dict):
        return any(_says_redacted(member) for member in value.values())
    return value == _REDACTED


def _outcome(session: Mapping[str, Any], status: str | None, asked: Asked) -> Outcome:
    outcome = _OUTCOMES.get(status or "", Outcome.INVALID_RESPONSE)
    if outcome is Outcome.REQUIRES_INPUT:
        code = _last_error(session).get("code")
        return Outcome.FAILED if code in asked.failing_errors else outcome
    return outcome


def _report(session: Mapping[str, Any]) -> Mapping[str, Any]:
    """The report; empty if there is none, or only its identifier."""
    report = session.get("last_verification_report")
    return {} if isinstance(report, str) else mapping(report, "last_verification_report")


def _last_error(session: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(session.get("last_error"), "last_error")


def _subject(session: Mapping[str, Any], asked: Asked) -> str | None:
    if asked.subject_metadata_key is None:
        return text(session.get("client_reference_id"), "client_reference_id")
    metadata = mapping(session.get("metadata"), "metadata")
    return text(metadata.get(asked.subject_metadata_key), "metadata")
