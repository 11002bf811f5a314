"""What Onfido says of a workflow run, in the words that all providers share.

A run's `output` is whatever the customer mapped in the workflow editor: it counts only where the
account's credentials declare what a member is and what vouches for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import (
    Address,
    Document,
    Outcome,
    ProviderEvidence,
    ProviderResult,
    Source,
)
from countersign.identity.onfido_output import Mapped, Output
from countersign.identity.onfido_report import (
    Report,
    address_of,
    document_of,
    fingerprint_of,
)
from countersign.identity.reading import (
    Unreadable,
    facts_unknown,
    instant,
    iso_date,
    mapping,
    outcome_of_status,
    read_object,
    refused,
    sequence,
    text,
)
from countersign.identity.transport import RETRY_AFTER_SECONDS, ProviderReply

NAME: Final = "onfido"

_OUTCOMES: Final[Mapping[str, Outcome]] = {
    "approved": Outcome.VERIFIED,
    "processing": Outcome.PENDING,
    "review": Outcome.PENDING,
    "awaiting_input": Outcome.REQUIRES_INPUT,
    "awaiting_client_input": Outcome.REQUIRES_INPUT,
    "declined": Outcome.FAILED,
    "abandoned": Outcome.CANCELED,
    # The workflow broke, and Onfido's people may mend it: nobody was judged.
    "error": Outcome.PROVIDER_UNAVAILABLE,
}
# A word that the workflow's author chose; a sentence stays in the evidence.
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked, and what the account has declared of the answer."""

    session_id: str
    live: bool
    output: Output


def translate_run(reply: ProviderReply, asked: Asked, evidence: ProviderEvidence) -> ProviderResult:
    """What an answer to `/workflow_runs/{id}` says, without the person; any answer has a result."""
    if reply.status != 200:
        return _error(reply, asked, evidence)
    try:
        return _run(read_object(reply.body), asked, evidence)
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


def translate_failure(result: ProviderResult, reply: ProviderReply | None) -> ProviderResult:
    """The result if the document report could not be had, or (None) not be read."""
    outcome = Outcome.INVALID_RESPONSE if reply is None else outcome_of_status(reply.status)
    if outcome is Outcome.NOT_FOUND:
        # The run was there a moment ago.
        outcome = Outcome.INVALID_RESPONSE
    return replace(
        result,
        outcome=outcome,
        reason_code="unreadable_report" if reply is None else f"report_http_{reply.status}",
        retry_after=(reply.retry_after if reply else None) or RETRY_AFTER_SECONDS,
    )


def prove(
    result: ProviderResult,
    reply: ProviderReply,
    asked: Asked,
    report: Report | None,
    fingerprint: Fingerprint,
) -> ProviderResult:
    """The result of an approved run with what is proved of the person."""
    if report is None and not asked.output.proves_all:
        return replace(result, outcome=Outcome.UNPROVED, reason_code="no_clear_document_report")
    with facts_unknown() as unread:
        result = _with_person(result, read_object(reply.body), asked, report, fingerprint)
    return replace(result, unread=tuple(unread))


def _with_person(
    result: ProviderResult,
    body: Mapping[str, Any],
    asked: Asked,
    report: Report | None,
    fingerprint: Fingerprint,
) -> ProviderResult:
    properties = report.properties if report else {}
    output = mapping(body.get("output"), "output")
    born = iso_date(properties.get("date_of_birth"), "date_of_birth")
    source = Source.DOCUMENT
    declared = asked.output.date_of_birth
    if declared is not None:
        told = iso_date(_member(output, declared), "output")
        if born is None:
            born, source = told, Source(declared.source)
        elif told is not None and told != born:
            # The output is of somebody else than the document: nothing of it is the buyer's.
            output = {}
    addresses = (address_of(properties), _declared_address(output, asked.output))
    begun = instant(body.get("created_at"), "created_at")
    return replace(
        result,
        # Rather the beginning of the run than its last change, which any later one moves.
        decided_at=(report.completed_at if report else None) or begun,
        given_name=text(properties.get("first_name"), "first_name"),
        family_name=text(properties.get("last_name"), "last_name"),
        date_of_birth=born,
        date_of_birth_source=Source.NONE if born is None else source,
        addresses=tuple(address for address in addresses if address is not None),
        document=_document(properties, output, asked.output),
        document_fingerprint=fingerprint_of(properties, fingerprint),
        checks=report.checks if report else (),
    )


def _run(body: Mapping[str, Any], asked: Asked, evidence: ProviderEvidence) -> ProviderResult:
    status = text(body.get("status"), "status") or ""
    result = ProviderResult(
        provider=NAME,
        session_id=asked.session_id,
        outcome=Outcome.INVALID_RESPONSE,
        provider_status=status if _WORD.fullmatch(status) else None,
        live=asked.live,
        evidence=evidence,
    )
    if text(body.get("id"), "id") != asked.session_id:
        return replace(result, reason_code="other_session")
    if status not in _OUTCOMES:
        return replace(result, reason_code="unknown_status")
    outcome = _OUTCOMES[status]
    reasons = [text(reason, "reasons") or "" for reason in sequence(body.get("reasons"), "reasons")]
    kind = text(mapping(body.get("error"), "error").get("type"), "error.type") or ""
    words = [word for word in (kind, *reasons) if _WORD.fullmatch(word)]
    return replace(
        result,
        outcome=outcome,
        reason_code=words[0] if words else None,
        subject_reference=text(body.get("customer_user_id"), "customer_user_id"),
        retry_after=RETRY_AFTER_SECONDS if outcome is Outcome.PROVIDER_UNAVAILABLE else None,
    )


def _error(reply: ProviderReply, asked: Asked, evidence: ProviderEvidence) -> ProviderResult:
    # Gone: the applicant was deleted, and with it what was known of them.
    outcome = Outcome.REDACTED if reply.status == 410 else outcome_of_status(reply.status)
    try:
        error = mapping(read_object(reply.body).get("error"), "error")
        kind = text(error.get("type"), "error.type")
    except Unreadable:
        kind = None
    gone = outcome is Outcome.REDACTED and kind is not None
    unknown = outcome is Outcome.NOT_FOUND and "not_found" in (kind or "")
    if reply.status in {404, 410} and not (gone or unknown):
        # Not Onfido's own words (a gateway's page, another server): it cannot tell of a run.
        outcome = Outcome.INVALID_RESPONSE
    reason = kind if kind and _WORD.fullmatch(kind) else None
    return refused(NAME, asked.session_id, outcome, reply, evidence=evidence, reason_code=reason)


def _member(output: Mapping[str, Any], mapped: Mapped) -> object:
    """A member of `output`, found by its dotted path; None if it is not there."""
    found: object = output
    for name in mapped.member.split("."):
        found = mapping(found, "output").get(name)
    return found


def _declared_address(output: Mapping[str, Any], declared: Output) -> Address | None:
    if declared.postal_code is None:
        return None
    postal_code = text(_member(output, declared.postal_code), "output")
    if postal_code is None:
        return None
    country = text(_member(output, declared.country), "output") if declared.country else None
    return Address(
        source=Source(declared.postal_code.source), postal_code=postal_code, country=country
    )


def _document(
    properties: Mapping[str, Any], output: Mapping[str, Any], declared: Output
) -> Document | None:
    expires_on = (
        iso_date(_member(output, declared.expires_on), "output") if declared.expires_on else None
    )
    if not properties:
        of_document = declared.expires_on is not None and declared.expires_on.source == "document"
        if expires_on is None or not of_document:
            return None
    document = document_of(properties)
    return document if document.expires_on else replace(document, expires_on=expires_on)
