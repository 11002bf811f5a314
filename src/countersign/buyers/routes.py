"""Verifying buyers, and telling their status."""

from __future__ import annotations

import msgspec

from countersign.bootstrap import Deployment
from countersign.buyers import verify as acts
from countersign.buyers.poll_sessions import take_webhook, webhook_integration
from countersign.buyers.verify import VerificationRequest
from countersign.errors import InvalidRequest
from countersign.http import schemas
from countersign.http.body import parse_body
from countersign.http.reply import Call, Reply, encode
from countersign.identity.postal_code import is_zip
from countersign.instant import to_the_second


async def verify(deployment: Deployment, call: Call) -> Reply:
    """Check a session at the identity provider, and issue or refresh a cbid."""
    body = parse_body(call.body, schemas.BuyerVerificationRequest)
    if body.shipping_zip is not None and not is_zip(body.shipping_zip):
        # The schema's pattern lets a final line break through.
        msg = "Expected five digits or ZIP+4 - at `$.shipping_zip`."
        raise InvalidRequest(msg)
    result = await acts.verify(
        deployment.buyers,
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


async def get_status(deployment: Deployment, call: Call) -> Reply:
    """The present status of a buyer, as far as this account may rely on it."""
    view = await acts.buyer_status(deployment.buyers, call.principal, call.parameter)
    return Reply(
        encode(
            schemas.BuyerStatusAnswer(
                cbid=call.parameter,
                status=view.status,
                verified_at=to_the_second(view.verified_at),
                expires_at=to_the_second(view.expires_at),
                reasons=list(view.reasons) or msgspec.UNSET,
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
    room = deployment.buyers
    await webhook_integration(room, provider, account_id)
    assert call.read_body is not None  # noqa: S101 - the route table says so
    await take_webhook(room, provider, account_id, headers, await call.read_body())
    return Reply(b"{}")
