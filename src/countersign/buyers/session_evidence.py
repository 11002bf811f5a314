"""One evaluation of a provider session, and the sealed evidence that is kept of it."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

import msgspec

from countersign.access.audit import AuditEntry
from countersign.buyers.decision import SessionDecision
from countersign.buyers.person_sql import SessionKeys
from countersign.buyers.providers import Integration
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
from countersign.instant import rfc3339_ms
from countersign.vault.vault import DataKey

EVIDENCE_TABLE: Final = "verification_evidence"
PENDING_TABLE: Final = "pending_sessions"
encode: Final = msgspec.json.Encoder(order="sorted").encode


class SessionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked about a session; kept, sealed, while the provider has not decided."""

    session_id: str
    shipping_zip: str
    subject_reference: str | None

    def __repr__(self) -> str:
        return "<SessionRequest: hidden>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """What an operator accepted in the place of a provider's proof, and the audit entry of it."""

    verification_id: str
    """The verification in which the provider approved the person."""
    document: str
    reason: str
    audit: AuditEntry

    def described(self) -> dict[str, str]:
        """What record and evidence say of it."""
        return {
            "verification": self.verification_id,
            "document": self.document,
            "reason": self.reason,
            "operator": self.audit.actor,
        }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Evaluation:
    """What was asked about a session, what the provider said, and what follows from it."""

    integration: Integration
    request: SessionRequest
    result: ProviderResult
    decision: SessionDecision
    keys: SessionKeys
    data_key: DataKey
    """The account's, which seals what is written."""
    time_ns: int
    polled: str | None = None
    """Of a poll, the followed session that it is for."""
    override: Override | None = None

    @property
    def account_id(self) -> str:
        """The account that asks."""
        return self.integration.settings.account_id


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
        "override": work.override and work.override.described(),
        "read": {
            "outcome": result.outcome,
            "provider_status": result.provider_status,
            "reason_code": result.reason_code,
            "live": result.live,
            "subject_reference": result.subject_reference,
            "decided_at": result.decided_at and rfc3339_ms(result.decided_at),
            "date_of_birth": result.date_of_birth,
            "date_of_birth_source": result.date_of_birth_source,
            "addresses": [
                {"postal_code": a.postal_code, "country": a.country, "source": a.source}
                for a in result.addresses
            ],
            "document_type": result.document and result.document.type,
            "document_expires_on": result.document and result.document.expires_on,
            "checks": [
                {"name": check.name, "verdict": check.verdict, "raw": check.raw}
                for check in result.checks
            ],
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
        "body": b64encode(evidence.raw_body).decode("ascii"),
        "sha256": evidence.sha256,
        "http_status": evidence.http_status,
        "request": evidence.request_target,
        "request_id": evidence.request_id,
        "api_version": evidence.api_version,
        "response_signature": evidence.response_signature,
        "retrieved_at": rfc3339_ms(evidence.retrieved_at),
        "sensitive_complete": evidence.sensitive_complete,
        "further": [_response(more) for more in evidence.further],
    }


def result_in(content: dict[str, Any], accepted_zip: str) -> ProviderResult:
    """What a provider said, read from the evidence of it, and the ZIP an operator accepts."""
    read, request = content["read"], content["request"]
    document = None
    if read["document_type"] is not None or read["document_expires_on"] is not None:
        expires_on = msgspec.convert(read["document_expires_on"], date | None)
        document = Document(
            type=read["document_type"],
            issuing_country=None,
            issuing_region=None,
            expires_on=expires_on,
        )
    return ProviderResult(
        provider=content["provider"],
        session_id=request["session_id"],
        outcome=Outcome(read["outcome"]),
        provider_status=read["provider_status"],
        reason_code=read["reason_code"],
        live=read["live"],
        subject_reference=read["subject_reference"],
        decided_at=msgspec.convert(read["decided_at"], datetime | None),
        date_of_birth=msgspec.convert(read["date_of_birth"], date | None),
        date_of_birth_source=Source(read["date_of_birth_source"]),
        addresses=(
            *(Address(**a | {"source": Source(a["source"])}) for a in read["addresses"]),
            Address(postal_code=accepted_zip, country="US", source=Source.OPERATOR),
        ),
        document=document,
        checks=tuple(
            Check(name=c["name"], verdict=Tri(c["verdict"]), raw=c["raw"]) for c in read["checks"]
        ),
    )
