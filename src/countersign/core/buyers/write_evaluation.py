"""Write an evaluated session: the buyer, the verification with its evidence, sessions to poll."""

from __future__ import annotations

from dataclasses import replace as dataclass_with
from datetime import date, datetime
from typing import Any, Final, NamedTuple, TypeGuard

from msgspec.structs import replace
from sqlalchemy import Connection, insert, select

from countersign.base.db.tables import accounts, verification_evidence, verifications
from countersign.base.errors import (
    CountersignError,
    ProviderSessionNotBound,
    ProviderSessionNotFound,
    UnknownSubject,
)
from countersign.base.values import BUYER, SANDBOX_BUYER, Mode, Reason, base32, to_ms
from countersign.core.access.audit import write_audit
from countersign.core.access.idempotency import Remember
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.buyers import sessions_sql
from countersign.core.buyers.decision import (
    OTHER_SUBJECT,
    TAKEN_BACK,
    SessionDecision,
    nothing_submitted,
)
from countersign.core.buyers.model import (
    RESPONSE_KEPT,
    Buyer,
    BuyerStatus,
    BuyerStatusView,
    ProvedSession,
    VerificationAttempt,
    after_attempt,
    after_revocation,
    is_against,
    status_view,
)
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.schemas import VerifyResult, answered
from countersign.core.buyers.session_evidence import (
    Evaluation,
    described,
    evidence_of,
    evidence_place,
    to_follow,
    write_verification,
    zip_index,
)
from countersign.core.buyers.sessions_sql import SessionSubject, link, person_to_change
from countersign.core.buyers.sql import encoded_reasons, write_buyer, write_status_event
from countersign.core.buyers.started_sql import StartedCheck, of_session, settle
from countersign.core.buyers.zips import ZipSubject, count_zip, proved_zip_index
from countersign.core.vault.vault import NONCE_BYTES
from countersign.identity.model import FactSource, Finding
from countersign_evidence.canonical import Json

_CBID_BYTES: Final = 16
_SALT_BYTES: Final = 16


class _Found(NamedTuple):
    """The result of finding the buyer."""

    person: SessionSubject
    before: Buyer | None
    """The buyer as stored, locked."""
    cbid: str
    decision: SessionDecision
    subject_index: bytes
    """The keyed hash of the buyer for the count of ZIP codes tried."""
    zip_index: bytes | None
    """None if the ZIP code was not compared, so it could not be guessed."""


def write_evaluation(
    connection: Connection, room: Buyers, work: Evaluation, entry: Remember[bytes]
) -> VerifyResult | CountersignError | None:
    """Find the buyer, and write the verification with all that belongs to it."""
    polled = work.polled
    followed = polled is not None and sessions_sql.is_followed(connection, polled)
    reach, session = work.integration.reach, work.keys.session
    started = of_session(connection, reach, session, to_change=True)
    if work.quiet and not (followed if polled is not None else started):
        # Erased, or asked about again, while the provider was being asked.
        return ProviderSessionNotFound()
    if work.quiet and _is_unsubmitted(started, work):
        _write_unsubmitted(connection, work, started)
        return None
    found = _find(connection, room, work)
    if isinstance(found, CountersignError):
        return found
    person, before, now = found.person, found.before, work.now
    blank = Buyer(
        cbid=found.cbid,
        account_id=work.account_id,
        mode=work.mode,
        simulated=work.mode is Mode.TEST,
    )
    attempt = _attempt(room.access.secret, work, found)
    buyer = after_attempt(before or blank, attempt)
    found = _with_reason(found, attempt)
    if person.revoked:
        # No one gets away from a revocation by another document or another session.
        buyer = after_revocation(buyer)
    write_buyer(connection, before, buyer)
    verification_id = None
    if buyer != before or not _is_repeated(connection, work, found):
        verification_id = _write_verification(connection, room, work, found)
    if before is None or _told(buyer) != _told(before):
        # The same decision for another account is no news.
        write_status_event(connection, buyer, work.at, shown=now)
    link(connection, work.keys, person, buyer, work.at, now)
    if work.override is not None:
        write_audit(connection, work.override)
    view = decision_view(found.decision, now)
    if buyer.status is BuyerStatus.REVOKED:
        view = status_view(buyer, work.account_id, work.integration.rules, now)
    if started is None or _is_of(started, room, work):
        _follow(connection, room, work, found)
        _settle(connection, work, started, (buyer.cbid, view, verification_id))
    return answered(connection, entry, buyer.cbid, view)


def _with_reason(found: _Found, attempt: VerificationAttempt) -> _Found:
    """With the reason that the attempt takes from what was proved, if it does."""
    proofs = found.before.proofs if found.before else ()
    if not attempt.withdraws and not any(is_against(attempt, proof) for proof in proofs):
        return found
    reasons = (*found.decision.reasons, Reason.VERIFICATION_WITHDRAWN)
    return found._replace(decision=dataclass_with(found.decision, reasons=reasons))


def _told(buyer: Buyer) -> Buyer:
    """What an event tells of the buyer, whichever accounts it was that asked."""
    proofs = [replace(proof, accounts=(), contradicted_for=()) for proof in buyer.proofs]
    alone = buyer.attempted_by if buyer.contradicted else None
    return replace(buyer, proofs=tuple(proofs), attempted_by=alone)


def _is_unsubmitted(started: StartedCheck | None, work: Evaluation) -> TypeGuard[StartedCheck]:
    """Whether the session was started here, and nothing was submitted to it."""
    return started is not None and not started.check.cbid and nothing_submitted(work.result)


def _is_of(started: StartedCheck, room: Buyers, work: Evaluation) -> bool:
    """Whether the request is for the ZIP code of the started check, and for no other reference.

    Requests for another one reveal nothing about it.
    """
    if work.request.subject_reference not in {None, started.reference}:
        return False
    return started.zip_index == zip_index(room, work.account_id, work.request.shipping_zip)


def _settle(
    connection: Connection,
    work: Evaluation,
    started: StartedCheck | None,
    outcome: tuple[str, BuyerStatusView, str | None],
) -> None:
    """Write the result of a check that was started here: buyer, status, and a new verification."""
    if _is_unsubmitted(started, work):
        # Its buyer can still continue, whatever response a vendor gets that asks too early.
        _write_unsubmitted(connection, work, started)
    elif started is not None:
        cbid, view, record = outcome
        decided = {"cbid": cbid, "verification": record or started.check.verification}
        after = replace(started.check, status=view.status, reasons=view.reasons, **decided)
        settle(connection, started, after, work.at)


def _write_unsubmitted(connection: Connection, work: Evaluation, started: StartedCheck) -> None:
    """For a session without a submission, write only the reason, or that it is over."""
    decision = work.decision
    if decision.is_followed and work.result.reason is None:
        return
    over = replace(started.check, status=decision.status, reasons=decision.reasons)
    settle(connection, started, over, work.at)
    if decision.is_followed:
        return
    for index in (work.keys.session, work.keys.with_reference):
        if index is not None:
            sessions_sql.unfollow(connection, work.account_id, work.mode, index)


def _find(connection: Connection, room: Buyers, work: Evaluation) -> _Found | CountersignError:
    person, before = person_to_change(connection, work.keys)
    if not person.bound:
        return ProviderSessionNotBound(OTHER_SUBJECT)
    if before is None and work.override is not None:
        return UnknownSubject("The buyer was erased in the meantime. Nothing was changed.")
    # Random, not time-ordered: it is passed around, and must not reveal when it was created.
    entropy = room.access.entropy
    prefix = BUYER if work.mode is Mode.LIVE else SANDBOX_BUYER
    cbid = person.cbid or f"{prefix}_{base32(int.from_bytes(entropy(_CBID_BYTES), 'big'))}"
    account_id, tried = work.account_id, None
    subject_index = room.access.secret.blind_index(account_id, "buyer", cbid)
    if work.result.outcome is Finding.VERIFIED and work.override is None:
        # An operator's acceptance is no guess.
        tried = zip_index(room, account_id, work.request.shipping_zip)
        subject = ZipSubject(account_id, work.mode, subject_index)
        refusal = count_zip(connection, subject, tried, work.at)
        if refusal is not None:
            return refusal
    decision = work.decision
    if person.first_verified_at is not None:
        decision = decision.since(person.first_verified_at, work.integration.rules)
    return _Found(person, before, cbid, decision, subject_index, tried)


def _attempt(secret: DeploymentSecret, work: Evaluation, found: _Found) -> VerificationAttempt:
    decision, proof, session = found.decision, None, work.keys.session.hex()
    own, outcome, rules = work.account_id, work.result.outcome, work.integration.rules
    if decision.facts and decision.began_at and decision.expires_at:
        days = dict[str, date]()
        for one in decision.zips:
            alone = work.for_account_only and one.source is FactSource.OPERATOR
            index = proved_zip_index(
                *(secret, found.cbid, one.digits, one.source),
                country_assumed=one.country_assumed,
                account_id=own if alone else None,
            )
            days[index] = max(one.last_day, days.get(index, date.min))
        proof = ProvedSession(
            session=session,
            verified_at=to_ms(work.now),
            began_at=to_ms(decision.began_at),
            expires_at=to_ms(decision.expires_at),
            facts=decision.facts,
            zips=tuple(days),
            document_expires_on=decision.document_expires_on,
            zip_days={index: day for index, day in days.items() if day < date.max},
            accounts=(own,),
        )
    too_young = outcome is Finding.VERIFIED and Reason.AGE_BELOW_MINIMUM in decision.reasons
    return VerificationAttempt(
        status=decision.status,
        session=session,
        reasons=decision.reasons,
        proof=proof,
        withdraws=found.person.first_verified_at is not None and outcome in TAKEN_BACK,
        younger_than=rules.minimum_age if too_young else None,
        account_id=own,
    )


def _is_repeated(connection: Connection, work: Evaluation, found: _Found) -> bool:
    """Whether the last decision on this session for this account was the same."""
    last = connection.execute(
        select(verifications.c.status, verifications.c.reasons, verifications.c.zip_index)
        .filter_by(cbid=found.cbid, account_id=work.account_id)
        .filter_by(session_index=found.person.kept_under)
        .order_by(verifications.c.id.desc())
        .limit(1)
    ).one_or_none()
    decision = found.decision
    same = (decision.status, encoded_reasons(decision.reasons), found.zip_index)
    return last is not None and tuple(last) == same


def _write_verification(
    connection: Connection, room: Buyers, work: Evaluation, found: _Found
) -> str:
    """Write the verification with its record, and the evidence under the record's shred key."""
    cbid, decision, override = found.cbid, found.decision, work.override
    settings, response = work.integration.settings, work.result.evidence
    members: dict[str, Json] = {} if settings.base_url is None else {"endpoint": settings.base_url}
    personal: list[tuple[str, Any]] = [("evidence_sha256", response.sha256 if response else None)]
    if override is not None:
        members["override"] = "zip"
        personal.append(("override", described(override)))
    record = write_verification(
        *(connection, room, work, cbid, settings.provider, (decision.status, decision.reasons)),
        session_id=work.request.session_id,
        personal=personal,
        members=members,
        subject_index=found.subject_index,
        zip_index=found.zip_index,
        session_index=found.person.kept_under,
    )
    entropy, seal = room.access.entropy, work.data_key.seal
    facts, whole = evidence_of(work, decision, cbid, entropy(_SALT_BYTES))
    until = _whole_until(connection, work, decision.status)
    row: dict[str, object] = {"record_id": record.id, "account_id": work.account_id}
    for column, text in ({"payload": facts} | ({"response": whole} if until else {})).items():
        own, nonce = evidence_place(work.account_id, record.id, column), entropy(NONCE_BYTES)
        row[column] = seal(shred_key=record.shred_key, nonce=nonce, plaintext=text, **own)
    row |= {"mode": work.mode, "whole_until": until}
    connection.execute(insert(verification_evidence), row)
    return record.id


def _whole_until(connection: Connection, work: Evaluation, to: BuyerStatus) -> datetime | None:
    """Until when the whole response is kept: while a reviewer may need it, or the account must."""
    own = select(accounts.c.responses_until).where(accounts.c.id == work.account_id)
    review = work.at + RESPONSE_KEPT if to is not BuyerStatus.VERIFIED else None
    ends = [at for at in (review, connection.execute(own).scalar()) if at and at > work.at]
    return max(ends, default=None) if work.result.evidence else None


def _follow(connection: Connection, room: Buyers, work: Evaluation, found: _Found) -> None:
    """Poll the session from now on, or no longer."""
    keys, kept_under = work.keys, found.person.kept_under
    if kept_under == keys.session and keys.with_reference is not None:
        # The provider has named its subject: requests from before that are settled.
        sessions_sql.unfollow(connection, work.account_id, work.mode, keys.with_reference)
    if not found.decision.is_followed:
        sessions_sql.unfollow(connection, work.account_id, work.mode, kept_under)
        return
    sealed_by = room, work.data_key, work.integration
    pending = to_follow(*sealed_by, work.request, kept_under, found.cbid, work.time_ns)
    sessions_sql.follow(connection, pending)


def decision_view(decision: SessionDecision, now: datetime) -> BuyerStatusView:
    """The result of this evaluation, whichever buyer it is about."""
    status, expires_at = decision.status, decision.expires_at
    if status is not BuyerStatus.VERIFIED or expires_at is None:
        return BuyerStatusView(status=status, reasons=decision.reasons)
    if now >= expires_at:
        # A session that was decided long ago can have expired before it is sent.
        status = BuyerStatus.EXPIRED
    return BuyerStatusView(status=status, verified_at=now, expires_at=expires_at)
