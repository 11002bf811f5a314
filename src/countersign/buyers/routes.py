"""Verifying buyers, and telling their status."""

from __future__ import annotations

from typing import Final

import msgspec

from countersign.bootstrap import Deployment
from countersign.buyers.evaluate_session import Outcome
from countersign.buyers.model import BuyerStatus
from countersign.buyers.verify import VerificationRequest
from countersign.errors import InvalidRequest
from countersign.http import schemas
from countersign.http.body import parse_body
from countersign.http.reply import Call, Reply, encode
from countersign.identity.postal_code import is_zip
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


async def verify(deployment: Deployment, call: Call) -> Reply:
    """Check a session at the identity provider, and issue or refresh a cbid."""
    body = parse_body(call.body, schemas.BuyerVerificationRequest)
    if body.shipping_zip is not None and not is_zip(body.shipping_zip):
        # The schema's pattern lets a final line break through.
        msg = "Expected five digits or ZIP+4 - at `$.shipping_zip`."
        raise InvalidRequest(msg)
    outcome = await deployment.buyers.verify(
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


async def get_status(deployment: Deployment, call: Call) -> Reply:
    """The present status of a buyer, as far as this account may rely on it."""
    standing = await deployment.buyers.status(call.principal, call.parameter)
    return Reply(
        encode(
            schemas.BuyerStatusAnswer(
                cbid=call.parameter,
                status=standing.status,
                verified_at=to_the_second(standing.verified_at),
                expires_at=to_the_second(standing.expires_at),
                reasons=list(standing.reasons) or msgspec.UNSET,
            )
        )
    )


async def provider_webhook(deployment: Deployment, call: Call) -> Reply:
    """Take a message of an identity provider: `PROVIDER/ACCOUNT_ID` is whose and for whom."""
    provider, _, account_id = call.parameter.partition("/")
    headers: dict[str, str] = {}
    for name, value in call.raw_headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        # RFC 9110 §5.3; no signature is one any more then.
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    settle = deployment.buyers.poll
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
