"""Veriff's answer in our words: a function of its bytes.

Its statuses and their meaning: Veriff's pages "Verification session status codes" and "Decision
data". The numeric `code` is not judged: Veriff's own pages disagree about what 9121 says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from countersign.identity.fields import Use
from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import (
    Address,
    Document,
    Outcome,
    ProviderEvidence,
    ProviderResult,
    Source,
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
)
from countersign.reason import Reason

_OUTCOMES: Final[Mapping[str, Outcome]] = {
    "approved": Outcome.VERIFIED,
    "created": Outcome.PENDING,
    "started": Outcome.PENDING,
    "submitted": Outcome.PENDING,
    "review": Outcome.PENDING,
    "resubmission_requested": Outcome.REQUIRES_INPUT,
    "declined": Outcome.FAILED,
    "abandoned": Outcome.CANCELED,
    "expired": Outcome.EXPIRED,
}
_NOT_AN_ID: Final = frozenset({"1002", "1104"})
"""Error codes for an identifier that Veriff cannot read: the only parameter that we send."""
_CODE: Final = re.compile(r"[0-9]{1,6}", re.ASCII)

REASONS: Final[Mapping[str, Reason]] = {
    **dict.fromkeys(("206", "510"), Reason.DOCUMENT_UNSUPPORTED),
    **dict.fromkeys(("101", "102", "205", "506", "507", "508"), Reason.DOCUMENT_NOT_ACCEPTED),
    **dict.fromkeys(("103", "120", "509"), Reason.SELFIE_MISMATCH),
    **dict.fromkeys(("202", "208", "515"), Reason.SELFIE_NOT_ACCEPTED),
    **dict.fromkeys(("104", "123"), Reason.DETAILS_MISMATCH),
    # 201 and 204 can be about the face, too; it is the document far more often.
    **dict.fromkeys(("201", "203", "204", "209", "210"), Reason.DOCUMENT_UNREADABLE),
    **dict.fromkeys(("207", "511"), Reason.DOCUMENT_EXPIRED),
    **dict.fromkeys(("530", "531", "532", "533"), Reason.AGE_BELOW_MINIMUM),
}
"""What Veriff's reason codes say (its "Granular reason codes"). Those for an age above 18, 534 to
536, say nothing of the account's own minimum; those of fraud say no more than the outcome."""

FIELDS: Final[Mapping[str, Use]] = {
    "status": Use.CHECKED,
    "verification": Use.REQUIRED,
    "verification.id": Use.CHECKED,
    "verification.status": Use.CHECKED,
    "verification.vendorData": Use.OPTIONAL,
    "verification.endUserId": Use.OPTIONAL,
    "verification.decisionTime": Use.OPTIONAL,
    "verification.reasonCode": Use.OPTIONAL,
    "verification.person.firstName": Use.OPTIONAL,
    "verification.person.lastName": Use.OPTIONAL,
    "verification.person.dateOfBirth": Use.REQUIRED,
    "verification.person.addresses[].parsedAddress.street": Use.OPTIONAL,
    "verification.person.addresses[].parsedAddress.city": Use.OPTIONAL,
    "verification.person.addresses[].parsedAddress.state": Use.OPTIONAL,
    "verification.person.addresses[].parsedAddress.postcode": Use.REQUIRED,
    "verification.person.addresses[].parsedAddress.country": Use.OPTIONAL,
    "verification.document.type": Use.REQUIRED,
    "verification.document.number": Use.OPTIONAL,
    "verification.document.country": Use.OPTIONAL,
    "verification.document.state": Use.OPTIONAL,
    "verification.document.validUntil": Use.OPTIONAL,
    # Says the same as `status`, and sometimes the contrary.
    "verification.code": Use.IGNORED,
    # A sentence for people; `reasonCode` is the same for programs.
    "verification.reason": Use.IGNORED,
    # Belongs to one try; the session is what a buyer is known by.
    "verification.attemptId": Use.IGNORED,
    "verification.acceptanceTime": Use.IGNORED,
    "verification.submissionTime": Use.IGNORED,
    # Not enough for an age, or guessed from a face: never a proof of age.
    "verification.person.yearOfBirth": Use.IGNORED,
    "verification.additionalVerifiedData.*": Use.IGNORED,
    # One line without parts: a ZIP code cannot be told from a house number in it.
    "verification.person.addresses[].fullAddress": Use.IGNORED,
    # About the person, but no condition of a purchase.
    "verification.person.gender": Use.IGNORED,
    "verification.person.idNumber": Use.IGNORED,
    "verification.document.validFrom": Use.IGNORED,
    # Veriff has weighed them in its decision.
    "verification.riskLabels[]": Use.IGNORED,
    "verification.comments[]": Use.IGNORED,
    "technicalData.ip": Use.IGNORED,
}


def refusal(status: int, body: bytes) -> tuple[Outcome, str]:
    """What an answer other than 200 means, and Veriff's code for it (or `http_` and the status)."""
    known: str | None = None
    # What is unreadable is the error page of something in between: its status says enough.
    with suppress(Unreadable):
        error = read_object(body)
        # Only in Veriff's own words is an error of Veriff's.
        known = _code(error.get("code")) if error.get("status") == "fail" else None
    outcome = outcome_of_status(status)
    if status == 400 and known in _NOT_AN_ID:
        outcome = Outcome.NOT_FOUND
    elif outcome is Outcome.NOT_FOUND and known is None:
        # Some other server's 404: that says nothing of the session.
        outcome = Outcome.INVALID_RESPONSE
    return outcome, known or f"http_{status}"


def translate(
    body: bytes,
    *,
    session_id: str,
    live: bool | None,
    fingerprint: Fingerprint,
    evidence: ProviderEvidence,
) -> ProviderResult:
    """The result of an authentic answer with status 200; whatever the bytes are, there is one."""
    try:
        return _translate(body, session_id, live, fingerprint, evidence)
    except Unreadable as unread:
        return replace(_invalid(session_id, evidence, "unreadable"), unread=(str(unread),))


def _translate(
    body: bytes,
    session_id: str,
    live: bool | None,  # noqa: FBT001 - private, and called once
    fingerprint: Fingerprint,
    evidence: ProviderEvidence,
) -> ProviderResult:
    answer = read_object(body)
    if answer.get("status") != "success" or "verification" not in answer:
        return _invalid(session_id, evidence, "unreadable")
    verification = mapping(answer["verification"], "verification")
    if not verification:
        # Veriff's way to say that there is no decision yet.
        return ProviderResult(
            provider="veriff",
            session_id=session_id,
            outcome=Outcome.PENDING,
            live=live,
            evidence=evidence,
        )
    if verification.get("id") != session_id:
        return _invalid(session_id, evidence, "other_session")
    status = text(verification.get("status"), "status")
    outcome = _OUTCOMES.get(status or "")
    if outcome is None:
        return _invalid(session_id, evidence, "unknown_status")
    code = _code(verification.get("reasonCode"))
    with facts_unknown() as unread:
        facts = _facts(verification, fingerprint) if outcome is Outcome.VERIFIED else {}
        decided_at = instant(verification.get("decisionTime"), "decisionTime")
    return ProviderResult(
        provider="veriff",
        session_id=session_id,
        outcome=outcome,
        provider_status=status,
        reason_code=code,
        reason=REASONS.get(code or ""),
        unread=tuple(unread),
        live=live,
        subject_reference=text(verification.get("vendorData"), "vendorData")
        or text(verification.get("endUserId"), "endUserId"),
        decided_at=decided_at,
        evidence=evidence,
        **facts,
    )


def _facts(verification: Mapping[str, Any], fingerprint: Fingerprint) -> dict[str, Any]:
    person = mapping(verification.get("person"), "person")
    written = mapping(verification.get("document"), "document")
    document = Document(
        type=text(written.get("type"), "document.type"),
        issuing_country=text(written.get("country"), "document.country"),
        issuing_region=text(written.get("state"), "document.state"),
        expires_on=iso_date(written.get("validUntil"), "document.validUntil"),
    )
    # Checks without a document give back what was typed in: that proves nothing.
    source = Source.DOCUMENT if document.type else Source.USER
    addresses = tuple(_addresses(person, source))
    born = iso_date(person.get("dateOfBirth"), "dateOfBirth")
    number = text(written.get("number"), "document.number")
    # Where the document's state is not told, it is the one of the address on it.
    region = document.issuing_region or next((a.region for a in addresses if a.region), None)
    return {
        "given_name": text(person.get("firstName"), "firstName"),
        "family_name": text(person.get("lastName"), "lastName"),
        "date_of_birth": born,
        "date_of_birth_source": source if born else Source.NONE,
        "addresses": addresses,
        "document": document if document.type else None,
        "document_fingerprint": fingerprint(
            document.issuing_country, region, document.type, number
        ),
    }


def _addresses(person: Mapping[str, Any], source: Source) -> Iterator[Address]:
    for entry in sequence(person.get("addresses"), "addresses"):
        parsed = mapping(mapping(entry, "address").get("parsedAddress"), "parsedAddress")
        if parsed:
            yield Address(
                source=source,
                line1=text(parsed.get("street"), "street"),
                city=text(parsed.get("city"), "city"),
                region=text(parsed.get("state"), "state"),
                postal_code=text(parsed.get("postcode"), "postcode"),
                country=text(parsed.get("country"), "country"),
            )


def _code(value: object) -> str | None:
    """A number of Veriff's, as text; anything else could be a text about a person."""
    written = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    return written if _CODE.fullmatch(written) else None


def _invalid(session_id: str, evidence: ProviderEvidence, reason: str) -> ProviderResult:
    return ProviderResult(
        provider="veriff",
        session_id=session_id,
        outcome=Outcome.INVALID_RESPONSE,
        reason_code=reason,
        evidence=evidence,
    )
