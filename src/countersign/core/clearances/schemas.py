"""Bodies of clearances, with examples."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from countersign.base.http.schemas import (
    CLEARANCE_ID,
    ORDER,
    STORABLE,
    YOUR_REFERENCE,
    AckId,
    AckReference,
    BuyerId,
    BuyerReference,
    ClearanceId,
    Evidence,
    GivenAck,
    GivenBuyer,
    GivenSession,
    Listing,
    NamesOrder,
    Opaque,
    OrderReference,
    Reference,
    Request,
    SessionId,
    SessionReference,
    Timestamp,
    ZipCode,
    cursor,
)
from countersign.base.values import Reason
from countersign.core.gate.route import REASON_LENGTH_MAX, REASON_LENGTH_MIN
from countersign.core.notices.requirements import NoticeRequirement
from countersign.core.notices.rule import CLASSES_MAX, Exemption, ProductClass


class ClearanceReason(StrEnum):
    """Why an order is not cleared; docs/clearances.md says what to do about each reason."""

    ACKNOWLEDGMENT_NOT_FOUND = "acknowledgment_not_found"
    ACKNOWLEDGMENT_ERASED = "acknowledgment_erased"
    SESSION_MISMATCH = "session_mismatch"
    ACKNOWLEDGMENT_ALREADY_USED = "acknowledgment_already_used"
    ORDER_ALREADY_FULFILLED = "order_already_fulfilled"  # in stored decisions alone
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
    REFUSED_BY_VENDOR = "refused_by_vendor"
    ZIP_MISMATCH = "zip_mismatch"
    ADDRESS_MISMATCH = "address_mismatch"
    EXEMPTION_NOT_NAMED = "exemption_not_named"
    EXEMPTION_FACTS_MISSING = "exemption_facts_missing"
    EXEMPTION_EXPIRED = "exemption_expired"


_ADDRESS: Final = {"line1": "1 Main Street", "state": "CA", "postal_code": "94105"}

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


class NamesClasses(NamesOrder, frozen=True, kw_only=True):
    """The base of those that say what is sold: one class, or several of one order."""

    product_class: ProductClass | None = None
    """The class of the product: `accessory`, `manufacturing_machine`, `barrel`, or another class
    that a published notice names. Any other is refused with 400, which lists the known ones. The
    account may require it for live orders."""
    product_classes: (
        Annotated[
            tuple[ProductClass, ...],
            Meta(
                min_length=1, max_length=CLASSES_MAX, examples=[["accessory", "firearm_accessory"]]
            ),
        ]
        | None
    ) = None
    """The classes of an order with several, in the place of `product_class`: the notice has to
    suffice for each."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Its classes, each once and sorted."""
        one = () if self.product_class is None else (self.product_class,)
        return tuple(sorted({*(self.product_classes or one)}))


class ClearanceRequest(NamesClasses, frozen=True, kw_only=True):
    """An order to decide about."""

    ack_id: AckReference | None = None
    """The acknowledgment of the notice. Required without an exemption."""
    cbid: BuyerReference
    """The buyer identifier."""
    shipping_zip: ZipCode
    """The order's destination: ZIP or ZIP+4."""
    session_id: SessionReference
    """Your checkout session, the same as in the acknowledgment."""
    order_reference: Annotated[
        OrderReference | None,
        Meta(
            description=f"{YOUR_REFERENCE} Left out: the order is judged by its session alone. The "
            "account may require it for live orders."
        ),
    ] = None
    shipping_address: Annotated[ShippingAddress | None, Meta(examples=[_ADDRESS])] = None
    """Must contain the ZIP code; the rest is not compared."""
    exemption: Exemption | None = None
    """Without `ack_id`: judged by the rules of the notices. With it: stored and shown."""

    def __repr__(self) -> str:
        return f"<Order of {self.ack_id}: hidden>"


OrderNamed = Annotated[
    bool,
    Meta(
        description="Whether the request named the order by `order_reference`; false: it was "
        "judged by its session alone.",
        examples=[True],
    ),
]
AdultSignature = Annotated[bool, Meta(examples=[True])]
FulfilmentId = Annotated[str, Meta(examples=["ful_01kmcg2a7ke4d1p8z6h0s5n9ry"])]
Obligations = Annotated[
    tuple[Mapping[str, Any], ...],
    Meta(
        description="The duties for the order, each with a `type`.",
        examples=[[{"type": "compared", "what": "zip"}]],
    ),
]
Cleared = Annotated[bool, Meta(examples=[True])]
Until = Annotated[Timestamp | None, Meta(examples=["2026-11-21T21:31:05Z"])]
Shipped = Annotated[Timestamp | None, Meta(examples=["2026-11-21T16:05:00Z"])]
Closed = Annotated[Timestamp | None, Meta(examples=["2026-11-21T21:02:11Z"])]
Token = Annotated[str, Meta(examples=["eyJhbGciOiJFZERTQSIsImtpZCI6InRlc3QtY2xl…"])]


class FulfilmentRequest(NamesOrder, frozen=True, kw_only=True):
    """The fulfilment of an order; at least one fact is required."""

    carrier: Annotated[Reference, Meta(examples=["UPS"])] | None = None
    tracking_number: Annotated[Reference, Meta(examples=["1Z999AA10123456784"])] | None = None
    shipped_at: Shipped = None
    delivered_at: Timestamp | None = None
    adult_signature_obtained: AdultSignature | None = None
    paid_at: Annotated[Timestamp | None, Meta(examples=["2026-11-20T21:40:00Z"])] = None
    """Time of payment, in a report of its own while a clearance is valid. It keeps the
    acknowledgment for later decisions about the order."""
    order_reference: OrderReference | None = None
    """Your order: another one than the clearance's is refused."""
    confirm_order_of_events: Annotated[bool | None, Meta(examples=[True])] = None
    """True if this report is right, although the order was shipped before it was cleared, delivered
    before it was shipped, or delivered without the signature that it requires. The evidence shows
    that you confirmed it, and readers name it as odd."""
    corrects: FulfilmentId | None = None
    """The earlier report of the order that was wrong. This one stands in its place: state again
    what was right in it."""


class ClearancesQuery(
    Listing[Annotated[str, cursor("the id of that page's last clearance", CLEARANCE_ID)]],
    NamesOrder,
    frozen=True,
    kw_only=True,
):
    ack_id: GivenAck | None = None
    """Only clearances requested with this acknowledgment."""
    session_id: GivenSession | None = None
    """Only items with this checkout session."""
    cbid: GivenBuyer | None = None
    """Only items with this buyer identifier."""
    order_reference: OrderReference | None = None
    """Only items with this order reference."""


class OverrideRequest(NamesOrder, frozen=True, kw_only=True):
    """Why a refusal is manually overridden."""

    reason: Annotated[
        str,
        Meta(
            min_length=REASON_LENGTH_MIN,
            max_length=REASON_LENGTH_MAX,
            extra_json_schema=STORABLE,
            examples=["case 4712"],
        ),
    ]
    """Why. The audit keeps it permanently: nothing personal."""
    claimed_user: Annotated[Reference | None, Meta(examples=["shop user 17"])] = None
    """With a key, required: your user who decided. It is kept as your claim."""
    order_reference: OrderReference | None = None
    """Your order: another one than the clearance's is refused."""


class Overridden(Struct, frozen=True, kw_only=True):
    """A refused order with a manual override. It is not cleared, and has no token."""

    clearance_id: ClearanceId
    cleared: Annotated[bool, Meta(examples=[False])] = False
    """Always false."""
    overridden: Annotated[bool, Meta(examples=[True])]
    """False: it is the proposal of the first of two people."""
    override_id: Annotated[str | None, Meta(examples=["ovr_01kmcg2a7ke4d1p8z6h0s5n9rz"])]
    """null: it is a proposal."""
    reasons: tuple[Code, ...]
    """Those of the refusal."""
    obligations: Obligations


class ClearanceDecision(Struct, frozen=True, kw_only=True):
    """Whether an order may ship: only if `cleared` is true."""

    clearance_id: ClearanceId
    cleared: Cleared
    order_named: OrderNamed
    reasons: tuple[Code, ...]
    """All reasons against the order, in a stable order; empty if it is cleared."""
    obligations: Obligations
    expires_at: Until
    token: Token | None
    """A JWS (EdDSA) that a warehouse can check offline; null: not cleared, or shipped before."""
    already_shipped: Annotated[bool, Meta(examples=[False])]
    """True: this order was reported as shipped, under this clearance. Nothing was decided anew, and
    nothing more may leave on it."""
    overridden: bool | UnsetType = UNSET
    """Present and true: it is refused still, and has a manual override. The reasons here are all
    reasons of that refusal, `clearance_id` is its own, and `obligations` are the duties."""
    override_id: str | UnsetType = UNSET
    """Present with `overridden`."""


class Fulfilment(Struct, frozen=True, kw_only=True):
    """A report of fulfilment."""

    fulfilment_id: FulfilmentId
    clearance_id: ClearanceId
    reported_at: Annotated[Timestamp, Meta(examples=["2026-11-21T21:02:11Z"])]
    carrier: Annotated[str | None, Meta(examples=["UPS"])]
    tracking_number: Annotated[str | None, Meta(examples=["1Z999AA10123456784"])]
    shipped_at: Shipped
    delivered_at: Timestamp | None
    adult_signature_obtained: AdultSignature | None
    order_of_events_confirmed: Annotated[bool | UnsetType, Meta(examples=[True])] = UNSET
    """Present and true if the report contradicts the order of events, and the vendor confirmed
    it."""
    paid_at: Timestamp | UnsetType = UNSET
    """Present only in the report of a payment."""
    corrects: FulfilmentId | UnsetType = UNSET
    """Present if the report stands in the place of that earlier one."""


class FulfilmentReceipt(Struct, frozen=True, kw_only=True):
    """The stored report, and whether the order is closed."""

    fulfilment_id: FulfilmentId
    clearance_id: ClearanceId
    closed_at: Closed
    """null: not every obligation is reported yet."""


class Clearance(Struct, frozen=True, kw_only=True):
    """A stored clearance. A field that is null was not given, or was erased."""

    clearance_id: ClearanceId
    livemode: bool
    ack_id: AckId | None
    """null: none was sent, or no valid identifier."""
    cbid: BuyerId | None
    session_id: SessionId | None
    order_reference: Annotated[str | None, Meta(examples=[ORDER])]
    shipping_zip: Annotated[str | None, Meta(examples=["94105"])]
    shipping_address: Annotated[Mapping[str, str] | None, Meta(examples=[_ADDRESS])]
    product_class: Annotated[str | None, Meta(examples=["accessory"])]
    """null also for several classes."""
    product_classes: Annotated[list[str], Meta(examples=[["accessory"]])]
    """All classes of the order."""
    exemption: Exemption | None
    """As you asserted it."""
    exempt_from: tuple[NoticeRequirement, ...] | UnsetType = UNSET
    """The notices that it did not need, and why. Present only if it was cleared without an
    acknowledgment."""
    cleared: Cleared
    order_named: OrderNamed | None
    """null: decided by a release that did not note it."""
    reasons: tuple[Code, ...]
    obligations: Obligations
    created_at: Timestamp
    expires_at: Until
    test_clock: Timestamp | UnsetType = UNSET
    """The account's test clock; present only if it was ahead. `expires_at` refers to this clock."""
    paid_at: Timestamp | UnsetType = UNSET
    """The payment that kept the acknowledgment; present only if it would be too old otherwise, or
    its notice was not in force any more."""
    token: Token | None
    """null: not cleared, or no longer valid."""
    override: Mapping[str, Any] | UnsetType = UNSET
    """Present if the refusal has a manual override: `override_id` and `created_at`; `by`, with
    `actor` (a person, or a key) and `reason` of each, and `claimed_user`, until they are erased."""
    fulfilments: list[Fulfilment]
    """The reports about the order, oldest first."""
    closed_at: Closed
    evidence: Evidence
    erased_at: Timestamp | None
