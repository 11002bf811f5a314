"""Verify a buyer, and tell what is known of one."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.access.key import Principal
from countersign.access.secrets import DeploymentSecret
from countersign.access.test_clock import TestClock
from countersign.access.test_clocks import TestClocks
from countersign.buyers.evaluate_session import JudgeSession, Outcome, Remember, SessionRequest
from countersign.buyers.model import (
    Attempt,
    Buyer,
    Standing,
    after_attempt,
    first_verification,
    standing,
    status_at,
)
from countersign.buyers.rules import VerificationRules
from countersign.buyers.sandbox_faults import SandboxFaults
from countersign.buyers.settings import ManageVerification
from countersign.buyers.verification import NewVerification
from countersign.errors import InvalidRequest, ModeMismatch, NotFound, VerificationNotConfigured
from countersign.identity.postal_code import zip5
from countersign.ids import BUYER, SANDBOX_BUYER, VERIFICATION, is_id, timed_id
from countersign.instant import from_ns
from countersign.log.append_record import Recorder
from countersign.log.record import NewRecord, RecordType
from countersign.mode import Mode
from countersign.ports import BuyerStore, Clock, Entropy, Sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationRequest:
    """What a checkout sends; formats are checked already."""

    provider_identity_session_id: str | None
    shipping_zip: str | None
    test_mode: bool
    subject_reference: str | None


class VerifyBuyer:
    """The act of verifying."""

    def __init__(
        self,
        *,
        store: BuyerStore,
        manage: ManageVerification,
        judge: JudgeSession,
        sandbox: Sandbox,
        recorder: Recorder,
        secret: DeploymentSecret,
        clocks: TestClocks,
        faults: SandboxFaults,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._store = store
        self._manage = manage
        self._judge = judge
        self._sandbox = sandbox
        self._clocks = clocks
        self._faults = faults
        self._recorder = recorder
        self._secret = secret
        self._clock = clock
        self._entropy = entropy

    async def __call__(
        self,
        principal: Principal,
        request: VerificationRequest,
        remember: Remember | None = None,
    ) -> Outcome:
        """Issue or refresh a cbid; durable when this returns.

        Raises:
            ModeMismatch: `test_mode` does not go with the key.
            InvalidRequest: a live request lacks a field that it needs.
            VerificationNotConfigured: the account has no identity provider.
            VerificationMisconfigured: the provider refuses the account's credentials.
            ProviderSessionNotFound, ProviderSessionNotBound, ProviderUnavailable: as the
                provider answered.
            RateLimited: too many ZIP codes tried for one buyer.
        """
        if request.test_mode != (principal.mode is Mode.TEST):
            raise ModeMismatch(
                "A test key needs test_mode: true."
                if principal.mode is Mode.TEST
                else "test_mode: true needs a test key."
            )
        if principal.mode is Mode.LIVE:
            return await self._verify(principal, request, remember)
        return await self._simulate(principal, request, remember)

    async def _verify(
        self, principal: Principal, request: VerificationRequest, remember: Remember | None
    ) -> Outcome:
        session = SessionRequest(
            session_id=_required(request, "provider_identity_session_id"),
            shipping_zip=_required(request, "shipping_zip"),
            subject_reference=request.subject_reference,
        )
        ready = await self._manage.ready(principal.account_id)
        if ready is None:
            raise VerificationNotConfigured
        if ready.rules.subject_reference_required:
            _required(request, "subject_reference")
        return await self._judge(ready, session, remember)

    async def _simulate(
        self,
        principal: Principal,
        request: VerificationRequest,
        remember: Remember | None,
    ) -> Outcome:
        account_id, session_id = principal.account_id, request.provider_identity_session_id
        await self._faults.meet(account_id, session_id)
        clock = await self._clocks.of(account_id, principal.mode)
        time_ns = self._clock.time_ns()
        now = clock.at(from_ns(time_ns))
        attempts = self._sandbox.play(session_id, now)
        cbid = self._sandbox.cbid(account_id, session_id, request.shipping_zip)

        def decide(known: Buyer | None) -> Buyer:
            """The first call settles a sandbox buyer: a session is judged once."""
            return known or _played(cbid, account_id, attempts)

        def outcome(buyer: Buyer) -> Outcome:
            told = Standing(
                status=status_at(buyer, now),
                verified_at=buyer.verified_at,
                expires_at=buyer.expires_at,
                reasons=buyer.reasons,
            )
            return Outcome(cbid=buyer.cbid, standing=told)

        buyer = await self._store.verify(
            NewVerification(
                record=await self._record(
                    principal, (cbid, session_id), attempts[-1], clock, time_ns
                ),
                account_id=account_id,
                mode=principal.mode,
                provider=self._sandbox.name,
                cbid=cbid,
                attempt=attempts[-1],
                simulated=True,
                subject_index=self._index(account_id, "provider_session", session_id),
                zip_index=self._index(
                    account_id, "zip", request.shipping_zip and zip5(request.shipping_zip)
                ),
                at=from_ns(time_ns),
                decide=decide,
                remember=None if remember is None else lambda buyer: remember(outcome(buyer)),
                judged_at=clock.shown(from_ns(time_ns)),
            )
        )
        return outcome(buyer)

    async def _record(
        self,
        principal: Principal,
        about: tuple[str, str | None],
        attempt: Attempt,
        clock: TestClock,
        time_ns: int,
    ) -> NewRecord:
        cbid, session_id = about
        return await self._recorder.of_account(
            RecordType.VERIFICATION,
            record_id=timed_id(VERIFICATION, time_ns, self._entropy(8)),
            account_id=principal.account_id,
            mode=principal.mode,
            members={
                "provider": self._sandbox.name,
                "simulated": True,
                **clock.member(from_ns(time_ns)),
            },
            personal=(
                ("cbid", cbid),
                ("provider_identity_session_id", session_id),
                (
                    "result",
                    {
                        "status": attempt.status.value,
                        "reasons": [reason.value for reason in attempt.reasons],
                    },
                ),
            ),
            cbid_index=self._index(principal.account_id, "cbid", cbid),
        )

    def _index(self, account_id: str, field: str, value: str | None) -> bytes | None:
        return None if value is None else self._secret.blind_index(account_id, field, value)


class BuyerStatusQuery:
    """Telling what is known of a buyer."""

    def __init__(
        self, store: BuyerStore, floor: VerificationRules, clocks: TestClocks, clock: Clock
    ) -> None:
        self._store = store
        self._floor = floor
        self._clocks = clocks
        self._clock = clock

    async def __call__(self, principal: Principal, cbid: str) -> Standing:
        """The buyer's standing for the asking account.

        Raises:
            NotFound: no buyer of this mode has this identifier.
        """
        known = None
        if is_id(SANDBOX_BUYER if principal.mode is Mode.TEST else BUYER, cbid):
            known = await self._store.get(principal.account_id, principal.mode, cbid)
        if known is None:
            msg = "The buyer identifier was not found."
            raise NotFound(msg)
        rules = known.rules.at_least(self._floor) if known.rules else self._floor
        clock = await self._clocks.of(principal.account_id, principal.mode)
        now = clock.at(from_ns(self._clock.time_ns()))
        return standing(known.buyer, principal.account_id, rules, now)


def _required(request: VerificationRequest, name: str) -> str:
    value: str | None = getattr(request, name)
    if value is None:
        msg = f"A required field is missing - at `$.{name}`."
        raise InvalidRequest(msg)
    return value


def _played(cbid: str, account_id: str, attempts: tuple[Attempt, ...]) -> Buyer:
    buyer = first_verification(
        cbid=cbid, account_id=account_id, mode=Mode.TEST, simulated=True, attempt=attempts[0]
    )
    for attempt in attempts[1:]:
        buyer = after_attempt(buyer, attempt)
    return buyer
