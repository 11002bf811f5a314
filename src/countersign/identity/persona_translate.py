"""Persona: from the bytes of an inquiry to the neutral result.

What an inquiry is: Persona's OpenAPI description, version 2025-12-08.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from countersign.identity import persona_person
from countersign.identity import persona_verifications as proved
from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import Outcome, ProviderEvidence, ProviderResult
from countersign.identity.persona_verifications import Verification
from countersign.identity.reading import (
    Unreadable,
    facts_unknown,
    instant,
    mapping,
    outcome_of_status,
    read_object,
    refused,
    sequence,
    text,
)
from countersign.identity.transport import ProviderReply

NAME: Final = "persona"

_OUTCOMES: Final[Mapping[str, Outcome]] = {
    "created": Outcome.REQUIRES_INPUT,
    "pending": Outcome.REQUIRES_INPUT,
    # The buyer has finished; nobody has decided yet.
    "completed": Outcome.PENDING,
    "needs_review": Outcome.PENDING,
    "approved": Outcome.VERIFIED,
    "declined": Outcome.FAILED,
    "failed": Outcome.FAILED,
    "expired": Outcome.EXPIRED,
}
_WORD: Final = re.compile(r"[a-z0-9_]{1,64}", re.ASCII)
_ENVIRONMENT: Final = "persona-environment-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What we know of our side of the question."""

    session_id: str
    environment_id: str
    """The environment that the account's credentials are for."""
    production: bool
    """Whether that environment is one in which people are really verified."""
    accept_completed: bool
    """Whether an inquiry that nobody decides about counts as soon as a verification passed."""


def translate(
    reply: ProviderReply, asked: Asked, evidence: ProviderEvidence, fingerprint: Fingerprint
) -> ProviderResult:
    """The result of any answer of `GET /inquiries/{inquiry-id}`."""
    if reply.status != 200:
        return _error(reply, asked, evidence)
    try:
        return _inquiry(reply, asked, evidence, fingerprint)
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


def _error(reply: ProviderReply, asked: Asked, evidence: ProviderEvidence) -> ProviderResult:
    outcome, reason = outcome_of_status(reply.status), None
    if outcome is Outcome.NOT_FOUND:
        if not _has_errors(reply.body):
            # Some other server's 404: that says nothing of the inquiry.
            outcome = Outcome.INVALID_RESPONSE
        elif reply.headers.get(_ENVIRONMENT, asked.environment_id) != asked.environment_id:
            # Looked for in another environment than the credentials say.
            outcome, reason = Outcome.PROVIDER_REJECTED, "environment_mismatch"
    return refused(NAME, asked.session_id, outcome, reply, evidence=evidence, reason_code=reason)


def _has_errors(body: bytes) -> bool:
    """Whether a body is an error of Persona's, each with a title; its texts go nowhere."""
    try:
        errors = sequence(read_object(body).get("errors"), "errors")
        titles = [text(mapping(error, "errors").get("title"), "title") for error in errors]
    except Unreadable:
        return False
    return bool(titles) and None not in titles


def _inquiry(
    reply: ProviderReply, asked: Asked, evidence: ProviderEvidence, fingerprint: Fingerprint
) -> ProviderResult:
    body = read_object(reply.body)
    data = mapping(body.get("data"), "data")
    if data.get("type") != "inquiry" or data.get("id") != asked.session_id:
        raise Unreadable("data.id")
    attributes = mapping(data.get("attributes"), "attributes")
    status = text(attributes.get("status"), "status")
    linked = _linked(data)
    verifications = _ours(proved.read_verifications(body.get("included"), asked.session_id), linked)
    result = ProviderResult(
        provider=NAME,
        session_id=asked.session_id,
        outcome=Outcome.INVALID_RESPONSE,
        provider_status=status if status and _WORD.fullmatch(status) else None,
        live=_live(reply.headers.get(_ENVIRONMENT), asked),
        subject_reference=text(attributes.get("reference-id"), "reference-id"),
        evidence=evidence,
    )
    # Before the status: a redacted inquiry still says `approved`.
    if text(attributes.get("redacted-at"), "redacted-at") is not None:
        return replace(result, outcome=Outcome.REDACTED)
    passed = tuple(read for read in verifications if read.passed)
    outcome = _outcome(status, passed, asked)
    if outcome is Outcome.VERIFIED and not passed:
        return _unproved(result, verifications, linked)
    if outcome is Outcome.INVALID_RESPONSE:
        return replace(result, reason_code="unknown_status")
    if outcome is not Outcome.VERIFIED:
        failed = proved.failed_check(verifications)
        reason = proved.REASONS.get(failed or "")
        return replace(result, outcome=outcome, reason_code=failed, reason=reason)
    with facts_unknown() as unread:
        result = replace(
            _with_person(result, evidence, passed, fingerprint),
            decided_at=instant(attributes.get("decisioned-at"), "decisioned-at")
            or instant(attributes.get("completed-at"), "completed-at"),
        )
    return replace(result, unread=tuple(unread))


def _outcome(status: str | None, passed: Sequence[Verification], asked: Asked) -> Outcome:
    if status == "completed" and asked.accept_completed and passed:
        return Outcome.VERIFIED
    return _OUTCOMES.get(status or "", Outcome.INVALID_RESPONSE)


def _unproved(
    result: ProviderResult,
    verifications: Sequence[Verification],
    linked: Mapping[str, str] | None,
) -> ProviderResult:
    """Approved, but by nothing that we could read."""
    if any(read.redacted for read in verifications):
        return replace(result, outcome=Outcome.REDACTED)
    if not any(read.kind in proved.PROOFS for read in verifications) and any(
        kind in proved.PROOFS for kind in (linked or {}).values()
    ):
        # The key may read inquiries, but not verifications.
        return replace(
            result, outcome=Outcome.PROVIDER_REJECTED, reason_code="verifications_withheld"
        )
    return replace(
        result,
        outcome=Outcome.UNPROVED,
        reason_code=proved.failed_check(verifications) or "no_passed_verification",
    )


def _with_person(
    result: ProviderResult,
    evidence: ProviderEvidence,
    passed: Sequence[Verification],
    fingerprint: Fingerprint,
) -> ProviderResult:
    theirs = persona_person.of_one_person(passed)
    given, family = persona_person.name(theirs)
    born, born_source = persona_person.birth(theirs)
    described, number = persona_person.document(theirs), persona_person.number(theirs)
    print_of_document = None
    if described is not None:
        country, region = described.issuing_country, described.issuing_region
        print_of_document = fingerprint(country, region, described.type, number)
    return replace(
        result,
        outcome=Outcome.VERIFIED,
        given_name=given,
        family_name=family,
        date_of_birth=born,
        date_of_birth_source=born_source,
        addresses=tuple(persona_person.addresses(theirs)),
        document=described,
        document_fingerprint=print_of_document,
        checks=tuple(proved.checks(passed)),
        evidence=replace(evidence, sensitive_complete=not _withheld(passed)),
    )


def _withheld(passed: Sequence[Verification]) -> bool:
    """Whether the key's blocklist kept back what a document always has, if only as null."""
    return any(
        member not in read.attributes
        for read in passed
        if read.kind in proved.DOCUMENTS
        for member in ("birthdate", "expiration-date")
    )


def _linked(data: Mapping[str, Any]) -> Mapping[str, str] | None:
    """The verifications that the inquiry names, each with its kind; None if it names none."""
    related = mapping(data.get("relationships"), "relationships")
    found = mapping(related.get("verifications"), "verifications").get("data")
    if found is None:
        return None
    links = [mapping(one, "verifications.data") for one in sequence(found, "verifications.data")]
    return {str(link.get("id")): str(link.get("type")) for link in links}


def _ours(
    read: tuple[Verification, ...], linked: Mapping[str, str] | None
) -> tuple[Verification, ...]:
    """Without those that the inquiry does not name: JSON:API includes only what is linked."""
    if linked is None:
        return read
    return tuple(one for one in read if linked.get(one.verification_id) == one.kind)


def _live(environment_id: str | None, asked: Asked) -> bool | None:
    """Whether the answer comes from the environment that the account calls its live one."""
    if environment_id is None:
        return None
    return asked.production and environment_id == asked.environment_id
