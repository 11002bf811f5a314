"""One evaluation of a provider session, and the sealed evidence that is kept of it."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from countersign.base.values import rfc3339_ms
from countersign.core.access.audit import AuditEntry
from countersign.core.buyers.decision import SessionDecision
from countersign.core.buyers.providers import Integration
from countersign.core.buyers.sessions_sql import SessionKeys
from countersign.core.buyers.verification_record import VerificationAct
from countersign.core.vault.vault import Place
from countersign.identity.model import FactSource, ProviderEvidence, ProviderResult

_READ: Final = (
    *("outcome", "provider_status", "reason_code", "live", "subject_reference"),
    *("date_of_birth", "date_of_birth_source", "checks"),
)
"""What is kept as it was read of a provider's response."""
_RESPONSE: Final = (
    *("sha256", "http_status", "request_id", "api_version", "response_signature"),
    "sensitive_complete",
)
"""What is kept of that response itself."""
_NO_ISSUER: Final = {"issuing_country": None, "issuing_region": None}
encode: Final = msgspec.json.Encoder(order="sorted").encode


class SessionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is evaluated for; kept, sealed, while the provider has not decided."""

    session_id: str
    shipping_zip: str
    subject_reference: str | None

    def __repr__(self) -> str:
        return "<SessionRequest: hidden>"


class AskedBefore(msgspec.Struct, frozen=True):
    """Of the evidence of a verification, what was asked."""

    request: SessionRequest


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Evaluation(VerificationAct):
    """What was asked about a session, what the provider said, and what follows from it."""

    integration: Integration
    request: SessionRequest
    result: ProviderResult
    decision: SessionDecision
    keys: SessionKeys
    quiet: bool = False
    """Whether nothing is said of the buyer of a started session before something is submitted."""
    polled: str | None = None
    """Of a poll, the followed session that it is for."""
    override: AuditEntry | None = None
    """What an operator accepted in the place of a provider's proof."""
    for_account_only: bool = False
    """Whether that was accepted by a reviewer of the account, and counts for it alone."""


def evidence_place(account_id: str, record_id: str) -> Place:
    """Where the evidence of a verification stands, sealed."""
    return Place(
        table="verification_evidence", column="payload", account=account_id, row_id=record_id
    )


def pending_place(account_id: str, id_: str) -> Place:
    """Where the request about an undecided session stands, sealed."""
    return Place(table="pending_sessions", column="request", account=account_id, row_id=id_)


def described(override: AuditEntry) -> dict[str, object]:
    """What record and evidence say of it: verification, document, reason and operator."""
    return {**override.details, "operator": override.actor}


def evidence_of(work: Evaluation, decision: SessionDecision, cbid: str) -> bytes:
    """Everything that the decision rests on, as JSON, for the day on which somebody asks."""
    result, settings = work.result, work.integration.settings
    content = {
        "v": 1,
        "cbid": cbid,
        "provider": settings.provider,
        "base_url": settings.base_url,
        "request": msgspec.to_builtins(work.request),
        "answer": None if result.evidence is None else _response(result.evidence),
        "override": work.override and described(work.override),
        "read": {name: getattr(result, name) for name in _READ}
        | {
            "decided_at": result.decided_at and rfc3339_ms(result.decided_at),
            "addresses": [
                {"postal_code": a.postal_code, "country": a.country, "source": a.source}
                for a in result.addresses
            ],
            "document_type": result.document and result.document.type,
            "document_expires_on": result.document and result.document.expires_on,
            "document_expiry_unread": result.document and result.document.expiry_unread,
        },
        "decision": {
            "status": decision.status,
            "reasons": decision.reasons,
            "expires_at": decision.expires_at and rfc3339_ms(decision.expires_at),
            "facts": decision.facts,
        },
        "rules": {
            "settings_revision": settings.revision,
            **msgspec.to_builtins(work.integration.rules),
        },
    }
    return encode(content)


def _response(evidence: ProviderEvidence) -> dict[str, Any]:
    return {
        **{name: getattr(evidence, name) for name in _RESPONSE},
        "body": b64encode(evidence.raw_body).decode("ascii"),
        "request": evidence.request_target,
        "retrieved_at": rfc3339_ms(evidence.retrieved_at),
        "further": [_response(more) for more in evidence.further],
    }


def result_in(content: dict[str, Any], accepted_zip: str) -> ProviderResult:
    """What a provider said, read from the evidence of it, and the ZIP an operator accepts."""
    read = content["read"]
    type_, expires_on = read["document_type"], read["document_expires_on"]
    unread = bool(read.get("document_expiry_unread"))
    document = {"type": type_, "expires_on": expires_on, "expiry_unread": unread}
    accepted = {"postal_code": accepted_zip, "country": "US", "source": FactSource.OPERATOR}
    members = {name: read[name] for name in (*_READ, "decided_at")} | {
        "provider": content["provider"],
        "session_id": content["request"]["session_id"],
        "addresses": [*read["addresses"], accepted],
        "document": document | _NO_ISSUER if type_ or expires_on or unread else None,
    }
    return msgspec.convert(members, ProviderResult)
