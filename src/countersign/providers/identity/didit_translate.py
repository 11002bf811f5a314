"""Didit's answer in our words: a function of its bytes.

Source: Didit's pages "Retrieve session" and "Verification statuses". Its statuses are words with
capitals and spaces, and are compared exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from countersign.domain.identity import (
    Address,
    Check,
    Document,
    Outcome,
    ProviderEvidence,
    ProviderResult,
    Source,
    Tri,
)
from countersign.providers.identity.fields import Use
from countersign.providers.identity.fingerprint import Fingerprint
from countersign.providers.identity.reading import (
    Unreadable,
    flag,
    iso_date,
    mapping,
    read_object,
    sequence,
    text,
)

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
_STATE_ISSUED: Final = frozenset({"Driver's License", "Identity Card"})
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
    **{f"poa_verifications[].poa_parsed_address.{name}": use for name, use in _PARSED.items()},
    # Disagrees with the date of birth in Didit's own examples.
    "id_verifications[].age": Use.IGNORED,
    # One line without parts: a ZIP code cannot be told from a house number in it.
    "id_verifications[].address": Use.IGNORED,
    "id_verifications[].formatted_address": Use.IGNORED,
    "poa_verifications[].poa_address": Use.IGNORED,
    "poa_verifications[].poa_formatted_address": Use.IGNORED,
    # Didit has weighed them in the status of the proof of address.
    "poa_verifications[].issue_date": Use.IGNORED,
    "poa_verifications[].name_match_score_id_verification": Use.IGNORED,
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
    # Of the making of the session, not of the decision.
    "created_at": Use.IGNORED,
    # How the operator has set up Didit.
    "session_number": Use.IGNORED,
    "workflow_id": Use.IGNORED,
    "features[]": Use.IGNORED,
}


def translate(
    body: bytes, *, session_id: str, fingerprint: Fingerprint, evidence: ProviderEvidence
) -> ProviderResult:
    """The result of an answer with status 200; whatever the bytes are, there is one."""
    try:
        return _translate(body, session_id, fingerprint, evidence)
    except (Unreadable, ValueError, OverflowError):
        # The last two: text that no encoding has, and the like.
        return _invalid(session_id, evidence, "unreadable")


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
    passed = outcome is Outcome.VERIFIED
    return ProviderResult(
        provider="didit",
        session_id=session_id,
        outcome=outcome,
        provider_status=status,
        reason_code=None if passed else _reason(answer),
        live=_LIVE.get(environment, False),
        subject_reference=text(answer.get("vendor_data"), "vendor_data"),
        checks=tuple(_checks(answer)),
        evidence=evidence,
        **(_facts(answer, fingerprint) if passed else {}),
    )


def _facts(answer: Mapping[str, Any], fingerprint: Fingerprint) -> dict[str, Any]:
    documents = _approved(answer, "id_verifications")
    proofs = _approved(answer, "poa_verifications")
    addresses = [
        *_addresses(documents, "parsed_address", Source.DOCUMENT),
        *_addresses(proofs, "poa_parsed_address", Source.PROOF_OF_ADDRESS),
    ]
    if not documents:
        return {"addresses": tuple(addresses)}
    born = {iso_date(each.get("date_of_birth"), "date_of_birth") for each in documents}
    # Two documents that disagree about the birth prove neither date.
    birth = born.pop() if len(born) == 1 else None
    last = documents[-1]
    on_it = next(_addresses([last], "parsed_address", Source.DOCUMENT), None)
    country = text(last.get("issuing_state"), "issuing_state")
    document = Document(
        type=text(last.get("document_type"), "document_type"),
        issuing_country=country,
        issuing_region=on_it.region if on_it and country == "USA" else None,
        expires_on=iso_date(last.get("expiration_date"), "expiration_date"),
    )
    number = text(last.get("document_number"), "document_number")
    issuer = _issuer(document)
    return {
        "given_name": text(last.get("first_name"), "first_name"),
        "family_name": text(last.get("last_name"), "last_name"),
        "date_of_birth": birth,
        "date_of_birth_source": Source.DOCUMENT if birth else Source.NONE,
        "addresses": tuple(addresses),
        "document": document if document.type else None,
        "document_fingerprint": fingerprint(issuer, document.type, number)
        if issuer and document.type and number
        else None,
    }


def _approved(answer: Mapping[str, Any], feature: str) -> Sequence[Mapping[str, Any]]:
    entries = [mapping(entry, feature) for entry in sequence(answer.get(feature), feature)]
    return [entry for entry in entries if entry.get("status") == "Approved"]


def _addresses(
    entries: Sequence[Mapping[str, Any]], member: str, source: Source
) -> Iterator[Address]:
    for entry in entries:
        parsed = mapping(entry.get(member), member)
        if parsed:
            doubted = flag(parsed.get("is_verified"), "is_verified") is False
            yield Address(
                source=Source.NONE if doubted else source,
                line1=text(parsed.get("street_1"), "street_1"),
                line2=text(parsed.get("street_2"), "street_2"),
                city=text(parsed.get("city"), "city"),
                region=text(parsed.get("region"), "region"),
                postal_code=text(parsed.get("postal_code"), "postal_code"),
                country=text(parsed.get("country"), "country"),
            )


def _issuer(document: Document) -> str | None:
    """Who gave the document its number; None where two holders could have the same number."""
    country, region = document.issuing_country, document.issuing_region
    if country == "USA" and document.type in _STATE_ISSUED:
        # Each state numbers its licences by itself; the state is the one of the address on it.
        return f"USA {region}" if region else None
    return country


def _checks(answer: Mapping[str, Any]) -> Iterator[Check]:
    for feature in _FEATURES:
        for entry in sequence(answer.get(feature), feature):
            raw = text(mapping(entry, feature).get("status"), "status")
            if raw is not None and raw in _VERDICTS:
                yield Check(name=feature, verdict=_VERDICTS[raw], raw=raw)


def _reason(answer: Mapping[str, Any]) -> str | None:
    """Didit's first word for a risk; its sentences can hold personal data."""
    for feature in _FEATURES:
        for entry in sequence(answer.get(feature), feature):
            for warning in sequence(mapping(entry, feature).get("warnings"), "warnings"):
                risk = mapping(warning, "warning").get("risk")
                if isinstance(risk, str) and _RISK.fullmatch(risk):
                    return risk
    return None


def _invalid(session_id: str, evidence: ProviderEvidence, reason: str) -> ProviderResult:
    return ProviderResult(
        provider="didit",
        session_id=session_id,
        outcome=Outcome.INVALID_RESPONSE,
        reason_code=reason,
        evidence=evidence,
    )
