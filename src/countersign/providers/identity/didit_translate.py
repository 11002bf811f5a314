"""Didit's answer in our words: a function of its bytes.

Source: Didit's pages "Retrieve session" and "Verification statuses". Its statuses are words with
capitals and spaces, and are compared exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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
from countersign.providers.identity.fingerprint import Fingerprint
from countersign.providers.identity.reading import (
    Unreadable,
    flag,
    iso_date,
    mapping,
    outcome_of_status,
    read_object,
    sequence,
    text,
)
from countersign.providers.identity.same_person import Holder

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
    if not documents:
        # Whose address is it, if nobody has shown who they are?
        return {}
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
    warnings = sequence(proof.get("warnings"), "warnings")
    risks = {str(mapping(warning, "warning").get("risk")) for warning in warnings}
    return risks.isdisjoint(_NAME_MISMATCHES)


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
