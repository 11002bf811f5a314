"""Bodies of buyers, with examples."""

from typing import Annotated, Any, Final, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType
from sqlalchemy import Connection

from countersign.base.http.schemas import BuyerId, Reference, Request, Timestamp, ZipCode, view
from countersign.base.values import Reason
from countersign.core.access.idempotency import Remember, keep_answer
from countersign.core.buyers.model import BuyerStatus, BuyerStatusView
from countersign.core.gate.route import encode

_MESSAGES: Final = {
    BuyerStatus.VERIFIED: "The buyer is verified. Later purchases at integrated vendors will be "
    "instant.",
    BuyerStatus.PENDING: "The identity provider has not decided yet. Request the status later.",
    BuyerStatus.REQUIRES_INPUT: "The buyer has to act at the identity provider first.",
    BuyerStatus.FAILED: "The buyer could not be verified. See reasons.",
    BuyerStatus.EXPIRED: "The buyer's verification has expired. Start a new identity session.",
    BuyerStatus.REVOKED: "The verification of this buyer was revoked.",
}


Verified = Annotated[BuyerStatus, Meta(examples=[BuyerStatus.VERIFIED])]


class BuyerVerificationRequest(Request, frozen=True, kw_only=True):
    """A finished session at an identity provider, to be checked."""

    provider_identity_session_id: Annotated[Reference | None, Meta(examples=["vs_example"])] = None
    """The session at the identity provider. Required with a live key."""
    shipping_zip: ZipCode | None = None
    """The order's destination: ZIP or ZIP+4. Required with a live key."""
    test_mode: Annotated[bool | None, Meta(examples=[True])] = None
    """Must be true with a test key, and absent or false with a live key."""
    subject_reference: Reference | None = None
    """Your reference for the buyer; must equal the reference in the session."""


class BuyerVerification(Struct, frozen=True, kw_only=True):
    """The result of this verification. Only `status: verified` is positive."""

    cbid: BuyerId
    status: Verified
    expires_at: Annotated[Timestamp | None, Meta(examples=["2027-11-20T21:31:00Z"])]
    message: Annotated[str, Meta(examples=[_MESSAGES[BuyerStatus.VERIFIED]])]
    reasons: tuple[Reason, ...] | UnsetType = UNSET
    """The reasons against it; present only if there is a reason."""


class ReviewedBuyer(BuyerVerification, frozen=True, kw_only=True):
    """A buyer after a decision; the same as of a verification if the decision is final."""

    proposed: bool | UnsetType = UNSET
    """Present and true if nothing was decided yet: two people decide on the buyers of this account,
    and someone else has to decide the same."""


class BuyerStatusAnswer(Struct, frozen=True, kw_only=True):
    """The present status of a buyer."""

    cbid: BuyerId
    status: Verified
    verified_at: Annotated[Timestamp | None, Meta(examples=["2026-11-20T21:31:00Z"])]
    """When the buyer was verified. Of a verification that this account did not make, the day:
    `T00:00:00Z`."""
    expires_at: Annotated[Timestamp | None, Meta(examples=["2027-11-20T21:31:00Z"])]
    """When the status becomes `expired` for this account; of a verification that this account did
    not make, `T00:00:00Z` of that day."""
    reasons: tuple[Reason, ...] | UnsetType = UNSET
    """Why this account may not rely on the verification. Only the account that made an attempt gets
    the reasons of its failure, even if the result came later."""


class CheckEvidence(Struct, frozen=True, kw_only=True):
    """The evidence of one identity check."""

    verification_id: Annotated[str, Meta(examples=["ver_01km9x4v8gen3rr1p6q1s2t3v4"])]
    account_id: Annotated[str, Meta(examples=["acct_01km9wtz3tfs8v8j2c7n5k9m0c"])]
    provider: Annotated[str, Meta(examples=["stripe"])]
    status: Annotated[BuyerStatus, Meta(examples=[BuyerStatus.FAILED])]
    at: Timestamp
    erased_at: Timestamp | None
    content: dict[str, Any] | None
    """All that is known of the person; `answer.text` is the provider's response. null: it was
    erased."""


class BuyerEvidence(Struct, frozen=True, kw_only=True):
    """The identity checks of a buyer, oldest first, with names, dates of birth and addresses."""

    cbid: BuyerId
    checks: list[CheckEvidence]


class VerifyResult(NamedTuple):
    """The status of this attempt, the buyer's cbid and expiry, and the response that says it."""

    cbid: str
    view: BuyerStatusView
    body: bytes


def answered(
    connection: Connection,
    entry: Remember[bytes],
    cbid: str,
    shown: BuyerStatusView,
    *,
    proposed: bool = False,
) -> VerifyResult:
    """The result, its response kept for a repetition; `proposed`: of the first who decides."""
    body = encode(
        view(
            ReviewedBuyer,
            shown,
            proposed=proposed or UNSET,
            cbid=cbid,
            message=_MESSAGES[shown.status],
            reasons=shown.reasons or UNSET,
        )
    )
    keep_answer(connection, entry, body)
    return VerifyResult(cbid, shown, body)


UNDERAGE: Final = {
    "status": "failed",
    "expires_at": None,
    "message": _MESSAGES[BuyerStatus.FAILED],
    "reasons": ["age_below_minimum"],
}
"""The different members in the response about a buyer who is too young."""
