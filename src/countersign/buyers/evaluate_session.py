"""Judging a provider session: ask the provider, decide, and write what came of it, all or nothing.

Between the provider's answer and the commit nothing is kept: whoever dies there leaves no trace,
and the same request leads to the same buyer later.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from structlog.contextvars import bound_contextvars

from countersign.access.idempotency import IdempotencyEntry
from countersign.access.secrets import DeploymentSecret
from countersign.buyers.decision import Decision, decide
from countersign.buyers.model import Attempt, Buyer, BuyerStatus, Proof, Standing
from countersign.buyers.settings import Ready
from countersign.buyers.verification import (
    AskedSession,
    Following,
    LiveVerification,
    Override,
    Resolution,
)
from countersign.buyers.watch_verifications import WatchVerifications
from countersign.errors import (
    CountersignError,
    InvalidArgument,
    Overloaded,
    ProviderSessionNotBound,
    ProviderSessionNotFound,
    ProviderUnavailable,
    VerificationMisconfigured,
)
from countersign.identity.model import Outcome as ProviderOutcome
from countersign.identity.model import ProviderEvidence, ProviderResult, Source
from countersign.identity.postal_code import zip5
from countersign.ids import BUYER, VERIFICATION, base32, timed_id
from countersign.instant import from_ns, rfc3339_ms, to_ms
from countersign.log.append_record import Recorder
from countersign.log.record import NewRecord, RecordType
from countersign.mode import Mode
from countersign.ports import Clock, Entropy, LiveVerificationStore
from countersign.reason import Reason
from countersign.vault.vault import NONCE_BYTES, SHRED_KEY_BYTES, Vault

EVIDENCE_TABLE: Final = "verification_evidence"
PENDING_TABLE: Final = "pending_sessions"
FIRST_POLL: Final = timedelta(seconds=15)
_PENDING_ID: Final = "ses"
_CBID_BYTES: Final = 16
_TRIES: Final = 4
_RETRY_AFTER_SECONDS: Final = 5
_FOLLOWED: Final = {Reason.IDENTITY_REQUIRES_INPUT}
"""Reasons for which a session is still asked about: the buyer can go on in the same session."""
_TEST_SESSION: Final = (
    "The session is of the provider's test mode or of another integration, and a live key needs a "
    "live session of the integration in the account's credentials."
)
_NOT_LIVE: Final = (
    "The provider does not confirm that the session is a live session of the integration in the "
    "account's credentials."
)
_WITHHELD: Final = (
    "The identity provider approved the session, but does not show its date of birth to the "
    "credentials of this account."
)
_OTHER_SUBJECT: Final = (
    "The session belongs to another subject than the `subject_reference` of the request."
)
_encode: Final = msgspec.json.Encoder(order="sorted").encode


class SessionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked about a session; kept, sealed, while the provider has not decided."""

    session_id: str
    shipping_zip: str
    subject_reference: str | None

    def __repr__(self) -> str:
        return "<SessionRequest: hidden>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the caller of *verify* gets: this attempt's status, the buyer's cbid and expiry."""

    cbid: str
    standing: Standing


Remember: TypeAlias = Callable[[Outcome], IdempotencyEntry]


class _About(NamedTuple):
    """All that one verdict is about."""

    ready: Ready
    request: SessionRequest
    result: ProviderResult
    decision: Decision
    session: AskedSession
    override: Override | None


class JudgeSession:
    """The act of judging a session."""

    def __init__(
        self,
        *,
        store: LiveVerificationStore,
        recorder: Recorder,
        vault: Vault,
        secret: DeploymentSecret,
        watch: WatchVerifications,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._store = store
        self.watch = watch
        self._recorder = recorder
        self._vault = vault
        self._secret = secret
        self._clock = clock
        self._entropy = entropy

    async def __call__(
        self,
        ready: Ready,
        request: SessionRequest,
        remember: Remember | None = None,
        *,
        give_up: bool = False,
        polled: str | None = None,
    ) -> Outcome:
        """Judge a session as the provider tells of it now; durable when this returns.

        Args:
            ready: the account's settings and provider.
            request: what is asked.
            remember: makes the answer that is kept for a repeated request.
            give_up: whether to stop asking about a session that is still not decided.
            polled: the followed session that this is a poll of.

        Raises:
            ProviderSessionNotFound: there is no such session.
            ProviderSessionNotBound: it is about another subject, of the provider's test mode, or of
                another integration.
            ProviderUnavailable: the provider gave no usable answer; nothing was written.
            VerificationMisconfigured: it refuses the account's credentials.
            RateLimited: too many ZIP codes tried for one buyer.
        """
        provider = ready.settings.provider
        try:
            outcome = await self._judge(ready, request, remember, give_up=give_up, polled=polled)
        except CountersignError as error:
            self.watch.failed(provider, error.code)
            raise
        told = outcome.standing
        self.watch.judged(ready.settings.account_id, provider, told.status.value, told.reasons)
        return outcome

    async def _judge(
        self,
        ready: Ready,
        request: SessionRequest,
        remember: Remember | None,
        *,
        give_up: bool,
        polled: str | None,
    ) -> Outcome:
        result = await self._result(ready, request.session_id)
        refuse_unusable(result)
        if _withheld(result):
            # The buyer can do nothing about it: what is missing is a permission of the credentials.
            self.watch.withheld(ready.settings.account_id, ready.settings.provider)
            raise VerificationMisconfigured(_WITHHELD)
        return await self._settle(ready, request, result, remember, give_up=give_up, polled=polled)

    async def override(
        self, ready: Ready, request: SessionRequest, result: ProviderResult, override: Override
    ) -> Outcome:
        """Judge what a provider said before, with what an operator accepts; durable on return.

        Raises:
            InvalidArgument: the buyer would not be verified by it; nothing was written.
        """
        decision = self._decide(ready, request, result, None, give_up=False)
        told = _standing(
            Attempt(
                status=decision.status,
                at=from_ns(self._clock.time_ns()),
                expires_at=decision.expires_at,
                reasons=decision.reasons,
            ),
            from_ns(self._clock.time_ns()),
        )
        if told.status is not BuyerStatus.VERIFIED:
            why = ", ".join(told.reasons) or told.status.value
            msg = f"This would not make the buyer verified: {why}. Nothing was changed."
            raise InvalidArgument(msg)
        return await self._settle(ready, request, result, None, override=override)

    async def _settle(
        self,
        ready: Ready,
        request: SessionRequest,
        result: ProviderResult,
        remember: Remember | None,
        *,
        give_up: bool = False,
        polled: str | None = None,
        override: Override | None = None,
    ) -> Outcome:
        decision = self._decide(ready, request, result, None, give_up=give_up)
        session = self._asked(ready, request, result, decision)
        for _ in range(_TRIES):
            found = await self._store.resolve(Mode.LIVE, session)
            if not found.bound:
                raise ProviderSessionNotBound(_OTHER_SUBJECT)
            if found.first_verified_at is not None:
                decision = self._decide(ready, request, result, found, give_up=give_up)
            about = _About(ready, request, result, decision, session, override)
            new = await self._new(about, found.cbid or self._new_cbid(), remember, polled)
            buyer = await self._store.judge(new)
            if isinstance(buyer, Buyer):
                return _outcome(buyer, new)
        raise Overloaded

    async def _result(self, ready: Ready, session_id: str) -> ProviderResult:
        began = self._clock.monotonic()
        try:
            # Whatever is logged of the answer names the account.
            with bound_contextvars(account=ready.settings.account_id):
                result = await ready.provider.retrieve(session_id)
        except ValueError:
            raise ProviderSessionNotFound from None
        seconds = self._clock.monotonic() - began
        self.watch.asked(ready.settings.provider, seconds, result.unknown_fields)
        return result

    def session_index(self, ready: Ready, session_id: str) -> bytes:
        """The keyed hash of a session: the same for every account that uses the provider."""
        return self._secret.blind_index(_place(ready), "provider_session", session_id)

    def _asked(
        self, ready: Ready, request: SessionRequest, result: ProviderResult, decision: Decision
    ) -> AskedSession:
        asked, told = request.subject_reference, result.subject_reference
        hashed = partial(self._secret.blind_index, _place(ready))
        both = None if asked is None else f"{request.session_id}\x00{asked}"
        return AskedSession(
            session=self.session_index(ready, request.session_id),
            reference=None if asked is None else hashed("subject_reference", asked),
            with_reference=None if both is None else hashed("provider_session_and_reference", both),
            told_reference=None if told is None else hashed("subject_reference", told),
            fingerprint=result.document_fingerprint,
            verifies=decision.status is BuyerStatus.VERIFIED,
        )

    def _decide(
        self,
        ready: Ready,
        request: SessionRequest,
        result: ProviderResult,
        found: Resolution | None,
        *,
        give_up: bool,
    ) -> Decision:
        decision = decide(
            result,
            ready.rules,
            shipping_zip=request.shipping_zip,
            subject_reference=request.subject_reference,
            now=from_ns(self._clock.time_ns()),
            first_verified_at=found.first_verified_at if found else None,
        )
        if Reason.TEST_SESSION in decision.reasons:
            self.watch.not_live(ready.settings.account_id, ready.settings.provider)
            raise ProviderSessionNotBound(_TEST_SESSION if result.live is False else _NOT_LIVE)
        if decision.not_bound:
            raise ProviderSessionNotBound(_OTHER_SUBJECT)
        if give_up and decision.status in {BuyerStatus.PENDING, BuyerStatus.REQUIRES_INPUT}:
            reasons = (Reason.SESSION_UNDECIDED,)
            return Decision(status=BuyerStatus.REQUIRES_INPUT, reasons=reasons)
        return decision

    def _new_cbid(self) -> str:
        """Random, not time-ordered: it is handed around, and tells nothing of when."""
        return f"{BUYER}_{base32(int.from_bytes(self._entropy(_CBID_BYTES), 'big'))}"

    async def _new(
        self, about: _About, cbid: str, remember: Remember | None, polled: str | None
    ) -> LiveVerification:
        """What to write."""
        time_ns = self._clock.time_ns()
        account_id = about.ready.settings.account_id
        record, evidence = await self._written(about, cbid, time_ns)
        # What an operator accepts is no guess.
        compared = about.result.outcome is ProviderOutcome.VERIFIED and about.override is None
        zip_ = zip5(about.request.shipping_zip)
        new = LiveVerification(
            record=record,
            evidence=evidence,
            account_id=account_id,
            mode=Mode.LIVE,
            provider=about.ready.settings.provider,
            cbid=cbid,
            session=about.session,
            attempt=self._attempt(about, cbid, from_ns(time_ns)),
            subject_index=self._secret.blind_index(account_id, "buyer", cbid),
            zip_index=self._secret.blind_index(account_id, "zip", zip_) if compared else None,
            at=from_ns(time_ns),
            following=await self._following(about, time_ns),
            polled=polled,
            remember=None,
            audit=None if about.override is None else about.override.audit,
        )
        if remember is None:
            return new
        return replace(new, remember=lambda buyer: remember(_outcome(buyer, new)))

    def _attempt(self, about: _About, cbid: str, now: datetime) -> Attempt:
        decision, proof = about.decision, None
        if decision.facts and decision.began_at and decision.expires_at:
            proof = Proof(
                session=about.session.session.hex(),
                verified_at=to_ms(now),
                began_at=to_ms(decision.began_at),
                expires_at=to_ms(decision.expires_at),
                facts=decision.facts,
                zips=tuple(
                    proved_zip_index(self._secret, cbid, zip_, source, country_assumed=assumed)
                    for zip_, source, assumed in decision.zips
                ),
                document_expires_on=decision.document_expires_on,
            )
        return Attempt(
            status=decision.status,
            at=now,
            expires_at=decision.expires_at,
            reasons=decision.reasons,
            proof=proof,
            account_id=about.ready.settings.account_id,
        )

    async def _written(self, about: _About, cbid: str, time_ns: int) -> tuple[NewRecord, bytes]:
        """The record of the verification, and its evidence sealed with the record's own key."""
        settings, decision, answer = about.ready.settings, about.decision, about.result.evidence
        record_id = timed_id(VERIFICATION, time_ns, self._entropy(8))
        members: dict[str, Any] = {"provider": settings.provider, "simulated": False}
        if settings.base_url is not None:
            members["endpoint"] = settings.base_url
        if about.override is not None:
            members["override"] = "zip"
        told = {
            "status": decision.status.value,
            "reasons": [reason.value for reason in decision.reasons],
        }
        record = await self._recorder.of_account(
            RecordType.VERIFICATION,
            record_id=record_id,
            account_id=settings.account_id,
            mode=Mode.LIVE,
            members=members,
            personal=(
                ("cbid", cbid),
                ("provider_identity_session_id", about.request.session_id),
                ("result", told),
                ("evidence_sha256", answer.sha256 if answer else None),
                *([] if about.override is None else [("override", _overridden(about.override))]),
            ),
            cbid_index=self._secret.blind_index(settings.account_id, "cbid", cbid),
        )
        if record.disclosures is None:
            raise AssertionError("a record with personal fields has disclosures")
        data_key = await self._vault.data_key(settings.account_id, time_ns)
        evidence = data_key.seal(
            shred_key=record.disclosures.shred_key,
            nonce=self._entropy(NONCE_BYTES),
            table=EVIDENCE_TABLE,
            column="payload",
            account=settings.account_id,
            row_id=record_id,
            plaintext=_encode(_evidence(about, cbid)),
        )
        return record, evidence

    async def _following(self, about: _About, time_ns: int) -> Following | None:
        decision = about.decision
        undecided = decision.status is BuyerStatus.PENDING or (
            decision.status is BuyerStatus.REQUIRES_INPUT and _FOLLOWED & set(decision.reasons)
        )
        if not undecided:
            return None
        id_ = timed_id(_PENDING_ID, time_ns, self._entropy(8))
        account_id = about.ready.settings.account_id
        drawn = self._entropy(SHRED_KEY_BYTES + NONCE_BYTES)
        data_key = await self._vault.data_key(account_id, time_ns)
        sealed = data_key.seal(
            shred_key=drawn[:SHRED_KEY_BYTES],
            nonce=drawn[SHRED_KEY_BYTES:],
            table=PENDING_TABLE,
            column="request",
            account=account_id,
            row_id=id_,
            plaintext=_encode(about.request),
        )
        return Following(
            id=id_,
            request=sealed,
            shred_key=drawn[:SHRED_KEY_BYTES],
            next_poll_at=from_ns(time_ns) + FIRST_POLL,
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


def refuse_unusable(result: ProviderResult) -> None:
    """Go on only if the provider has told something of the session.

    Raises:
        ProviderSessionNotFound, VerificationMisconfigured, ProviderUnavailable: it has not.
    """
    match result.outcome:
        case ProviderOutcome.NOT_FOUND:
            raise ProviderSessionNotFound
        case ProviderOutcome.PROVIDER_REJECTED:
            raise VerificationMisconfigured
        case ProviderOutcome.PROVIDER_UNAVAILABLE | ProviderOutcome.INVALID_RESPONSE:
            raise ProviderUnavailable(retry_after=result.retry_after or _RETRY_AFTER_SECONDS)
        case _:
            return


def _withheld(result: ProviderResult) -> bool:
    """Whether a birth date is missing because these credentials may not read it."""
    evidence = result.evidence
    return (
        result.outcome is ProviderOutcome.VERIFIED
        and result.live is True
        and result.date_of_birth is None
        and evidence is not None
        and not evidence.sensitive_complete
    )


def _place(ready: Ready) -> str:
    """Where a session identifier means something: one provider, or one address."""
    return f"{ready.settings.provider}\x00{ready.settings.base_url or ''}"


def _standing(attempt: Attempt, now: datetime) -> Standing:
    """What is told of the attempt, whoever the buyer turns out to be."""
    if attempt.status is not BuyerStatus.VERIFIED or attempt.expires_at is None:
        return Standing(
            status=attempt.status, verified_at=None, expires_at=None, reasons=attempt.reasons
        )
    # A session that was decided long ago can have run out before it is shown to us.
    expired = now >= attempt.expires_at
    return Standing(
        status=BuyerStatus.EXPIRED if expired else BuyerStatus.VERIFIED,
        verified_at=attempt.at,
        expires_at=attempt.expires_at,
        reasons=(),
    )


def _outcome(buyer: Buyer, new: LiveVerification) -> Outcome:
    if buyer.status is BuyerStatus.REVOKED:
        revoked = Standing(
            status=BuyerStatus.REVOKED,
            verified_at=buyer.verified_at,
            expires_at=buyer.expires_at,
            reasons=(),
        )
        return Outcome(cbid=buyer.cbid, standing=revoked)
    return Outcome(cbid=buyer.cbid, standing=_standing(new.attempt, new.at))


def _evidence(about: _About, cbid: str) -> dict[str, Any]:
    """Everything that the decision rests on, for the day on which somebody asks."""
    ready, result, decision = about.ready, about.result, about.decision
    settings = ready.settings
    return {
        "v": 1,
        "cbid": cbid,
        "provider": settings.provider,
        "base_url": settings.base_url,
        "request": msgspec.to_builtins(about.request),
        "answer": None if result.evidence is None else _answer(result.evidence),
        "override": about.override and _overridden(about.override),
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
        "rules": {"settings_revision": settings.revision, **msgspec.to_builtins(ready.rules)},
    }


def _overridden(override: Override) -> dict[str, str]:
    return {
        "verification": override.verification_id,
        "document": override.document,
        "reason": override.reason,
        "operator": override.audit.actor,
    }


def _answer(evidence: ProviderEvidence) -> dict[str, Any]:
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
        "further": [_answer(more) for more in evidence.further],
    }
