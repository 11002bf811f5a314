"""Didit's answer in our words: a function of its bytes.

Source: Didit's pages "Retrieve session" and "Verification statuses". Its statuses are words with
capitals and spaces, and are compared exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import (
    Address,
    Check,
    Document,
    Outcome,
    ProviderEvidence,
    ProviderResult,
    Source,
    Tri,
)
from countersign.identity.reading import (
    Unreadable,
    facts_unknown,
    instant,
    iso_date,
    mapping,
    outcome_of_status,
    read_object,
    sequence,
    text,
    unreadable,
)
from countersign.identity.same_person import Holder
from countersign.reason import Reason

_OUTCOMES: Final[Mapping[str, Outcome]] = {
    "Approved": Outcome.VERIFIED,
    "In Progress": Outcome.PENDING,
    "In Review": Outcome.PENDING,
    "Not Started": Outcome.REQUIRES_INPUT,
    "Awaiting User": Outcome.REQUIRES_INPUT,
    "Resubmitted": Outcome.REQUIRES_INPUT,
    "Declined": Outcome.FAILED,
    "Abandoned": Outcome.CANCELED,
    "Expired": Outcome.EXPIRED,
    "Kyc Expired": Outcome.EXPIRED,
}
_LIVE: Final[Mapping[str | None, bool | None]] = {None: None, "live": True}
"""Any other environment is not the live one."""
_VERDICTS: Final[Mapping[str, Tri]] = {
    "Approved": Tri.PASS,
    "Declined": Tri.FAIL,
    "In Review": Tri.UNKNOWN,
    "Not Finished": Tri.UNKNOWN,
}
_FEATURES: Final = (
    "id_verifications",
    "liveness_checks",
    "face_matches",
    "poa_verifications",
    "database_validations",
)
_RISK: Final = re.compile(r"[A-Z][A-Z0-9_]{0,79}", re.ASCII)
REASONS: Final[Mapping[str, Reason]] = {
    "DOCUMENT_EXPIRED": Reason.DOCUMENT_EXPIRED,
    "MINIMUM_AGE_NOT_MET": Reason.AGE_BELOW_MINIMUM,
    **dict.fromkeys(
        ("DOCUMENT_NOT_SUPPORTED_FOR_APPLICATION", "PORTRAIT_IMAGE_NOT_DETECTED"),
        Reason.DOCUMENT_UNSUPPORTED,
    ),
    **dict.fromkeys(
        (
            "QR_NOT_DETECTED",
            "BARCODE_NOT_DETECTED",
            "MRZ_NOT_DETECTED",
            "COULD_NOT_RECOGNIZE_DOCUMENT",
            "DOCUMENT_SIDES_MISMATCH",
        ),
        Reason.DOCUMENT_UNREADABLE,
    ),
    **dict.fromkeys(
        (
            "QR_VALIDATION_FAILED",
            "BARCODE_VALIDATION_FAILED",
            "MRZ_VALIDATION_FAILED",
            "MRZ_AND_DATA_EXTRACTED_FROM_OCR_NOT_SAME",
            "DATA_INCONSISTENT",
            "SCREEN_CAPTURE_DETECTED",
            "PRINTED_COPY_DETECTED",
            "PORTRAIT_MANIPULATION_DETECTED",
        ),
        Reason.DOCUMENT_NOT_ACCEPTED,
    ),
    "LOW_FACE_MATCH_SIMILARITY": Reason.SELFIE_MISMATCH,
    **dict.fromkeys(
        ("NO_FACE_DETECTED", "LOW_LIVENESS_SCORE", "LIVENESS_FACE_ATTACK", "LOW_FACE_QUALITY"),
        Reason.SELFIE_NOT_ACCEPTED,
    ),
    **dict.fromkeys(
        (
            "DOCUMENT_NAME_DIFFERENT_FROM_OTHER_APPROVED_DOCUMENTS",
            "NAME_MISMATCH_ID_VERIFICATION",
            "NAME_MISMATCH_WITH_PROVIDED",
            "POA_NAME_MISMATCH_BETWEEN_DOCUMENTS",
        ),
        Reason.DETAILS_MISMATCH,
    ),
}
"""What Didit's risks say (its pages of warnings); the lists of blocked people say nothing here."""
_NAME_MATCH_MIN: Final = 90
"""Of 100: how alike the name on a proof of address has to be to that on the document. Didit's page
"Proof of address warnings" says that 90 to 95 is typical; an account can let any mismatch pass, and
the proof is approved all the same."""
_NAME_MISMATCHES: Final = frozenset(
    {
        "NAME_MISMATCH_ID_VERIFICATION",
        "NAME_MISMATCH_WITH_PROVIDED",
        "POA_NAME_MISMATCH_BETWEEN_DOCUMENTS",
    }
)


def refusal(status: int, body: bytes) -> Outcome:
    """What an answer other than 200 means."""
    outcome = outcome_of_status(status)
    if outcome is Outcome.NOT_FOUND and not _is_detail(body):
        # Some other server's 404: that says nothing of the session.
        outcome = Outcome.INVALID_RESPONSE
    return outcome


def _is_detail(body: bytes) -> bool:
    """Whether a body is an error of Didit's: `detail`, and sometimes `code`.

    Another framework's own word for a path that it does not know looks much the same.
    """
    try:
        error = read_object(body)
    except Unreadable:
        return False
    told = error.get("detail")
    return isinstance(told, str) and told != "Not Found" and error.keys() <= {"detail", "code"}


def translate(
    body: bytes, *, session_id: str, fingerprint: Fingerprint, evidence: ProviderEvidence
) -> ProviderResult:
    """The result of an answer with status 200; whatever the bytes are, there is one."""
    try:
        return _translate(body, session_id, fingerprint, evidence)
    except Unreadable as unread:
        return replace(_invalid(session_id, evidence, "unreadable"), unread=(str(unread),))


def _translate(
    body: bytes, session_id: str, fingerprint: Fingerprint, evidence: ProviderEvidence
) -> ProviderResult:
    answer = read_object(body)
    if answer.get("session_id") != session_id:
        return _invalid(session_id, evidence, "other_session")
    if answer.get("session_kind") not in (None, "user"):
        # A business is verified by it: not a person.
        return _invalid(session_id, evidence, "unknown_kind")
    status = text(answer.get("status"), "status")
    outcome = _OUTCOMES.get(status or "")
    if outcome is None:
        return _invalid(session_id, evidence, "unknown_status")
    environment = text(answer.get("environment"), "environment")
    subject_reference = text(answer.get("vendor_data"), "vendor_data")
    with facts_unknown() as unread:
        facts = _facts(answer, fingerprint) if outcome is Outcome.VERIFIED else _why(answer)
        result = ProviderResult(
            provider="didit",
            session_id=session_id,
            outcome=outcome if facts is not None else Outcome.UNPROVED,
            provider_status=status,
            live=_LIVE.get(environment, False),
            subject_reference=subject_reference,
            # When it was decided, no member tells; not before it was made.
            decided_at=instant(answer.get("created_at"), "created_at"),
            checks=tuple(_checks(answer)),
            evidence=evidence,
            **(facts or {}),
        )
    return replace(result, unread=tuple(unread))


def _facts(answer: Mapping[str, Any], fingerprint: Fingerprint) -> dict[str, Any] | None:
    """What is proved of the person; None without a document."""
    documents = _approved(answer, "id_verifications")
    if not documents:
        # Whose address is it, if nobody has shown who they are?
        return None
    last = documents[-1]
    holder = _holder(last)
    of_one = all(_holder(each).may_be(holder) for each in documents[:-1])
    proofs = [each for each in _approved(answer, "poa_verifications") if _names_alike(each)]
    addresses = [
        *_addresses(documents, "parsed_address", Source.DOCUMENT),
        *_addresses(proofs, "poa_parsed_address", Source.PROOF_OF_ADDRESS),
    ]
    if not of_one:
        # Two documents that disagree about the person prove nothing of either.
        addresses = [replace(address, source=Source.NONE) for address in addresses]
    birth = holder.date_of_birth if of_one else None
    on_it = next(_addresses([last], "parsed_address", Source.DOCUMENT), None)
    country = text(last.get("issuing_state"), "issuing_state")
    document = Document(
        type=text(last.get("document_type"), "document_type"),
        issuing_country=country,
        issuing_region=on_it.region if on_it and country == "USA" else None,
        expires_on=iso_date(last.get("expiration_date"), "expiration_date"),
    )
    number = text(last.get("document_number"), "document_number")
    return {
        "given_name": holder.given_name,
        "family_name": holder.family_name,
        "date_of_birth": birth,
        "date_of_birth_source": Source.DOCUMENT if birth else Source.NONE,
        "addresses": tuple(addresses),
        "document": document if document.type else None,
        # The state is the one of the address on the document.
        "document_fingerprint": fingerprint(
            document.issuing_country, on_it.region if on_it else None, document.type, number
        ),
    }


def _holder(document: Mapping[str, Any]) -> Holder:
    return Holder(
        given_name=text(document.get("first_name"), "first_name"),
        family_name=text(document.get("last_name"), "last_name"),
        date_of_birth=iso_date(document.get("date_of_birth"), "date_of_birth"),
    )


def _names_alike(proof: Mapping[str, Any]) -> bool:
    """Whether a proof of address is of the person on the document."""
    score = proof.get("name_match_score_id_verification")
    if not isinstance(score, int | float) or isinstance(score, bool) or score < _NAME_MATCH_MIN:
        return False
    risks = _risks(proof)
    return risks is not None and set(risks).isdisjoint(_NAME_MISMATCHES)


def _risks(entry: Mapping[str, Any]) -> list[str] | None:
    """Didit's words for what it found, its sentences can hold personal data; None if unreadable."""
    warnings = [] if entry.get("warnings") is None else entry["warnings"]
    if not isinstance(warnings, list) or not all(isinstance(one, dict) for one in warnings):
        unreadable("warnings")
        return None
    risks = [warning.get("risk") for warning in warnings]
    return [risk for risk in risks if isinstance(risk, str) and _RISK.fullmatch(risk)]


def _approved(answer: Mapping[str, Any], feature: str) -> Sequence[Mapping[str, Any]]:
    entries = [mapping(entry, feature) for entry in sequence(answer.get(feature), feature)]
    return [entry for entry in entries if entry.get("status") == "Approved"]


def _addresses(
    entries: Sequence[Mapping[str, Any]], member: str, source: Source
) -> Iterator[Address]:
    for entry in entries:
        parsed = mapping(entry.get(member), member)
        if parsed:
            verified = parsed.get("is_verified")
            yield Address(
                source=source if verified is None or verified is True else Source.NONE,
                line1=text(parsed.get("street_1"), "street_1"),
                line2=text(parsed.get("street_2"), "street_2"),
                city=text(parsed.get("city"), "city"),
                region=text(parsed.get("region"), "region"),
                postal_code=text(parsed.get("postal_code"), "postal_code"),
                # Older answers name no country there, but that of the document.
                country=text(parsed.get("country"), "country")
                or text(entry.get("issuing_state"), "issuing_state"),
            )


def _checks(answer: Mapping[str, Any]) -> Iterator[Check]:
    for feature in _FEATURES:
        for entry in sequence(answer.get(feature), feature):
            raw = text(mapping(entry, feature).get("status"), "status")
            if raw is not None and raw in _VERDICTS:
                yield Check(name=feature, verdict=_VERDICTS[raw], raw=raw)


def _why(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Didit's first word for a risk, and the first that the table knows of what is not approved."""
    found: list[str] = []
    held_against: list[str] = []
    for feature in _FEATURES:
        for each in sequence(answer.get(feature), feature):
            entry = mapping(each, feature)
            risks = _risks(entry) or []
            found += risks
            held_against += [] if entry.get("status") == "Approved" else risks
    reasons = (REASONS[risk] for risk in held_against if risk in REASONS)
    return {"reason_code": next(iter(found), None), "reason": next(reasons, None)}


def _invalid(session_id: str, evidence: ProviderEvidence, reason: str) -> ProviderResult:
    return ProviderResult(
        provider="didit",
        session_id=session_id,
        outcome=Outcome.INVALID_RESPONSE,
        reason_code=reason,
        evidence=evidence,
    )
