"""Evaluate a provider session: ask the provider, decide, and write the result, all or nothing.

Nothing is kept between the provider's response and the commit: a process that dies there leaves no
trace, and the same request leads to the same buyer later.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec.structs import replace
from sqlalchemy import Connection, insert, select
from structlog.contextvars import bound_contextvars

from countersign.access.audit import AuditEntry, write_audit
from countersign.access.idempotency import Remember, keep_answer
from countersign.access.secrets import DeploymentSecret
from countersign.buyers import sessions_sql
from countersign.buyers.decision import (
    OTHER_SUBJECT,
    SessionDecision,
    decide,
    final,
    is_withheld,
    refuse_unbound,
    refuse_unusable,
)
from countersign.buyers.model import (
    Buyer,
    BuyerStatus,
    BuyerStatusView,
    ProvedSession,
    VerificationAttempt,
    after_attempt,
    after_revocation,
)
from countersign.buyers.providers import Integration
from countersign.buyers.room import Buyers
from countersign.buyers.rules import zip5
from countersign.buyers.schemas import VerifyResult, verify_result
from countersign.buyers.session_evidence import (
    Evaluation,
    SessionRequest,
    described,
    encode,
    evidence_of,
    evidence_place,
    pending_place,
)
from countersign.buyers.sessions_sql import SessionKeys, SessionSubject, link, person_to_change
from countersign.buyers.sql import (
    ZipSubject,
    count_zip,
    encoded_reasons,
    write_buyer,
    write_status_event,
    write_verification,
)
from countersign.db.tables import verification_evidence, verifications
from countersign.errors import (
    CountersignError,
    InvalidArgument,
    ProviderSessionNotBound,
    ProviderSessionNotFound,
    UnknownSubject,
    VerificationMisconfigured,
)
from countersign.identity.model import FactSource, Finding, ProviderResult
from countersign.ids import BUYER, VERIFICATION, base32, timed_id
from countersign.instant import from_ns, to_ms
from countersign.log.append_record import account_fact
from countersign.log.record import RecordType
from countersign.mode import Mode
from countersign.reason import Reason
from countersign.vault.vault import NONCE_BYTES, SHRED_KEY_BYTES

FIRST_POLL: Final = timedelta(seconds=15)
_PENDING_ID: Final = "ses"
_CBID_BYTES: Final = 16
_WITHHELD: Final = (
    "The identity provider approved the session, but does not show its date of birth to the "
    "credentials of this account."
)


async def evaluate(
    room: Buyers,
    integration: Integration,
    request: SessionRequest,
    entry: Remember[bytes] = None,
    *,
    give_up: bool = False,
    polled: str | None = None,
) -> VerifyResult:
    """Evaluate a session as the provider reports it now; durable when this returns.

    `polled` is the followed session that this is a poll of. With `give_up`, the provider is not
    asked again about a session that is still not decided.

    Raises:
        ProviderSessionNotFound: there is no such session.
        ProviderSessionNotBound: it is about another subject, of the provider's test mode, or of
            another integration.
        ProviderUnavailable: the provider returned no usable response; nothing was written.
        VerificationMisconfigured: it refuses the account's credentials.
        RateLimited: too many ZIP codes tried for one buyer.
    """
    settings = integration.settings
    try:
        provided = await _fetch(room, integration, request.session_id)
        work = await _evaluated(
            room, integration, request, provided, give_up=give_up, polled=polled
        )
        result = await room.access.database.write(_write, room, work, entry)
    except CountersignError as error:
        room.watch.failed(settings.provider, error.code)
        raise
    view = result.view
    room.watch.evaluated(settings.account_id, settings.provider, view.status.value, view.reasons)
    return result


async def override(  # noqa: PLR0917 - all that `_evaluated` takes, and how to keep the response
    room: Buyers,
    integration: Integration,
    request: SessionRequest,
    result: ProviderResult,
    accepted: AuditEntry,
    entry: Remember[bytes] = None,
) -> VerifyResult:
    """Evaluate what a provider said before, with what an operator accepts; durable on return.

    Raises InvalidArgument if the buyer would not be verified by it; nothing was written.
    """
    work = await _evaluated(room, integration, request, result, override=accepted)
    view = decision_view(work.decision, work.now)
    if view.status is not BuyerStatus.VERIFIED:
        why = ", ".join(view.reasons) or view.status.value
        msg = f"This would not make the buyer verified: {why}. Nothing was changed."
        raise InvalidArgument(msg)
    return await room.access.database.write(_write, room, work, entry)


async def _fetch(room: Buyers, integration: Integration, session_id: str) -> ProviderResult:
    """What the provider says of the session, if that is usable."""
    account_id, provider = integration.settings.account_id, integration.settings.provider
    began = room.access.clock.monotonic()
    try:
        # Whatever is logged of the response names the account.
        with bound_contextvars(account=account_id):
            result = await integration.provider.retrieve(session_id)
    except ValueError:
        raise ProviderSessionNotFound from None
    room.watch.asked(provider, room.access.clock.monotonic() - began, result.unknown_fields)
    refuse_unusable(result)
    if is_withheld(result):
        # The buyer can do nothing about it: what is missing is a permission of the credentials.
        room.watch.withheld(account_id, provider)
        raise VerificationMisconfigured(_WITHHELD)
    return result


async def _evaluated(
    room: Buyers,
    integration: Integration,
    request: SessionRequest,
    result: ProviderResult,
    *,
    give_up: bool = False,
    polled: str | None = None,
    override: AuditEntry | None = None,
) -> Evaluation:
    """All that is known before it is known who the buyer is."""
    account_id, time_ns = integration.settings.account_id, room.access.clock.time_ns()
    now = from_ns(time_ns)
    asked, named = request.subject_reference, result.subject_reference
    decision = decide(
        result,
        integration.rules,
        shipping_zip=request.shipping_zip,
        subject_reference=asked,
        now=now,
    )
    if Reason.TEST_SESSION in decision.reasons:
        room.watch.not_live(account_id, integration.settings.provider)
    refuse_unbound(decision, result)
    if give_up:
        decision = final(decision)
    hashed = partial(room.access.secret.blind_index, integration.namespace)
    both = None if asked is None else f"{request.session_id}\x00{asked}"
    keys = SessionKeys(
        session=hashed("provider_session", request.session_id),
        reference=None if asked is None else hashed("subject_reference", asked),
        with_reference=None if both is None else hashed("provider_session_and_reference", both),
        provider_reference=None if named is None else hashed("subject_reference", named),
        fingerprint=result.document_fingerprint,
        verifies=decision.status is BuyerStatus.VERIFIED,
    )
    return Evaluation(
        integration=integration,
        account_id=account_id,
        request=request,
        result=result,
        decision=decision,
        keys=keys,
        data_key=await room.vault.data_key(account_id, time_ns),
        time_ns=time_ns,
        now=now,
        polled=polled,
        override=override,
    )


class _Found(NamedTuple):
    """What is known once the buyer has been found."""

    person: SessionSubject
    before: Buyer | None
    """The buyer as stored, locked."""
    cbid: str
    decision: SessionDecision
    subject_index: bytes
    """The keyed hash of the buyer for the count of ZIP codes tried."""
    zip_index: bytes | None
    """None where the ZIP code was not compared, so that nothing could be learned of it."""


def _write(
    connection: Connection,
    room: Buyers,
    work: Evaluation,
    entry: Remember[bytes],
) -> VerifyResult | CountersignError:
    """Find the buyer, and write the verification with all that belongs to it."""
    found = _find(connection, room, work)
    if isinstance(found, CountersignError):
        return found
    person, before, now = found.person, found.before, work.now
    blank = Buyer(cbid=found.cbid, account_id=work.account_id, mode=Mode.LIVE)
    buyer = after_attempt(before or blank, _attempt(room.access.secret, work, found))
    if person.revoked:
        # No one gets away from a revocation by another document or another session.
        buyer = after_revocation(buyer)
    write_buyer(connection, before, buyer)
    if buyer != before or not _is_repeated(connection, work, found):
        _write_verification(connection, room, work, found)
    if before is None or buyer != replace(before, attempted_by=buyer.attempted_by):
        # The same decision for another account is no news.
        write_status_event(connection, buyer, now)
    link(connection, work.keys, person, buyer, now)
    _follow(connection, room, work, found)
    if work.override is not None:
        write_audit(connection, work.override)
    view = decision_view(found.decision, now)
    if buyer.status is BuyerStatus.REVOKED:
        view = BuyerStatusView(
            status=buyer.status, verified_at=buyer.verified_at, expires_at=buyer.expires_at
        )
    result = verify_result(buyer.cbid, view)
    keep_answer(connection, entry, result.body)
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
    entropy = room.access.entropy
    cbid = person.cbid or f"{BUYER}_{base32(int.from_bytes(entropy(_CBID_BYTES), 'big'))}"
    index, account_id, zip_index = room.access.secret.blind_index, work.account_id, None
    subject_index = index(account_id, "buyer", cbid)
    if work.result.outcome is Finding.VERIFIED and work.override is None:
        # What an operator accepts is no guess.
        zip_index = index(account_id, "zip", zip5(work.request.shipping_zip))
        subject = ZipSubject(account_id, Mode.LIVE, subject_index)
        refusal = count_zip(connection, subject, zip_index, work.now)
        if refusal is not None:
            return refusal
    decision = work.decision
    if person.first_verified_at is not None:
        decision = decision.since(person.first_verified_at, work.integration.rules)
    return _Found(person, before, cbid, decision, subject_index, zip_index)


def _attempt(secret: DeploymentSecret, work: Evaluation, found: _Found) -> VerificationAttempt:
    decision, proof = found.decision, None
    if decision.facts and decision.began_at and decision.expires_at:
        proof = ProvedSession(
            session=work.keys.session.hex(),
            verified_at=to_ms(work.now),
            began_at=to_ms(decision.began_at),
            expires_at=to_ms(decision.expires_at),
            facts=decision.facts,
            zips=tuple(
                [
                    proved_zip_index(secret, found.cbid, zip_, source, country_assumed=assumed)
                    for zip_, source, assumed in decision.zips
                ]
            ),
            document_expires_on=decision.document_expires_on,
        )
    return VerificationAttempt(
        status=decision.status,
        at=work.now,
        expires_at=decision.expires_at,
        reasons=decision.reasons,
        proof=proof,
        account_id=work.account_id,
    )


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
    decision = found.decision
    same = (decision.status, encoded_reasons(decision.reasons), found.zip_index)
    return last is not None and tuple(last) == same


def _write_verification(
    connection: Connection, room: Buyers, work: Evaluation, found: _Found
) -> None:
    """Write the verification with its record, and the evidence under the record's shred key."""
    cbid, decision, override = found.cbid, found.decision, work.override
    settings, response = work.integration.settings, work.result.evidence
    members: dict[str, Any] = {"provider": settings.provider, "simulated": False}
    if settings.base_url is not None:
        members["endpoint"] = settings.base_url
    reasons = [reason.value for reason in decision.reasons]
    personal: list[tuple[str, Any]] = [
        ("cbid", cbid),
        ("provider_identity_session_id", work.request.session_id),
        ("result", {"status": decision.status.value, "reasons": reasons}),
        ("evidence_sha256", response.sha256 if response else None),
    ]
    if override is not None:
        members["override"] = "zip"
        personal.append(("override", described(override)))
    record = account_fact(
        work.data_key,
        room.access.entropy,
        RecordType.VERIFICATION,
        record_id=timed_id(VERIFICATION, work.time_ns, room.access.entropy(8)),
        account_id=work.account_id,
        mode=Mode.LIVE,
        time_ns=work.time_ns,
        members=members,
        personal=personal,
        cbid_index=room.access.secret.blind_index(work.account_id, "cbid", cbid),
    )
    if record.disclosures is None:
        raise AssertionError("a record with personal fields has disclosures")
    write_verification(
        connection,
        record,
        cbid=cbid,
        provider=settings.provider,
        result=(decision.status, decision.reasons),
        subject_index=found.subject_index,
        zip_index=found.zip_index,
        session_index=found.person.kept_under,
    )
    room.journal.write(connection, [record])
    sealed = work.data_key.seal(
        shred_key=record.disclosures.shred_key,
        nonce=room.access.entropy(NONCE_BYTES),
        plaintext=evidence_of(work, decision, cbid),
        **evidence_place(work.account_id, record.id),
    )
    place = {"record_id": record.id, "account_id": work.account_id, "mode": Mode.LIVE}
    connection.execute(insert(verification_evidence), place | {"payload": sealed})


def _follow(connection: Connection, room: Buyers, work: Evaluation, found: _Found) -> None:
    """Poll the session from now on, or no longer."""
    keys, asked_index = work.keys, found.person.kept_under
    if asked_index == keys.session and keys.with_reference is not None:
        # The provider has named its subject: what was asked before that is settled.
        sessions_sql.unfollow(connection, work.account_id, keys.with_reference)
    if not found.decision.is_followed:
        sessions_sql.unfollow(connection, work.account_id, asked_index)
        return
    id_ = timed_id(_PENDING_ID, work.time_ns, room.access.entropy(8))
    drawn = room.access.entropy(SHRED_KEY_BYTES + NONCE_BYTES)
    shred_key, nonce = drawn[:SHRED_KEY_BYTES], drawn[SHRED_KEY_BYTES:]
    sealed = work.data_key.seal(
        shred_key=shred_key,
        nonce=nonce,
        plaintext=encode(work.request),
        **pending_place(work.account_id, id_),
    )
    pending = sessions_sql.PendingSession(
        id=id_,
        account_id=work.account_id,
        cbid=found.cbid,
        request=sealed,
        shred_key=shred_key,
        created_at=work.now,
        next_poll_at=work.now + FIRST_POLL,
    )
    sessions_sql.follow(connection, pending, session_index=keys.session, asked_index=asked_index)


def decision_view(decision: SessionDecision, now: datetime) -> BuyerStatusView:
    """The result of this evaluation, whichever buyer it is about."""
    status, expires_at = decision.status, decision.expires_at
    if status is not BuyerStatus.VERIFIED or expires_at is None:
        return BuyerStatusView(status=status, reasons=decision.reasons)
    if now >= expires_at:
        # A session that was decided long ago can have expired before it is sent.
        status = BuyerStatus.EXPIRED
    return BuyerStatusView(status=status, verified_at=now, expires_at=expires_at)


def proved_zip_index(
    secret: DeploymentSecret,
    cbid: str,
    zip_: str,
    source: FactSource,
    *,
    country_assumed: bool = False,
) -> str:
    """The keyed hash of a ZIP code that this source has proved for a buyer, in hexadecimal."""
    field = f"proved_zip_{source.value}{'_assumed_us' if country_assumed else ''}"
    return secret.blind_index(cbid, field, zip5(zip_)).hex()
