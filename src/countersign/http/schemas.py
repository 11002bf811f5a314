"""Bodies of requests and answers: the types that validate are the types that are documented."""

from datetime import datetime
from typing import Annotated, Any, Final, Generic, TypeVar

import msgspec
from msgspec import Meta, Struct

from countersign.acknowledgments.model import (
    INITIALS_LENGTH_MAX,
    OPAQUE_LENGTH_MAX,
    Capture,
    VersionSource,
)
from countersign.acknowledgments.origin import USER_AGENT_LENGTH_MAX, Source
from countersign.buyers.model import BuyerStatus
from countersign.clearances.model import ClearanceReason
from countersign.identity.postal_code import ZIP_PATTERN
from countersign.notices.model import NoticeStatus
from countersign.reason import Reason

T = TypeVar("T")

NO_NUL: Final = r"^[^\u0000]*$"
"""Any text but U+0000, as a JSON Schema (ECMA 262) pattern."""

# Reading the body refuses U+0000 everywhere; the schemas only tell of it.
_STORABLE: Final = {"pattern": NO_NUL}
_ADDRESS: Final = {
    "anyOf": [{"type": "string", "format": "ipv4"}, {"type": "string", "format": "ipv6"}]
}

Opaque = Annotated[str, Meta(max_length=OPAQUE_LENGTH_MAX, extra_json_schema=_STORABLE)]
Reference = Annotated[Opaque, Meta(min_length=1)]
Code = Annotated[
    str,
    Meta(extra_json_schema={"enum": sorted({*ClearanceReason, *Reason})}),
]
"""A reason of a clearance, or of its buyer."""
PRODUCT_CLASS_PATTERN: Final = "^[a-z][a-z0-9_]*$"
Timestamp = Annotated[
    datetime,
    Meta(description="RFC 3339, UTC, to the second.", examples=["2026-11-20T21:31:00Z"], tz=True),
]


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all request bodies: unknown fields are refused."""


# --- requests -----------------------------------------------------------------------------------


class AcknowledgmentRequest(Request, frozen=True, kw_only=True):
    """The buyer's initials on every line of a notice."""

    initials_per_line: Annotated[
        list[Annotated[str, Meta(max_length=INITIALS_LENGTH_MAX, extra_json_schema=_STORABLE)]],
        Meta(description="One element per bullet of the notice, in order; none may be blank."),
    ]
    session_id: (
        Annotated[Opaque, Meta(description="Your checkout session: random, not an order number.")]
        | None
    ) = None
    cbid: Annotated[Opaque, Meta(description="The buyer identifier.")] | None = None
    ip: (
        Annotated[
            str,
            Meta(
                max_length=OPAQUE_LENGTH_MAX,
                description="The buyer's IPv4 or IPv6 address. Left out: taken from the request.",
                extra_json_schema=_ADDRESS,
            ),
        ]
        | None
    ) = None
    user_agent: (
        Annotated[
            str,
            Meta(
                max_length=USER_AGENT_LENGTH_MAX,
                description="The buyer's browser. Left out: the `User-Agent` of the request.",
                extra_json_schema=_STORABLE,
            ),
        ]
        | None
    ) = None
    notice_version: (
        Annotated[
            Opaque,
            Meta(description="The version that was shown; refused unless it is in force now."),
        ]
        | None
    ) = None


class BuyerVerificationRequest(Request, frozen=True, kw_only=True):
    """A finished session at an identity provider, to be checked."""

    provider_identity_session_id: (
        Annotated[
            Reference,
            Meta(description="The session at the identity provider. Required with a live key."),
        ]
        | None
    ) = None
    shipping_zip: (
        Annotated[
            str,
            Meta(
                pattern=ZIP_PATTERN,
                examples=["94105", "94105-1234"],
                max_length=10,
                description="The order's destination: ZIP or ZIP+4. Required with a live key.",
            ),
        ]
        | None
    ) = None
    test_mode: (
        Annotated[
            bool,
            Meta(description="Must be true with a test key, and absent or false with a live key."),
        ]
        | None
    ) = None
    subject_reference: (
        Annotated[
            Reference,
            Meta(
                description="Your reference for the buyer; must equal the reference in the session."
            ),
        ]
        | None
    ) = None


class ShippingAddress(Request, frozen=True, kw_only=True):
    """The address that the order ships to."""

    postal_code: Annotated[
        str, Meta(pattern=ZIP_PATTERN, max_length=10, examples=["94105", "94105-1234"])
    ]
    line1: Opaque | None = None
    line2: Opaque | None = None
    city: Opaque | None = None
    state: Opaque | None = None
    country: Opaque | None = None


class ClearanceRequest(Request, frozen=True, kw_only=True):
    """An order to decide about."""

    ack_id: Annotated[Reference, Meta(description="The acknowledgment of the notice.")]
    cbid: Annotated[Reference, Meta(description="The buyer identifier.")]
    shipping_zip: Annotated[
        str,
        Meta(
            pattern=ZIP_PATTERN,
            examples=["94105", "94105-1234"],
            max_length=10,
            description="The order's destination: ZIP or ZIP+4.",
        ),
    ]
    session_id: Annotated[
        Reference, Meta(description="Your checkout session, the same as in the acknowledgment.")
    ]
    product_class: (
        Annotated[
            str,
            Meta(
                pattern=PRODUCT_CLASS_PATTERN,
                examples=["accessory"],
                max_length=64,
                description=(
                    "The class of the product: `accessory`, `manufacturing_machine`, `barrel`, "
                    "or another class that a notice names. The account may require it for live "
                    "orders."
                ),
            ),
        ]
        | None
    ) = None
    shipping_address: (
        Annotated[
            ShippingAddress,
            Meta(description="Must contain the ZIP code; the rest is not compared."),
        ]
        | None
    ) = None


class FulfilmentRequest(Request, frozen=True, kw_only=True):
    """The fulfilment of an order; at least one field is required."""

    carrier: Reference | None = None
    tracking_number: Reference | None = None
    shipped_at: Timestamp | None = None
    delivered_at: Timestamp | None = None
    adult_signature_obtained: bool | None = None


# --- answers ------------------------------------------------------------------------------------


class Notice(Struct, frozen=True, kw_only=True):
    """A notice to show. Show every bullet in full; the buyer initials each one separately."""

    notice_id: str
    version: str
    title: str
    heading: str
    bullets: Annotated[
        list[str], Meta(description="The lines to initial; send one element of initials for each.")
    ]
    attestation_text: str
    source_law: str
    source_bill: str


class NoticeSummary(Struct, frozen=True, kw_only=True):
    """A notice of the registry, as seen by keys of this mode."""

    notice_id: str
    title: str
    jurisdiction: str
    language: str
    version: Annotated[
        str | None, Meta(description="The version in force; null: no version is in force.")
    ]
    versions: Annotated[int, Meta(description="The number of published versions.")]


class NoticeVersion(Struct, frozen=True, kw_only=True):
    """A published version and its status for keys of this mode."""

    notice_id: str
    version: str
    status: NoticeStatus
    digest: Annotated[str, Meta(description="Hex SHA-256 of the published bytes.")]
    lines: Annotated[int, Meta(description="The number of bullets to initial.")]
    effective_from: Annotated[str, Meta(extra_json_schema={"format": "date"})]
    published_at: Timestamp
    reviewed_at: Timestamp | None
    reviewed_against: Annotated[
        str | None,
        Meta(
            description="The official text that the version was compared with; null: not reviewed."
        ),
    ]
    source_url: str
    editorial: Annotated[
        list[str], Meta(description="Fields that are the operator's wording, not the law's.")
    ]
    text_gaps: Annotated[list[str], Meta(description="Known gaps in the text.")]


class AcknowledgmentReceipt(Struct, frozen=True, kw_only=True):
    """The stored acknowledgment's identifier, and what was acknowledged."""

    ack_id: str
    notice_id: str
    notice_version: str


class Evidence(Struct, frozen=True, kw_only=True):
    """The position of the record in the transparency log."""

    status: Annotated[
        str,
        Meta(
            description="`pending` until the log contains the record, usually within a second.",
            extra_json_schema={"enum": ["pending", "sealed"]},
        ),
    ]
    log: Annotated[str | None, Meta(description="Origin of the log.")]
    index: Annotated[int | None, Meta(description="The number of the entry, counted from 0.")]


class Acknowledgment(Struct, frozen=True, kw_only=True):
    """A stored acknowledgment. A field that is null was not given, or was erased."""

    ack_id: str
    livemode: bool
    notice_id: str
    notice_version: str
    notice_version_source: VersionSource
    notice_digest: str
    initials_per_line: list[str] | None
    session_id: str | None
    cbid: str | None
    ip: str | None
    ip_source: Source | None
    peer_ip: Annotated[str | None, Meta(description="The IP address of the connection.")]
    user_agent: str | None
    user_agent_source: Source | None
    user_agent_truncated: Annotated[
        bool | None, Meta(description="Whether a longer header was shortened to 1,024 characters.")
    ]
    capture: Capture
    accepted_at: Timestamp
    test_clock: (
        Annotated[
            Timestamp,
            Meta(description="The account's test clock; present only if it was ahead."),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET
    clearance_id: Annotated[
        str | None, Meta(description="The newest clearance granted with this acknowledgment.")
    ]
    evidence: Evidence
    erased_at: Timestamp | None


class ClearanceDecision(Struct, frozen=True, kw_only=True):
    """Whether an order may ship: only if `cleared` is true."""

    clearance_id: str
    cleared: bool
    reasons: Annotated[
        list[Code],
        Meta(
            description="All reasons against the order, in a stable order; empty if it is cleared."
        ),
    ]
    obligations: Annotated[
        list[dict[str, Any]],
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
    shipping_address: dict[str, str] | None
    product_class: str | None
    cleared: bool
    reasons: list[Code]
    obligations: list[dict[str, Any]]
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
        | msgspec.UnsetType
    ) = msgspec.UNSET
    token: Annotated[str | None, Meta(description="null: not cleared, or no longer valid.")]
    fulfilments: Annotated[
        list[Fulfilment], Meta(description="The reports about the order, oldest first.")
    ]
    closed_at: Timestamp | None
    evidence: Evidence
    erased_at: Timestamp | None


class BuyerVerification(Struct, frozen=True, kw_only=True):
    """The result of this verification. Only `status: verified` is positive."""

    cbid: str
    status: BuyerStatus
    expires_at: Timestamp | None
    message: str
    reasons: (
        Annotated[
            list[Reason],
            Meta(description="The reasons against it; present only if there is a reason."),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET


class BuyerStatusAnswer(Struct, frozen=True, kw_only=True):
    """The present status of a buyer."""

    cbid: str
    status: BuyerStatus
    verified_at: Timestamp | None
    expires_at: Timestamp | None
    reasons: (
        Annotated[
            list[Reason],
            Meta(
                description="Why this account may not rely on the verification. Only the account "
                "that made an attempt gets the reasons of its failure, even if the result came "
                "later."
            ),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET


class Page(Struct, Generic[T], frozen=True, kw_only=True):
    """A page of a list. Send `next_cursor` as `after` for the next page; null: the last page."""

    data: list[T]
    next_cursor: str | None


class Health(Struct, frozen=True, kw_only=True):
    """The process responds."""

    status: str


class Readiness(Struct, frozen=True, kw_only=True):
    """Whether the process can do its work: the state of each dependency, by name."""

    status: str
    checks: dict[str, str]


class ErrorDetail(Struct, frozen=True, kw_only=True):
    """What went wrong: a stable code for programs, a message for people."""

    code: str
    message: str


class ErrorBody(Struct, frozen=True, kw_only=True):
    """The body of every failure."""

    error: ErrorDetail
