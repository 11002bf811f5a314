"""Bodies of verification sessions, with examples."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from countersign.checkout.schemas import CREATE, Address, Lifetime
from countersign.http.examples import CBID, SESSION
from countersign.http.schemas import Reference, Request, Timestamp, ZipCode

VERIFICATION_SESSION_ID: Final = "vfs_01km9x4v8gen3rr1p6q1s2t3v7"
_TOKEN: Final = "cst_test_4s7Qm2vXk9BzYw3LrT8pNc5HdJf6GaEu0iVoxW"  # noqa: S105 - an example


class VerificationSessionStatus(StrEnum):
    """Where a verification session stands; `open`, `pending` and `requires_input` are no ends."""

    OPEN = "open"
    PENDING = "pending"
    REQUIRES_INPUT = "requires_input"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class VerificationSessionRequest(Request, frozen=True, kw_only=True):
    """A link by which one buyer is verified."""

    return_url: Annotated[
        Address,
        Meta(
            description="Where the buyer goes afterwards: http or https, with only identifiers "
            "added to its query. With live keys its origin must be registered."
        ),
    ]
    shipping_zip: Annotated[ZipCode, Meta(description="The ZIP code that has to be proved.")]
    session_id: Annotated[
        Reference, Meta(description="Your checkout session: random, not an order number.")
    ]
    cbid: Annotated[
        Reference | None, Meta(description="The buyer who is to be verified again, if known.")
    ] = None
    locale: Annotated[
        Literal["en", "es"] | None, Meta(description="Language of the page; left out: `en`.")
    ] = None
    expires_in_seconds: Lifetime | None = None


class VerificationSession(Struct, frozen=True, kw_only=True):
    """A verification session. Decide by `status`, never by where the buyer's browser returns."""

    verification_session_id: str
    livemode: bool
    session_id: str | None
    provider_identity_session_id: Annotated[
        str | None,
        Meta(description="The identity provider's session: of the newest attempt, if several."),
    ]
    status: VerificationSessionStatus
    cbid: Annotated[
        str | None,
        Meta(description="The buyer: once completed as the identity check found, else as given."),
    ]
    reasons: Annotated[list[str], Meta(description="Why the buyer has to try again: codes.")]
    url: Annotated[
        str | None,
        Meta(description="The link for the buyer. Only in the response that created it."),
    ]
    return_url: str | None
    locale: str | None
    created_at: Timestamp
    expires_at: Timestamp
    ended_at: Timestamp | None
    unreadable: (
        Annotated[
            bool,
            Meta(
                description="Present and true only in a list: what is stored of this session is "
                "damaged, and null or empty here."
            ),
        ]
        | UnsetType
    ) = UNSET


CREATE_VERIFICATION: Final[dict[str, Any]] = {
    "return_url": CREATE["return_url"],
    "shipping_zip": "94111",
    "session_id": SESSION,
}
VERIFY_AGAIN: Final = CREATE_VERIFICATION | {
    "cbid": CBID,
    "locale": "es",
    "expires_in_seconds": 86400,
}
CREATED: Final[dict[str, Any]] = {
    "verification_session_id": VERIFICATION_SESSION_ID,
    "livemode": False,
    "session_id": SESSION,
    "provider_identity_session_id": f"hosted_{VERIFICATION_SESSION_ID}",
    "status": "open",
    "cbid": None,
    "reasons": [],
    "url": f"https://evidence.example.com/c/{_TOKEN}",
    "return_url": CREATE["return_url"],
    "locale": "en",
    "created_at": "2026-11-20T21:30:00Z",
    "expires_at": "2026-11-20T22:00:00Z",
    "ended_at": None,
}
OPEN: Final = CREATED | {"url": None}
TRY_AGAIN: Final = OPEN | {"status": "requires_input", "reasons": ["document_expired"]}
COMPLETED: Final = OPEN | {
    "status": "completed",
    "cbid": CBID,
    "ended_at": "2026-11-20T21:31:00Z",
}
CANCELLED: Final = OPEN | {"status": "cancelled", "ended_at": "2026-11-20T21:31:00Z"}
