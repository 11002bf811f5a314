"""Bodies of buyers, with examples."""

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from countersign.buyers.model import BuyerStatus
from countersign.http.examples import CBID
from countersign.http.schemas import Reference, Request, Timestamp
from countersign.identity.postal_code import ZipCode
from countersign.reason import Reason


class BuyerVerificationRequest(Request, frozen=True, kw_only=True):
    """A finished session at an identity provider, to be checked."""

    provider_identity_session_id: Annotated[
        Reference | None,
        Meta(description="The session at the identity provider. Required with a live key."),
    ] = None
    shipping_zip: Annotated[
        ZipCode | None,
        Meta(description="The order's destination: ZIP or ZIP+4. Required with a live key."),
    ] = None
    test_mode: Annotated[
        bool | None,
        Meta(description="Must be true with a test key, and absent or false with a live key."),
    ] = None
    subject_reference: Annotated[
        Reference | None,
        Meta(description="Your reference for the buyer; must equal the reference in the session."),
    ] = None


class BuyerVerification(Struct, frozen=True, kw_only=True):
    """The result of this verification. Only `status: verified` is positive."""

    cbid: str
    status: BuyerStatus
    expires_at: Timestamp | None
    message: str
    reasons: Annotated[
        list[Reason] | UnsetType,
        Meta(description="The reasons against it; present only if there is a reason."),
    ] = UNSET


class BuyerStatusAnswer(Struct, frozen=True, kw_only=True):
    """The present status of a buyer."""

    cbid: str
    status: BuyerStatus
    verified_at: Timestamp | None
    expires_at: Timestamp | None
    reasons: Annotated[
        list[Reason] | UnsetType,
        Meta(
            description="Why this account may not rely on the verification. Only the account "
            "that made an attempt gets the reasons of its failure, even if the result came "
            "later."
        ),
    ] = UNSET


VERIFY: Final[dict[str, Any]] = {
    "provider_identity_session_id": "vs_example",
    "shipping_zip": "94111",
    "test_mode": True,
}
VERIFIED: Final[dict[str, Any]] = {
    "cbid": CBID,
    "status": "verified",
    "expires_at": "2027-11-20T21:31:00Z",
    "message": "The buyer is verified. Later purchases at integrated vendors will be instant.",
}
UNDERAGE: Final[dict[str, Any]] = {
    "cbid": CBID,
    "status": "failed",
    "expires_at": None,
    "message": "The buyer could not be verified. See reasons.",
    "reasons": ["age_below_minimum"],
}
STATUS: Final[dict[str, Any]] = {
    "cbid": CBID,
    "status": "verified",
    "verified_at": "2026-11-20T21:31:00Z",
    "expires_at": "2027-11-20T21:31:00Z",
}
