"""Bodies of checkout sessions, with examples."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from countersign.base.http.schemas import (
    ACK_ID,
    CBID,
    CHECKOUT_SESSION_ID,
    CLEARANCE_ID,
    ORDER,
    RECEIPT,
    SESSION,
    STORABLE,
    YOUR_REFERENCE,
    AckId,
    CheckoutSessionId,
    GivenSession,
    Listing,
    NamesOrder,
    NoticeId,
    OrderReference,
    Reference,
    Request,
    SessionId,
    Timestamp,
    ZipCode,
    cursor,
    in_full,
)
from countersign.core.access.account import URL_LENGTH_MAX
from countersign.core.acknowledgments.schemas import InitialsPerLine
from countersign.core.buyers.model import BuyerStatus
from countersign.core.checkout.model import CLAIMS_MAX, LIFETIME, LIFETIME_MAX, Collected, Status
from countersign.core.checkout.order import ClaimedEvent, Order
from countersign.core.clearances.schemas import NamesClasses
from countersign.core.notices.rule import Cart, Exemption
from countersign_evidence.process import Viewport

LIFETIME_MIN: Final = timedelta(minutes=1)
_RETURN_URL: Final = "https://shop.example/checkout/return"
_SHA256: Final = in_full("^[0-9a-f]{64}$")
_TOKEN: Final = "cst_test_4s7Qm2vXk9BzYw3LrT8pNc5HdJf6GaEu0iVoxW"  # noqa: S105 - an example

Lifetime = Annotated[
    int,
    Meta(
        ge=int(LIFETIME_MIN.total_seconds()),
        le=int(LIFETIME_MAX.total_seconds()),
        description=f"How long the link works, {LIFETIME_MAX // timedelta(hours=1)} hours at most; "
        f"left out: {LIFETIME // timedelta(minutes=1)} minutes.",
    ),
]
Address = Annotated[str, Meta(max_length=URL_LENGTH_MAX, min_length=1, extra_json_schema=STORABLE)]


class CheckoutSessionRequest(NamesClasses, frozen=True, kw_only=True):
    """A link for one buyer and one order."""

    return_url: Address
    """Where the buyer goes afterwards: http or https, with only identifiers added to its query.
    With live keys its origin must be registered."""
    session_id: Reference
    """Your checkout session: random, not an order number."""
    order_reference: Annotated[OrderReference | None, Meta(description=YOUR_REFERENCE)] = None
    collect: Annotated[list[Collected], Meta(min_length=1, max_length=2)] | None = None
    """What is collected; left out: the acknowledgment. The identity comes first."""
    notice_id: Reference | None = None
    """The notice to acknowledge. Required if an acknowledgment is collected."""
    cart: Cart | None = None
    """What is ordered, in the place of `collect` and `notice_id`: what the requirements say of it
    is collected, the identity only if no `cbid` is given."""
    cbid: Reference | None = None
    """The buyer identifier, if known. With the identity to collect, this buyer is asked for a new
    check."""
    shipping_zip: ZipCode | None = None
    """The order's destination. With it, and a buyer, a clearance is decided."""
    order: Order | None = None
    """What the buyer's page shows of the order. It is kept encrypted with the session and deleted
    with it: it is returned by nothing, and in no record or event."""
    origin: Address | None = None
    """Scheme, host and port of the page that embeds the component."""
    locale: Literal["en", "es"] | None = None
    """Language of the page; left out: the browser's."""
    expires_in_seconds: Lifetime | None = None


class CheckoutSession(Struct, frozen=True, kw_only=True):
    """A checkout session. Decide by `status`, never by where the buyer's browser returns."""

    checkout_session_id: CheckoutSessionId
    livemode: bool
    status: Annotated[Status, Meta(examples=[Status.OPEN])]
    session_id: SessionId | None
    order_reference: Annotated[str | None, Meta(examples=[ORDER])]
    collect: Annotated[list[Collected], Meta(examples=[["acknowledgment"]])]
    notice_id: NoticeId | None
    cbid: str | None
    """The buyer: as the identity check found, else as given."""
    provider_identity_session_id: str | None
    """The identity provider's session: of the newest attempt, if several."""
    identity_status: BuyerStatus | None
    """What came of the identity check: `verified`, `pending` while the provider decides, else why
    the buyer has to try again; null: nothing yet."""
    ack_id: str | None
    """The acknowledgment, once there is one."""
    receipt: str | None
    """The log's signed promise to have the record of the acknowledgment."""
    clearance_id: str | None
    """The decision about the order, where the facts sufficed for one."""
    cleared: bool | None
    """That decision; null: none was made."""
    reasons: list[str]
    """Why the order is not cleared, or the identity not verified: codes."""
    exemption: Exemption | None
    """As you asserted it for the cart. It changed something only if `collect` lacks the
    acknowledgment."""
    return_url: Annotated[str | None, Meta(examples=[_RETURN_URL])]
    origin: str | None
    locale: Annotated[str | None, Meta(examples=["en"])]
    """As you gave it; null: the browser's."""
    url: str | None
    """The link for the buyer. Only in the response that created it."""
    client_token: str | None
    """For the component. Only in the response that created the session."""
    created_at: Annotated[Timestamp, Meta(examples=["2026-11-20T21:30:00Z"])]
    expires_at: Annotated[Timestamp, Meta(examples=["2026-11-20T22:00:00Z"])]
    ended_at: Timestamp | None
    unreadable: bool | UnsetType = UNSET
    """Present and true only in a list: what is stored of this session is damaged, and null or empty
    here."""


class CheckoutSessionsQuery(
    Listing[Annotated[str, cursor("the id of that page's last session", CHECKOUT_SESSION_ID)]],
    NamesOrder,
    frozen=True,
    kw_only=True,
):
    session_id: GivenSession | None = None
    """Only items with this checkout session of yours."""
    order_reference: OrderReference | None = None
    """Only items with this order reference."""


class Cancellation(Request, frozen=True, kw_only=True):
    """Nothing: an empty object."""


class NoticeLine(Struct, frozen=True, kw_only=True):
    """A line to initial."""

    id: str
    text: str


class ShownNotice(Struct, frozen=True, kw_only=True):
    """The notice to show: all of it, exactly as it is."""

    notice_id: str
    version: str
    digest: str
    """SHA-256 of the notice bytes, hexadecimal."""
    title: str
    heading: str
    bullets: list[NoticeLine]
    attestation_text: str
    language: str
    text_gaps: list[str]
    source_law: str
    source_url: str


class CurrentCheckoutSession(Struct, frozen=True, kw_only=True):
    """A checkout session as the buyer's browser sees it."""

    checkout_session_id: CheckoutSessionId
    livemode: bool
    status: Annotated[Status, Meta(examples=[Status.COMPLETED])]
    vendor: Annotated[str, Meta(examples=["Example Parts"])]
    locale: Annotated[str, Meta(examples=["en"])]
    steps: Annotated[list[Collected], Meta(examples=[["acknowledgment"]])]
    step: Collected | None
    """What comes next; null: nothing."""
    reasons: list[str]
    ack_id: AckId | None
    copy_url: str | None
    """The buyer's own copy, for 30 days. Only in the response to the initials: null for others that
    have the token."""
    return_url: Annotated[
        str | None, Meta(examples=[f"{_RETURN_URL}?checkout_session_id={CHECKOUT_SESSION_ID}"])
    ]
    """Where to go now; null while open."""
    expires_at: Annotated[Timestamp, Meta(examples=["2026-11-20T22:00:00Z"])]
    notice: ShownNotice | None
    words: Annotated[dict[str, str], Meta(examples=[{"done_title": "Done"}])]
    """Texts of the interface, by their names."""
    agreement: str | None
    """The sentence that the buyer agrees to."""
    consent: str | None
    """The consent to the electronic form."""


class Claimed(Request, frozen=True, kw_only=True):
    """What the browser says that the buyer did."""

    line: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """Counted from 1."""
    event: ClaimedEvent


class ClaimsRequest(Request, frozen=True, kw_only=True):
    """Claims of the browser; the record marks them as claims."""

    events: Annotated[list[Claimed], Meta(max_length=CLAIMS_MAX)]
    viewport: Viewport | None = None


class Nothing(Struct, frozen=True, kw_only=True):
    """An empty object."""


Given = Annotated[bool, Meta(examples=[True])]


class CurrentAcknowledgmentRequest(Request, frozen=True, kw_only=True):
    """The buyer's initials on every line, with what they agree to."""

    initials_per_line: InitialsPerLine
    notice_version: Annotated[Reference, Meta(examples=["2026-01-01"])]
    """The version that was shown."""
    notice_digest: Annotated[str, Meta(pattern=_SHA256, examples=["0" * 64])]
    """SHA-256 of the notice bytes that were shown."""
    agreement: Given
    """Must be true: the sentence was agreed to."""
    consent: Given
    """Must be true: so was the electronic form."""
    surface_digest: Annotated[str, Meta(pattern=_SHA256)] | None = None
    """SHA-256 of the component's file, hexadecimal, if it is known."""


_START: Final[dict[str, Any]] = {"return_url": _RETURN_URL, "session_id": SESSION}
CREATE: Final = _START | {"notice_id": "ab1263"}
CREATE_ALL: Final = CREATE | {
    "order_reference": ORDER,
    "collect": ["identity", "acknowledgment"],
    "shipping_zip": "94111",
    "product_class": "accessory",
    "order": {
        "lines": [{"text": "Free-float handguard, 15 inch", "amount": "189.00"}],
        "currency": "USD",
    },
    "origin": "https://shop.example",
    "locale": "es",
}
CREATE_IDENTITY: Final = _START | {"collect": ["identity"], "shipping_zip": "94111"}
VERIFY_AGAIN: Final = CREATE_IDENTITY | {"cbid": CBID, "expires_in_seconds": 86400}
CREATE_FROM_CART: Final = _START | {
    "shipping_zip": "94111",
    "cart": {"product_classes": ["accessory"], "ship_to": {"state": "CA", "zip": "94111"}},
}
# Members of each state of a session, besides those of an open one.
CREATED: Final = {"url": f"https://evidence.example.com/c/{_TOKEN}", "client_token": _TOKEN}
_ENDED: Final = {"status": "completed", "cbid": CBID, "ended_at": "2026-11-20T21:31:00Z"}
COMPLETED: Final = _ENDED | {
    "ack_id": ACK_ID,
    "receipt": RECEIPT,
    "clearance_id": CLEARANCE_ID,
    "cleared": True,
}
_AT_PROVIDER: Final[dict[str, Any]] = {
    "collect": ["identity"],
    "notice_id": None,
    "provider_identity_session_id": f"hosted_{CHECKOUT_SESSION_ID}",
}
TRY_AGAIN: Final = _AT_PROVIDER | {
    "identity_status": "requires_input",
    "reasons": ["document_expired"],
}
VERIFIED: Final = _AT_PROVIDER | _ENDED | {"identity_status": "verified"}
COPY_URL: Final = f"https://countersign.example/c/{CHECKOUT_SESSION_ID}/copy/Kq3v0Zb8"
CLAIMS: Final[dict[str, Any]] = {
    "events": [{"line": 1, "event": "initialed"}],
    "viewport": {"width": 360, "height": 640},
}
