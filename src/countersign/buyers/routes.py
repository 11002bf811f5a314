"""Verifying buyers, and their status."""

from __future__ import annotations

from typing import Final

import msgspec

from countersign.access.key import Scope
from countersign.buyers import schemas
from countersign.buyers import verify as acts
from countersign.buyers.model import BuyerStatusView
from countersign.buyers.poll_sessions import take_webhook, webhook_integration
from countersign.buyers.room import Buyers
from countersign.buyers.verify import VerificationRequest
from countersign.errors import (
    ModeMismatch,
    NotFound,
    ProviderSessionNotBound,
    ProviderSessionNotFound,
    ProviderUnavailable,
    VerificationMisconfigured,
    VerificationNotConfigured,
)
from countersign.http.body import parse_body
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import Route, grouped
from countersign.instant import to_the_second


async def verify(room: Buyers, call: Call) -> Reply:
    """Check a session at the identity provider, and issue or refresh a cbid."""
    body = parse_body(call.body, schemas.BuyerVerificationRequest)
    result = await acts.verify(
        room,
        call.principal,
        VerificationRequest(
            provider_identity_session_id=body.provider_identity_session_id,
            shipping_zip=body.shipping_zip,
            test_mode=bool(body.test_mode),
            subject_reference=body.subject_reference,
        ),
        call.entry,
    )
    return Reply(result.body)


async def get_status(room: Buyers, call: Call) -> Reply:
    """The present status of a buyer, as far as this account may rely on it."""
    view = await acts.buyer_status(room, call.principal, call.parameter)
    return Reply(status_body(call.parameter, view))


def status_body(cbid: str, view: BuyerStatusView) -> bytes:
    """The status of a buyer as the API shows it."""
    return encode(
        schemas.BuyerStatusAnswer(
            cbid=cbid,
            status=view.status,
            verified_at=to_the_second(view.verified_at),
            expires_at=to_the_second(view.expires_at),
            reasons=list(view.reasons) or msgspec.UNSET,
        )
    )


async def provider_webhook(room: Buyers, call: Call) -> Reply:
    """Take a message of an identity provider: `PROVIDER/ACCOUNT_ID` is whose and for whom."""
    provider, _, account_id = call.parameter.partition("/")
    headers: dict[str, str] = {}
    for name, value in call.raw_headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        # RFC 9110 §5.3; no signature is one any more then.
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    await webhook_integration(room, provider, account_id)
    assert call.read_body is not None  # noqa: S101 - the route table says so
    await take_webhook(room, provider, account_id, headers, await call.read_body())
    return Reply(b"{}")


ROUTES: Final = grouped(
    "Buyers",
    Buyers,
    Route(
        address="POST /v1/buyers/verify",
        handler=verify,
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
        request_examples={"sandbox": schemas.VERIFY},
        response_examples={"verified": schemas.VERIFIED, "too young": schemas.UNDERAGE},
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
        response_examples={"verified": schemas.STATUS},
    ),
    Route(
        address="POST /v1/provider_webhooks/{path*}",
        handler=provider_webhook,
        # Persona sends the whole inquiry with all that belongs to it; the others a few KiB.
        raw_body_max=256 * 1024,
    ),
)
