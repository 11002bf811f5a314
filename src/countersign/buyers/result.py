"""The result of a verification, and the response body that says it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec

from countersign.buyers import schemas
from countersign.buyers.model import BuyerStatus, BuyerStatusView
from countersign.http.reply import encode
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


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """The status of this attempt, the buyer's cbid and expiry; rendered once, in `body`."""

    cbid: str
    view: BuyerStatusView
    body: bytes = field(repr=False)


def verify_result(cbid: str, view: BuyerStatusView) -> VerifyResult:
    """The result with its response body."""
    body = encode(
        schemas.BuyerVerification(
            cbid=cbid,
            status=view.status,
            expires_at=to_the_second(view.expires_at),
            message=_MESSAGES[view.status],
            reasons=list(view.reasons) or msgspec.UNSET,
        )
    )
    return VerifyResult(cbid, view, body)
