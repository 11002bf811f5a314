"""Verify a buyer, and look up the status of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from countersign.access.idempotency import IdempotencyEntry
from countersign.access.key import Principal
from countersign.buyers.evaluate_session import evaluate
from countersign.buyers.model import BuyerStatusView, status_view
from countersign.buyers.result import VerifyResult
from countersign.buyers.room import Buyers
from countersign.buyers.sandbox import simulate
from countersign.buyers.session_evidence import SessionRequest
from countersign.buyers.sql import StatusQuery, buyers_and_rules
from countersign.errors import InvalidRequest, ModeMismatch, NotFound, VerificationNotConfigured
from countersign.ids import BUYER, SANDBOX_BUYER, is_id
from countersign.instant import from_ns
from countersign.mode import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationRequest:
    """What a checkout sends; formats are checked already."""

    provider_identity_session_id: str | None
    shipping_zip: str | None
    test_mode: bool
    subject_reference: str | None


async def verify(
    room: Buyers,
    principal: Principal,
    request: VerificationRequest,
    entry: Callable[[bytes], IdempotencyEntry] | None = None,
) -> VerifyResult:
    """Issue or refresh a cbid; durable when this returns.

    Raises:
        ModeMismatch: `test_mode` does not go with the key.
        InvalidRequest: a live request lacks a field that it needs.
        VerificationNotConfigured: the account has no identity provider.
        VerificationMisconfigured: the provider refuses the account's credentials.
        ProviderSessionNotFound, ProviderSessionNotBound, ProviderUnavailable: as the
            provider responded.
        RateLimited: too many ZIP codes tried for one buyer.
    """
    is_test = principal.mode is Mode.TEST
    if request.test_mode != is_test:
        raise ModeMismatch(
            "A test key needs test_mode: true." if is_test else "test_mode: true needs a test key."
        )
    if is_test:
        session_id = request.provider_identity_session_id
        return await simulate(room, principal.account_id, session_id, request.shipping_zip, entry)
    session = SessionRequest(
        session_id=_required(request.provider_identity_session_id, "provider_identity_session_id"),
        shipping_zip=_required(request.shipping_zip, "shipping_zip"),
        subject_reference=request.subject_reference,
    )
    integration = await room.providers.of(principal.account_id)
    if integration is None:
        raise VerificationNotConfigured
    if integration.rules.subject_reference_required:
        _required(request.subject_reference, "subject_reference")
    return await evaluate(room, integration, session, entry)


async def buyer_status(room: Buyers, principal: Principal, cbid: str) -> BuyerStatusView:
    """The buyer's status for the asking account.

    Raises:
        NotFound: no buyer of this mode has this identifier.
    """
    account_id, mode, known = principal.account_id, principal.mode, None
    if is_id(SANDBOX_BUYER if mode is Mode.TEST else BUYER, cbid):
        query = StatusQuery(account_id, mode, cbid)
        known = await room.database.read_batched(buyers_and_rules, query)
    if known is None:
        msg = "The buyer identifier was not found."
        raise NotFound(msg)
    buyer, rules = known
    clock = await room.test_clocks.of(account_id, mode)
    now = clock.at(from_ns(room.clock.time_ns()))
    return status_view(buyer, account_id, rules.at_least(room.floor) if rules else room.floor, now)


def _required(value: str | None, name: str) -> str:
    if value is None:
        msg = f"A required field is missing - at `$.{name}`."
        raise InvalidRequest(msg)
    return value
