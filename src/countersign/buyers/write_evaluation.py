"""Write what an evaluation of a provider session makes of the buyer, in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from msgspec.structs import replace
from sqlalchemy import Connection, insert, select

from countersign.access.audit import write_audit
from countersign.access.idempotency import IdempotencyEntry, keep_answers
from countersign.access.secrets import DeploymentSecret
from countersign.buyers import sessions_sql
from countersign.buyers.decision import OTHER_SUBJECT, SessionDecision, decide
from countersign.buyers.model import (
    Buyer,
    BuyerStatus,
    BuyerStatusView,
    ProvedSession,
    VerificationAttempt,
    after_attempt,
    after_revocation,
    first_verification,
)
from countersign.buyers.person_sql import SessionSubject, link, person_to_change
from countersign.buyers.result import VerifyResult, verify_result
from countersign.buyers.room import Buyers
from countersign.buyers.session_evidence import (
    EVIDENCE_TABLE,
    PENDING_TABLE,
    Evaluation,
    encode,
    evidence_of,
)
from countersign.buyers.sql import (
    encoded_reasons,
    write_buyer,
    write_status_event,
    write_verification,
)
from countersign.buyers.zip_attempts_sql import ZipSubject, count_zip
from countersign.db.tables import verification_evidence, verifications
from countersign.errors import (
    CountersignError,
    ProviderSessionNotBound,
    ProviderSessionNotFound,
    UnknownSubject,
)
from countersign.identity.model import Outcome, Source
from countersign.identity.postal_code import zip5
from countersign.ids import BUYER, VERIFICATION, base32, timed_id
from countersign.instant import from_ns, to_ms
from countersign.log.append_record import account_fact
from countersign.log.record import NewRecord, RecordType
from countersign.mode import Mode
from countersign.vault.vault import NONCE_BYTES, SHRED_KEY_BYTES

FIRST_POLL: Final = timedelta(seconds=15)
_PENDING_ID: Final = "ses"
_CBID_BYTES: Final = 16


class _Found(NamedTuple):
    """What is known once the buyer has been found."""

    person: SessionSubject
    before: Buyer | None
    """The buyer as stored, locked."""
    cbid: str
    decision: SessionDecision
    attempt: VerificationAttempt
    subject_index: bytes
    """The keyed hash of the buyer for the count of ZIP codes tried."""
    zip_index: bytes | None
    """None where the ZIP code was not compared, so that nothing could be learned of it."""


def write_evaluation(
    connection: Connection,
    room: Buyers,
    work: Evaluation,
    entry: Callable[[bytes], IdempotencyEntry] | None,
) -> VerifyResult | CountersignError:
    """Find the buyer, and write the verification with all that belongs to it."""
    found = _find(connection, room, work)
    if isinstance(found, CountersignError):
        return found
    attempt, before, now = found.attempt, found.before, from_ns(work.time_ns)
    buyer = _buyer(found, work.account_id)
    write_buyer(connection, before, buyer)
    repeated = buyer == before and _is_repeated(connection, work, found)
    record = None if repeated else _record(room, work, found)
    if record is not None:
        write_verification(
            connection,
            record,
            attempt,
            cbid=found.cbid,
            provider=work.integration.settings.provider,
            subject_index=found.subject_index,
            zip_index=found.zip_index,
            session_index=found.person.kept_under,
        )
    if before is None or buyer != replace(before, attempted_by=buyer.attempted_by):
        # The same decision for another account is no news.
        write_status_event(connection, buyer, now)
    verified = attempt.status is BuyerStatus.VERIFIED
    link(connection, work.keys, found.person, buyer, now, verified=verified)
    _follow(connection, room, work, found)
    if record is not None:
        room.journal.write(connection, [record])
        _write_evidence(connection, room, work, found, record)
    if work.override is not None:
        write_audit(connection, work.override.audit)
    result = verify_result(buyer.cbid, _buyer_view(buyer, found.decision, now))
    if entry is not None:
        keep_answers(connection, [entry(result.body)])
    return result


def _find(connection: Connection, room: Buyers, work: Evaluation) -> _Found | CountersignError:
    if work.polled is not None and not sessions_sql.is_followed(connection, work.polled):
        # Erased, or asked about again, while the provider was being asked.
        return ProviderSessionNotFound()
    person, before = person_to_change(connection, work.keys)
    if not person.bound:
        return ProviderSessionNotBound(OTHER_SUBJECT)
    if before is None and work.override is not None:
        return UnknownSubject("The buyer was erased in the meantime. Nothing was changed.")
    # Random, not time-ordered: it is handed around, and must not say when it was made.
    cbid = person.cbid or f"{BUYER}_{base32(int.from_bytes(room.entropy(_CBID_BYTES), 'big'))}"
    subject = ZipSubject(
        work.account_id, Mode.LIVE, room.secret.blind_index(work.account_id, "buyer", cbid)
    )
    zip_index = None
    if work.result.outcome is Outcome.VERIFIED and work.override is None:
        # What an operator accepts is no guess.
        zip_ = zip5(work.request.shipping_zip)
        zip_index = room.secret.blind_index(work.account_id, "zip", zip_)
        refusal = count_zip(connection, subject, zip_index, from_ns(work.time_ns))
        if refusal is not None:
            return refusal
    decision = _decision(work, person)
    attempt = _attempt(room.secret, work, decision, cbid)
    return _Found(person, before, cbid, decision, attempt, subject.subject_index, zip_index)


def _decision(work: Evaluation, person: SessionSubject) -> SessionDecision:
    """A session that is sent again does not get younger by it."""
    if person.first_verified_at is None or work.decision.status is not BuyerStatus.VERIFIED:
        return work.decision
    return decide(
        work.result,
        work.integration.rules,
        shipping_zip=work.request.shipping_zip,
        subject_reference=work.request.subject_reference,
        now=from_ns(work.time_ns),
        first_verified_at=person.first_verified_at,
    )


def _attempt(
    secret: DeploymentSecret, work: Evaluation, decision: SessionDecision, cbid: str
) -> VerificationAttempt:
    now, proof = from_ns(work.time_ns), None
    if decision.facts and decision.began_at and decision.expires_at:
        proof = ProvedSession(
            session=work.keys.session.hex(),
            verified_at=to_ms(now),
            began_at=to_ms(decision.began_at),
            expires_at=to_ms(decision.expires_at),
            facts=decision.facts,
            zips=tuple(
                proved_zip_index(secret, cbid, zip_, source, country_assumed=assumed)
                for zip_, source, assumed in decision.zips
            ),
            document_expires_on=decision.document_expires_on,
        )
    return VerificationAttempt(
        status=decision.status,
        at=now,
        expires_at=decision.expires_at,
        reasons=decision.reasons,
        proof=proof,
        account_id=work.account_id,
    )


def _buyer(found: _Found, account_id: str) -> Buyer:
    if found.before is not None:
        buyer = after_attempt(found.before, found.attempt)
    else:
        buyer = first_verification(
            cbid=found.cbid,
            account_id=account_id,
            mode=Mode.LIVE,
            simulated=False,
            attempt=found.attempt,
        )
    # Nobody gets away from a revocation by another document or another session.
    return after_revocation(buyer) if found.person.revoked else buyer


def _is_repeated(connection: Connection, work: Evaluation, found: _Found) -> bool:
    """Whether the last decision on this session for this account was the same."""
    last = connection.execute(
        select(verifications.c.status, verifications.c.reasons, verifications.c.zip_index)
        .where(
            verifications.c.cbid == found.cbid,
            verifications.c.account_id == work.account_id,
            verifications.c.session_index == found.person.kept_under,
        )
        .order_by(verifications.c.id.desc())
        .limit(1)
    ).one_or_none()
    attempt = found.attempt
    same = (attempt.status, encoded_reasons(attempt.reasons), found.zip_index)
    return last is not None and tuple(last) == same


def _record(room: Buyers, work: Evaluation, found: _Found) -> NewRecord:
    cbid, decision = found.cbid, found.decision
    settings, response = work.integration.settings, work.result.evidence
    members: dict[str, Any] = {"provider": settings.provider, "simulated": False}
    if settings.base_url is not None:
        members["endpoint"] = settings.base_url
    if work.override is not None:
        members["override"] = "zip"
    result = {
        "status": decision.status.value,
        "reasons": [reason.value for reason in decision.reasons],
    }
    return account_fact(
        work.data_key,
        room.entropy,
        RecordType.VERIFICATION,
        record_id=timed_id(VERIFICATION, work.time_ns, room.entropy(8)),
        account_id=work.account_id,
        mode=Mode.LIVE,
        time_ns=work.time_ns,
        members=members,
        personal=(
            ("cbid", cbid),
            ("provider_identity_session_id", work.request.session_id),
            ("result", result),
            ("evidence_sha256", response.sha256 if response else None),
            *([] if work.override is None else [("override", work.override.described())]),
        ),
        cbid_index=room.secret.blind_index(work.account_id, "cbid", cbid),
    )


def _write_evidence(
    connection: Connection, room: Buyers, work: Evaluation, found: _Found, record: NewRecord
) -> None:
    """Write the evidence, sealed with the shred key of its record."""
    if record.disclosures is None:
        raise AssertionError("a record with personal fields has disclosures")
    sealed = work.data_key.seal(
        shred_key=record.disclosures.shred_key,
        nonce=room.entropy(NONCE_BYTES),
        table=EVIDENCE_TABLE,
        column="payload",
        account=work.account_id,
        row_id=record.id,
        plaintext=evidence_of(work, found.decision, found.cbid),
    )
    connection.execute(
        insert(verification_evidence),
        {
            "record_id": record.id,
            "account_id": work.account_id,
            "mode": Mode.LIVE,
            "payload": sealed,
        },
    )


def _follow(connection: Connection, room: Buyers, work: Evaluation, found: _Found) -> None:
    """Poll the session from now on, or no longer."""
    keys, asked_index = work.keys, found.person.kept_under
    if asked_index == keys.session and keys.with_reference is not None:
        # The provider has named its subject: what was asked before that is settled.
        sessions_sql.unfollow(connection, work.account_id, keys.with_reference)
    if not found.decision.is_followed:
        sessions_sql.unfollow(connection, work.account_id, asked_index)
        return
    id_ = timed_id(_PENDING_ID, work.time_ns, room.entropy(8))
    drawn = room.entropy(SHRED_KEY_BYTES + NONCE_BYTES)
    sealed = work.data_key.seal(
        shred_key=drawn[:SHRED_KEY_BYTES],
        nonce=drawn[SHRED_KEY_BYTES:],
        table=PENDING_TABLE,
        column="request",
        account=work.account_id,
        row_id=id_,
        plaintext=encode(work.request),
    )
    now = from_ns(work.time_ns)
    pending = sessions_sql.PendingSession(
        id=id_,
        account_id=work.account_id,
        mode=Mode.LIVE,
        cbid=found.cbid,
        request=sealed,
        shred_key=drawn[:SHRED_KEY_BYTES],
        created_at=now,
        next_poll_at=now + FIRST_POLL,
    )
    sessions_sql.follow(connection, pending, session_index=keys.session, asked_index=asked_index)


def _buyer_view(buyer: Buyer, decision: SessionDecision, now: datetime) -> BuyerStatusView:
    if buyer.status is not BuyerStatus.REVOKED:
        return decision_view(decision, now)
    return BuyerStatusView(
        status=BuyerStatus.REVOKED,
        verified_at=buyer.verified_at,
        expires_at=buyer.expires_at,
        reasons=(),
    )


def decision_view(decision: SessionDecision, now: datetime) -> BuyerStatusView:
    """The result of this evaluation, whichever buyer it is about."""
    if decision.status is not BuyerStatus.VERIFIED or decision.expires_at is None:
        return BuyerStatusView(
            status=decision.status, verified_at=None, expires_at=None, reasons=decision.reasons
        )
    # A session that was decided long ago can have expired before it is sent.
    expired = now >= decision.expires_at
    return BuyerStatusView(
        status=BuyerStatus.EXPIRED if expired else BuyerStatus.VERIFIED,
        verified_at=now,
        expires_at=decision.expires_at,
        reasons=(),
    )


def proved_zip_index(
    secret: DeploymentSecret,
    cbid: str,
    zip_: str,
    source: Source,
    *,
    country_assumed: bool = False,
) -> str:
    """The keyed hash of a ZIP code that this source has proved for a buyer, in hexadecimal."""
    field = f"proved_zip_{source.value}{'_assumed_us' if country_assumed else ''}"
    return secret.blind_index(cbid, field, zip5(zip_)).hex()
