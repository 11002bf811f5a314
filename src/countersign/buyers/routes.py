"""Verifying buyers, and their status."""

from __future__ import annotations

from typing import Final

import msgspec

from countersign.access.key import Scope
from countersign.buyers import schemas
from countersign.buyers.evaluate_session import Outcome
from countersign.buyers.model import BuyerStatus, Standing
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

_MESSAGES: Final = {
    BuyerStatus.VERIFIED: "The buyer is verified. Later purchases at integrated vendors will be "
    "instant.",
    BuyerStatus.PENDING: "The identity provider has not decided yet. Request the status later.",
    BuyerStatus.REQUIRES_INPUT: "The buyer has to act at the identity provider first.",
    BuyerStatus.FAILED: "The buyer could not be verified. See reasons.",
    BuyerStatus.EXPIRED: "The buyer's verification has expired. Start a new identity session.",
    BuyerStatus.REVOKED: "The verification of this buyer was revoked.",
}


async def verify(room: Buyers, call: Call) -> Reply:
    """Check a session at the identity provider, and issue or refresh a cbid."""
    body = parse_body(call.body, schemas.BuyerVerificationRequest)
    outcome = await room.verify(
        call.principal,
        VerificationRequest(
            provider_identity_session_id=body.provider_identity_session_id,
            shipping_zip=body.shipping_zip,
            test_mode=bool(body.test_mode),
            subject_reference=body.subject_reference,
        ),
        call.remembering(_render),
    )
    return Reply(_render(outcome))


async def get_status(room: Buyers, call: Call) -> Reply:
    """The present status of a buyer, as far as this account may rely on it."""
    standing = await room.status(call.principal, call.parameter)
    return Reply(status_body(call.parameter, standing))


def status_body(cbid: str, standing: Standing) -> bytes:
    """The status of a buyer as the API shows it."""
    return encode(
        schemas.BuyerStatusAnswer(
            cbid=cbid,
            status=standing.status,
            verified_at=to_the_second(standing.verified_at),
            expires_at=to_the_second(standing.expires_at),
            reasons=list(standing.reasons) or msgspec.UNSET,
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
    settle = room.poll
    await settle.receiver(provider, account_id)
    assert call.read_body is not None  # noqa: S101 - the route table says so
    await settle.hint(provider, account_id, headers, await call.read_body())
    return Reply(b"{}")


def _render(outcome: Outcome) -> bytes:
    standing = outcome.standing
    return encode(
        schemas.BuyerVerification(
            cbid=outcome.cbid,
            status=standing.status,
            expires_at=to_the_second(standing.expires_at),
            message=_MESSAGES[standing.status],
            reasons=list(standing.reasons) or msgspec.UNSET,
        )
    )


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
