"""Bodies of clearances, with examples."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType, convert, to_builtins

from countersign.http.examples import ACK_ID, CBID, CLEARANCE_ID, SESSION
from countersign.http.paging import Listing, cursor
from countersign.http.schemas import Evidence, Opaque, Reference, Request, Timestamp, ZipCode
from countersign.notices.obligations import ProductClass
from countersign.reason import Reason


class ClearanceReason(StrEnum):
    """Why an order is not cleared; docs/clearances.md says what to do about each reason."""

    ACKNOWLEDGMENT_NOT_FOUND = "acknowledgment_not_found"
    ACKNOWLEDGMENT_ERASED = "acknowledgment_erased"
    SESSION_MISMATCH = "session_mismatch"
    ACKNOWLEDGMENT_ALREADY_USED = "acknowledgment_already_used"
    ORDER_ALREADY_FULFILLED = "order_already_fulfilled"
    ACKNOWLEDGMENT_TOO_OLD = "acknowledgment_too_old"
    NOTICE_NOT_IN_FORCE = "notice_not_in_force"
    PRODUCT_CLASS_MISSING = "product_class_missing"
    NOTICE_NOT_SUFFICIENT = "notice_not_sufficient"
    BUYER_NOT_FOUND = "buyer_not_found"
    BUYER_MISMATCH = "buyer_mismatch"
    BUYER_NOT_VERIFIED = "buyer_not_verified"
    BUYER_REQUIRES_INPUT = "buyer_requires_input"
    BUYER_EXPIRED = "buyer_expired"
    BUYER_REVOKED = "buyer_revoked"
    ZIP_MISMATCH = "zip_mismatch"
    ADDRESS_MISMATCH = "address_mismatch"


Code = Annotated[str, Meta(extra_json_schema={"enum": sorted({*ClearanceReason, *Reason})})]
"""A reason of a clearance, or of its buyer."""


class ShippingAddress(Request, frozen=True, kw_only=True, omit_defaults=True):
    """The address that the order ships to."""

    postal_code: ZipCode
    line1: Opaque | None = None
    line2: Opaque | None = None
    city: Opaque | None = None
    state: Opaque | None = None
    country: Opaque | None = None


class ClearanceRequest(Request, frozen=True, kw_only=True):
    """An order to decide about."""

    ack_id: Annotated[Reference, Meta(description="The acknowledgment of the notice.")]
    cbid: Annotated[Reference, Meta(description="The buyer identifier.")]
    shipping_zip: Annotated[ZipCode, Meta(description="The order's destination: ZIP or ZIP+4.")]
    session_id: Annotated[
        Reference, Meta(description="Your checkout session, the same as in the acknowledgment.")
    ]
    product_class: (
        Annotated[
            ProductClass,
            Meta(
                description=(
                    "The class of the product: `accessory`, `manufacturing_machine`, `barrel`, "
                    "or another class that a notice names. The account may require it for live "
                    "orders."
                ),
            ),
        ]
        | None
    ) = None
    shipping_address: Annotated[
        ShippingAddress | None,
        Meta(description="Must contain the ZIP code; the rest is not compared."),
    ] = None

    def __repr__(self) -> str:
        return f"<Order of {self.ack_id}: hidden>"


class FulfilmentRequest(Request, frozen=True, kw_only=True):
    """The fulfilment of an order; at least one field is required."""

    carrier: Reference | None = None
    tracking_number: Reference | None = None
    shipped_at: Timestamp | None = None
    delivered_at: Timestamp | None = None
    adult_signature_obtained: bool | None = None


class ClearancesQuery(
    Listing[Annotated[str, cursor("the id of that page's last clearance", CLEARANCE_ID)]],
    frozen=True,
    kw_only=True,
):
    ack_id: Annotated[
        Opaque | None,
        Meta(
            description="Only clearances requested with this acknowledgment.",
            examples=[ACK_ID],
        ),
    ] = None
    session_id: Annotated[
        Opaque | None,
        Meta(description="Only items with this checkout session.", examples=[SESSION]),
    ] = None
    cbid: Annotated[
        Opaque | None, Meta(description="Only items with this buyer identifier.", examples=[CBID])
    ] = None


class ClearanceDecision(Struct, frozen=True, kw_only=True):
    """Whether an order may ship: only if `cleared` is true."""

    clearance_id: str
    cleared: bool
    reasons: Annotated[
        tuple[Code, ...],
        Meta(
            description="All reasons against the order, in a stable order; empty if it is cleared."
        ),
    ]
    obligations: Annotated[
        tuple[Mapping[str, Any], ...],
        Meta(description="The duties for the order, each with a `type`."),
    ]
    expires_at: Timestamp | None
    token: Annotated[
        str | None,
        Meta(description="A JWS (EdDSA) that a warehouse can check offline; null: not cleared."),
    ]


class Fulfilment(Struct, frozen=True, kw_only=True):
    """A report of fulfilment."""

    fulfilment_id: str
    clearance_id: str
    reported_at: Timestamp
    carrier: str | None
    tracking_number: str | None
    shipped_at: Timestamp | None
    delivered_at: Timestamp | None
    adult_signature_obtained: bool | None


class FulfilmentReceipt(Struct, frozen=True, kw_only=True):
    """The stored report, and whether the order is closed."""

    fulfilment_id: str
    clearance_id: str
    closed_at: Annotated[
        Timestamp | None, Meta(description="null: not every obligation is reported yet.")
    ]


class Clearance(Struct, frozen=True, kw_only=True):
    """A stored clearance. A field that is null was not given, or was erased."""

    clearance_id: str
    livemode: bool
    ack_id: Annotated[
        str | None, Meta(description="null: the value that was sent is not a valid identifier.")
    ]
    cbid: str | None
    session_id: str | None
    shipping_zip: str | None
    shipping_address: Mapping[str, str] | None
    product_class: str | None
    cleared: bool
    reasons: tuple[Code, ...]
    obligations: tuple[Mapping[str, Any], ...]
    created_at: Timestamp
    expires_at: Timestamp | None
    test_clock: (
        Annotated[
            Timestamp,
            Meta(
                description="The account's test clock; present only if it was ahead. `expires_at` "
                "refers to this clock."
            ),
        ]
        | UnsetType
    ) = UNSET
    token: Annotated[str | None, Meta(description="null: not cleared, or no longer valid.")]
    fulfilments: Annotated[
        list[Fulfilment], Meta(description="The reports about the order, oldest first.")
    ]
    closed_at: Timestamp | None
    evidence: Evidence
    erased_at: Timestamp | None


FULFILMENT_ID: Final = "ful_01kmcg2a7ke4d1p8z6h0s5n9ry"
_signed: Final = "eyJhbGciOiJFZERTQSIsImtpZCI6InRlc3QtY2xl…"
_obligations: Final = [{"type": "compared", "what": "zip"}]

CLEAR_MIN: Final[dict[str, Any]] = {
    "ack_id": ACK_ID,
    "cbid": CBID,
    "session_id": SESSION,
    "shipping_zip": "94111",
}
CLEAR: Final[dict[str, Any]] = CLEAR_MIN | {
    "product_class": "accessory",
    "shipping_address": {"line1": "1 Main Street", "state": "CA", "postal_code": "94111"},
}
CLEARED: Final[dict[str, Any]] = {
    "clearance_id": CLEARANCE_ID,
    "cleared": True,
    "reasons": [],
    "obligations": _obligations,
    "expires_at": "2026-11-21T21:31:05Z",
    "token": _signed,
}
NOT_CLEARED: Final[dict[str, Any]] = CLEARED | {
    "cleared": False,
    "reasons": ["acknowledgment_too_old", "buyer_expired"],
    "obligations": [],
    "expires_at": None,
    "token": None,
}
FULFIL: Final[dict[str, Any]] = {
    "carrier": "UPS",
    "tracking_number": "1Z999AA10123456784",
    "shipped_at": "2026-11-21T16:05:00Z",
    "adult_signature_obtained": True,
}
FULFILLED: Final[dict[str, Any]] = {
    "fulfilment_id": FULFILMENT_ID,
    "clearance_id": CLEARANCE_ID,
    "closed_at": "2026-11-21T21:02:11Z",
}
_report: Final = FULFIL | {
    "fulfilment_id": FULFILMENT_ID,
    "clearance_id": CLEARANCE_ID,
    "reported_at": "2026-11-21T21:02:11Z",
    "delivered_at": None,
}
_members: Final = {
    "livemode": False,
    "created_at": "2026-11-20T21:31:05Z",
    "fulfilments": [],
    "closed_at": "2026-11-21T21:02:11Z",
    "evidence": {"status": "pending", "log": None, "index": None},
    "erased_at": None,
}
CLEARANCE: Final[dict[str, Any]] = to_builtins(convert(CLEAR | CLEARED | _members, Clearance))
CLEARANCE["fulfilments"] = [_report]
CLEARANCES: Final[dict[str, Any]] = {"data": [CLEARANCE], "next_cursor": None}
