"""Verifying buyers, and their status."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from countersign.base.errors import (
    InvalidRequest,
    ModeMismatch,
    NotFound,
    ProviderSessionNotBound,
    ProviderSessionNotFound,
    ProviderUnavailable,
    VerificationMisconfigured,
    VerificationNotConfigured,
)
from countersign.base.http.body import parse_body
from countersign.base.values import BUYER, SANDBOX_BUYER, Mode, is_id
from countersign.core.access.idempotency import Remember
from countersign.core.access.key import Principal, Scope
from countersign.core.buyers import schemas
from countersign.core.buyers.evaluate_session import evaluate
from countersign.core.buyers.model import BuyerStatusView, status_view
from countersign.core.buyers.poll_sessions import take_webhook, webhook_integrations
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.sandbox import simulate
from countersign.core.buyers.schemas import BuyerVerificationRequest, VerifyResult
from countersign.core.buyers.session_evidence import SessionRequest
from countersign.core.buyers.sql import StatusQuery, buyers_and_rules
from countersign.core.buyers.started import started_at
from countersign.core.gate.route import Call, Reply, Route, encode, grouped


async def verify(
    room: Buyers,
    principal: Principal,
    request: BuyerVerificationRequest,
    entry: Remember[bytes] = None,
) -> VerifyResult:
    """Issue or refresh a cbid; durable when this returns.

    Raises:
        ModeMismatch: `test_mode` does not go with the key.
        InvalidRequest: a live request lacks a field that it needs.
        VerificationNotConfigured: the account has no identity provider.
        Others as `evaluate` and `simulate` do.
    """
    is_test = principal.mode is Mode.TEST
    if bool(request.test_mode) != is_test:
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
    integrations = await room.providers.all_of(principal.account_id, principal.mode)
    if not integrations:
        raise VerificationNotConfigured
    ours = await started_at(room, integrations, session.session_id)
    if ours is not None:
        # The reference is our own: the session is bound.
        integration, reference = ours
        if session.subject_reference is None:
            session = replace(session, subject_reference=reference)
        return await evaluate(room, integration, session, entry)
    if integrations[0].rules.subject_reference_required:
        _required(request.subject_reference, "subject_reference")
    # If several providers have such session ids, each is asked.
    possible = [one for one in integrations if one.may_be(session.session_id)]
    *others, last = possible or integrations[:1]
    for integration in others:
        with suppress(ProviderSessionNotFound):
            return await evaluate(room, integration, session, entry)
    return await evaluate(room, last, session, entry)


async def buyer_status(room: Buyers, principal: Principal, cbid: str) -> BuyerStatusView:
    """The buyer's status for the asking account.

    Raises NotFound if no buyer of this mode has this identifier.
    """
    account_id, mode, known = principal.account_id, principal.mode, None
    if is_id(SANDBOX_BUYER if mode is Mode.TEST else BUYER, cbid):
        query = StatusQuery(account_id, mode, cbid)
        known = await room.access.database.read_batched(buyers_and_rules, query)
    if known is None:
        raise NotFound("The buyer identifier was not found.")
    buyer, rules = known
    now = await room.access.test_clocks.now(account_id, mode)
    floor = room.providers.floor
    return status_view(buyer, account_id, rules.at_least(floor) if rules else floor, now)


def _required(value: str | None, name: str) -> str:
    if value is None:
        raise InvalidRequest(f"A required field is missing - at `$.{name}`.")
    return value


async def verify_buyer(room: Buyers, call: Call) -> Reply:
    """Check a session at the identity provider, and issue or refresh a cbid."""
    body = parse_body(call.body, schemas.BuyerVerificationRequest)
    return Reply((await verify(room, call.principal, body, call.entry)).body)


async def get_status(room: Buyers, call: Call) -> Reply:
    """The present status of a buyer, as far as this account may rely on it."""
    view = await buyer_status(room, call.principal, call.parameter)
    answer = schemas.BuyerStatusAnswer(
        cbid=call.parameter,
        status=view.status,
        verified_at=view.verified_at and view.verified_at.replace(microsecond=0),
        expires_at=view.expires_at and view.expires_at.replace(microsecond=0),
        reasons=view.reasons or UNSET,
    )
    return Reply(encode(answer))


async def provider_webhook(room: Buyers, call: Call) -> Reply:
    """Take a message of an identity provider: `PROVIDER/ACCOUNT_ID` is whose and for whom."""
    provider, _, account_id = call.parameter.partition("/")
    headers: dict[str, str] = {}
    for name, value in call.raw_headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        # RFC 9110 §5.3; no signature is one any more then.
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    integrations = await webhook_integrations(room, provider, account_id)
    assert call.read_body is not None  # noqa: S101 - the route table says so
    body = await call.read_body(_MESSAGE_BYTES_MAX, (account_id,))
    await take_webhook(room, integrations, headers, body)
    return Reply(b"{}")


_MESSAGE_BYTES_MAX: Final = 256 * 1024
"""Persona sends the whole inquiry with all related objects; the others a few KiB."""

ROUTES: Final = grouped(
    "Buyers",
    Buyers,
    Route(
        address="POST /v1/buyers/verify",
        handler=verify_buyer,
        operation="verifyBuyer",
        summary="Check an identity session, and issue or refresh a cbid",
        scope=Scope.BUYERS_VERIFY,
        request=schemas.BuyerVerificationRequest,
        response=schemas.BuyerVerification,
        refusals=(
            ModeMismatch,
            VerificationNotConfigured,
            VerificationMisconfigured,
            ProviderSessionNotFound,
            ProviderSessionNotBound,
            ProviderUnavailable,
        ),
        response_examples={"verified": {}, "too young": schemas.UNDERAGE},
        links={"getBuyerStatus": {"cbid": "/cbid"}},
    ),
    Route(
        address="GET /v1/buyers/{cbid}/status",
        handler=get_status,
        operation="getBuyerStatus",
        summary="Get the status of a buyer",
        scope=Scope.BUYERS_READ,
        response=schemas.BuyerStatusAnswer,
        refusals=(NotFound,),
    ),
    Route(
        address="POST /v1/provider_webhooks/{path*}",
        handler=provider_webhook,
        raw_body_max=_MESSAGE_BYTES_MAX,
    ),
)
