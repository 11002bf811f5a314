"""One evaluation of a provider session: what identifies it, its record, and its sealed evidence."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, insert

from countersign.base.db.tables import verifications
from countersign.base.values import VERIFICATION, Mode, Reason, from_ns, rfc3339_ms, timed_id
from countersign.core.access.audit import AuditEntry
from countersign.core.access.clocks import AccountClock
from countersign.core.access.room import Access
from countersign.core.buyers.decision import SessionDecision
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.providers import Integration
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.rules import zip5
from countersign.core.buyers.sessions_sql import PendingSession, SessionKeys
from countersign.core.buyers.sql import encoded_reasons
from countersign.core.log.record import NewRecord, RecordType, account_fact
from countersign.core.parties import bound_now
from countersign.core.vault.vault import NONCE_BYTES, SHRED_KEY_BYTES, DataKey, Place
from countersign.identity.model import FactSource, ProviderEvidence, ProviderResult
from countersign_evidence.canonical import Json


@dataclass(frozen=True, slots=True, repr=False)
class VerificationAct:
    """The account that verifies a buyer, and the time."""

    account_id: str
    mode: Mode
    clock: AccountClock
    """The account's clock, which a sandbox uses."""
    time_ns: int
    """Real time, which the record has."""
    data_key: DataKey
    """The account's of this time."""

    @property
    def at(self) -> datetime:
        """Real time."""
        return from_ns(self.time_ns)

    @property
    def now(self) -> datetime:
        """The time of the account's clock."""
        return self.clock.at(self.at)


def verification_id(access: Access, time_ns: int) -> str:
    """A new identifier of a verification, and of its record."""
    return timed_id(VERIFICATION, time_ns, access.entropy(8))


def write_verification(  # noqa: PLR0917 - what every one says
    connection: Connection,
    room: Buyers,
    act: VerificationAct,
    cbid: str,
    provider: str,
    result: tuple[BuyerStatus, Sequence[Reason]],
    *,
    record_id: str | None = None,
    session_id: str | None = None,
    personal: Sequence[tuple[str, Any]] = (),
    members: Mapping[str, Json] | None = None,
    stored: tuple[BuyerStatus, Sequence[Reason]] | None = None,
    **indexes: bytes | None,
) -> NewRecord:
    """Write that a session was evaluated, and the record of it, of the same identifier and time.

    Args:
        connection: the act's.
        room: that of buyers.
        act: for whom, and when.
        cbid: the buyer.
        provider: its name, or what stands in the place of one.
        result: status and reasons, as the record says them.
        record_id: its identifier, if it was made before.
        session_id: the provider's.
        personal: personal fields that only some have.
        members: members that only some have.
        stored: status and reasons of the row, if they differ from `result`.
        indexes: keyed hashes: `subject_index` of the buyer or session for the count of ZIP codes
            tried, `zip_index` of the ZIP code where it was compared, and `session_index` of the
            provider session, which the sandbox has none of.
    """
    status, reasons = result
    record = account_fact(
        act.data_key,
        room.access.entropy,
        RecordType.VERIFICATION,
        record_id=record_id or verification_id(room.access, act.time_ns),
        account_id=act.account_id,
        mode=act.mode,
        time_ns=act.time_ns,
        members={
            "provider": provider,
            "simulated": act.mode is Mode.TEST,
            **(members or {}),
            **act.clock.member(act.at),
            # The records of the parties in force in this transaction.
            **bound_now(connection, act.account_id, act.mode).members(),
        },
        personal=(
            ("cbid", cbid),
            ("provider_identity_session_id", session_id),
            ("result", {"status": status.value, "reasons": [reason.value for reason in reasons]}),
            *personal,
        ),
        cbid_index=room.access.secret.blind_index(act.account_id, "cbid", cbid),
    )
    status, reasons = stored or result
    own = {"id": record.id, "account_id": act.account_id, "mode": act.mode, "at": record.at}
    found = {"cbid": cbid, "provider": provider, "status": status}
    row = own | found | {"reasons": encoded_reasons(reasons)} | indexes
    connection.execute(insert(verifications), row)
    room.journal.write(connection, [record])
    return record


_READ: Final = (
    *("outcome", "provider_status", "reason_code", "live", "subject_reference"),
    *("date_of_birth", "date_of_birth_source", "checks"),
)
"""Members of a provider's response that are stored unchanged."""
_READ_OF_ADDRESS: Final = ("postal_code", "country", "source", "document")
_RESPONSE: Final = (
    *("sha256", "http_status", "request_id", "api_version", "response_signature"),
    "sensitive_complete",
)
"""Stored facts about that response itself."""
_NO_ISSUER: Final = {"issuing_country": None, "issuing_region": None}
encode: Final = msgspec.json.Encoder(order="sorted").encode


class SessionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request that a session is evaluated for; stored, sealed, until the provider decides."""

    session_id: str
    shipping_zip: str
    subject_reference: str | None

    def __repr__(self) -> str:
        return "<SessionRequest: hidden>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Evaluation(VerificationAct):
    """The request about a session, the provider's result, and the decision."""

    integration: Integration
    request: SessionRequest
    result: ProviderResult
    decision: SessionDecision
    keys: SessionKeys
    quiet: bool = False
    """Whether the buyer of a started session is left unchanged until something is submitted."""
    polled: str | None = None
    """Of a poll, the followed session that it is for."""
    override: AuditEntry | None = None
    """The ZIP code that an operator accepted in place of a provider's proof."""
    for_account_only: bool = False
    """Whether a reviewer of the account accepted it, so that it counts for the account alone."""


def evidence_place(account_id: str, record_id: str, column: str = "payload") -> Place:
    """Where the evidence of a verification stands, sealed."""
    return Place(table="verification_evidence", column=column, account=account_id, row_id=record_id)


def pending_place(account_id: str, id_: str) -> Place:
    """Where the request about an undecided session stands, sealed."""
    return Place(table="pending_sessions", column="request", account=account_id, row_id=id_)


def described(override: AuditEntry) -> dict[str, object]:
    """Its part in record and evidence: verification, document, reason and operator."""
    return {**override.details, "operator": override.actor}


def evidence_of(
    work: Evaluation, decision: SessionDecision, cbid: str, salt: bytes
) -> tuple[bytes, bytes]:
    """The grounds of the decision, for later questions, and the provider's whole response: JSON."""
    whole = None if work.result.evidence is None else _response(work.result.evidence)
    result, settings = work.result, work.integration.settings
    content = {
        "v": 1,
        "cbid": cbid,
        "provider": settings.provider,
        "base_url": settings.base_url,
        "request": msgspec.to_builtins(work.request),
        "answer": whole and _cut(whole, salt),
        "override": work.override and described(work.override),
        "read": {name: getattr(result, name) for name in _READ}
        | {
            "decided_at": result.decided_at and rfc3339_ms(result.decided_at),
            "addresses": [
                {name: getattr(one, name) for name in _READ_OF_ADDRESS} for one in result.addresses
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
    return encode(content), encode(whole)


def _cut(response: dict[str, Any], salt: bytes) -> dict[str, Any]:
    """Facts about a response, and a salted digest of it: the plain one could be tried."""
    digest = sha256(salt + b64decode(response["body"])).hexdigest()
    facts = {name: response[name] for name in response.keys() - {"body", "sha256"}}
    further = [_cut(more, salt) for more in response["further"]]
    return facts | {"salt": salt.hex(), "salted_sha256": digest, "further": further}


def _response(evidence: ProviderEvidence) -> dict[str, Any]:
    return {
        **{name: getattr(evidence, name) for name in _RESPONSE},
        "body": b64encode(evidence.raw_body).decode("ascii"),
        "request": evidence.request_target,
        "retrieved_at": rfc3339_ms(evidence.retrieved_at),
        "further": [_response(more) for more in evidence.further],
    }


def result_in(content: dict[str, Any], accepted_zip: str) -> ProviderResult:
    """A provider's result, read from its evidence, with the ZIP code that an operator accepts."""
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


FIRST_POLL: Final = timedelta(seconds=15)


def session_index(room: Buyers, integration: Integration, session_id: str) -> bytes:
    """The keyed hash that identifies a provider's session."""
    return room.access.secret.blind_index(integration.namespace, "provider_session", session_id)


def asked_index(room: Buyers, integration: Integration, session_id: str, reference: str) -> bytes:
    """The keyed hash of a session and the reference in the request."""
    index, both = room.access.secret.blind_index, f"{session_id}\x00{reference}"
    return index(integration.namespace, "provider_session_and_reference", both)


def zip_index(room: Buyers, account_id: str, zip_: str) -> bytes:
    """The keyed hash of a ZIP code in the questions of an account."""
    return room.access.secret.blind_index(account_id, "zip", zip5(zip_))


def to_follow(  # noqa: PLR0917 - all that is kept
    room: Buyers,
    data_key: DataKey,
    integration: Integration,
    request: SessionRequest,
    asked_index: bytes,
    cbid: str | None,
    time_ns: int,
) -> PendingSession:
    """An undecided session, with its request sealed under the account's key of this time."""
    entropy, account_id = room.access.entropy, integration.settings.account_id
    id_ = timed_id("ses", time_ns, entropy(8))
    drawn = entropy(SHRED_KEY_BYTES + NONCE_BYTES)
    shred_key, nonce = drawn[:SHRED_KEY_BYTES], drawn[SHRED_KEY_BYTES:]
    place = pending_place(account_id, id_)
    sealed = data_key.seal(shred_key=shred_key, nonce=nonce, plaintext=encode(request), **place)
    at = from_ns(time_ns)
    return PendingSession(
        id=id_,
        account_id=account_id,
        mode=integration.mode,
        session_index=session_index(room, integration, request.session_id),
        asked_index=asked_index,
        cbid=cbid,
        request=sealed,
        shred_key=shred_key,
        created_at=at,
        next_poll_at=at + FIRST_POLL,
    )
