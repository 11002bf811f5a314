"""Bodies of acknowledgments, with examples."""

from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from countersign.base.http.schemas import (
    ACK_ID,
    ORDER,
    STORABLE,
    YOUR_REFERENCE,
    AckId,
    BuyerId,
    ClearanceId,
    Evidence,
    GivenBuyer,
    GivenNotice,
    GivenSession,
    Listing,
    NamesOrder,
    NoticeId,
    Opaque,
    OrderReference,
    Receipt,
    SessionId,
    Timestamp,
    cursor,
)
from countersign.base.values import OPAQUE_LENGTH_MAX
from countersign.core.acknowledgments.model import (
    INITIALS_LENGTH_MAX,
    USER_AGENT_LENGTH_MAX,
    Capture,
    Source,
    VersionSource,
)
from countersign.core.notices.schemas import CONTENT, DIGEST
from countersign_evidence.process import Process

_AGENT: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
_INITIALS: Final = ["JD" for _ in CONTENT.bullets]
_ADDRESS: Final = {
    "anyOf": [{"type": "string", "format": "ipv4"}, {"type": "string", "format": "ipv6"}]
}
_Version = Annotated[str, Meta(examples=[CONTENT.version])]

InitialsPerLine = Annotated[
    list[Annotated[str, Meta(max_length=INITIALS_LENGTH_MAX, extra_json_schema=STORABLE)]],
    Meta(
        description="One element per bullet of the notice, in order; none may be blank.",
        examples=[_INITIALS],
    ),
]


class AcknowledgmentRequest(NamesOrder, frozen=True, kw_only=True):
    """The buyer's initials on every line of a notice."""

    initials_per_line: InitialsPerLine
    session_id: GivenSession | None = None
    """Your checkout session: random, not an order number."""
    cbid: GivenBuyer | None = None
    """The buyer identifier."""
    order_reference: Annotated[OrderReference | None, Meta(description=YOUR_REFERENCE)] = None
    ip: (
        Annotated[
            str,
            Meta(
                max_length=OPAQUE_LENGTH_MAX, extra_json_schema=_ADDRESS, examples=["203.0.113.7"]
            ),
        ]
        | None
    ) = None
    """The buyer's IPv4 or IPv6 address. Left out: taken from the request."""
    user_agent: (
        Annotated[
            str,
            Meta(max_length=USER_AGENT_LENGTH_MAX, extra_json_schema=STORABLE, examples=[_AGENT]),
        ]
        | None
    ) = None
    """The buyer's browser. Left out: the `User-Agent` of the request."""
    notice_version: Annotated[Opaque | None, Meta(examples=[CONTENT.version])] = None
    """The version that was shown; refused unless it is in force now."""


class AcknowledgmentReceipt(Struct, frozen=True, kw_only=True):
    """The stored acknowledgment's identifier, and what was acknowledged."""

    ack_id: AckId
    notice_id: NoticeId
    notice_version: _Version
    receipt: Receipt | None
    """A signed promise: the record whose SHA-256 it names will be in the log by the time that it
    states. Keep it: if the record is not there then, it proves so. Null if none of the log's keys
    can be used at the moment."""


class Acknowledgment(Struct, frozen=True, kw_only=True):
    """A stored acknowledgment. A field that is null was not given, or was erased."""

    ack_id: AckId
    livemode: bool
    notice_id: NoticeId
    notice_version: _Version
    notice_version_source: Annotated[VersionSource, Meta(examples=["asserted"])]
    notice_digest: Annotated[str, Meta(examples=[DIGEST])]
    initials_per_line: Annotated[list[str] | None, Meta(examples=[_INITIALS])]
    session_id: SessionId | None
    cbid: BuyerId | None
    order_reference: Annotated[str | None, Meta(examples=[ORDER])]
    ip: Annotated[str | None, Meta(examples=["203.0.113.7"])]
    ip_source: Annotated[Source | None, Meta(examples=["body"])]
    peer_ip: Annotated[str | None, Meta(examples=["198.51.100.20"])]
    """The IP address of the connection."""
    user_agent: Annotated[str | None, Meta(examples=[_AGENT])]
    user_agent_source: Annotated[Source | None, Meta(examples=["body"])]
    user_agent_truncated: Annotated[bool | None, Meta(examples=[False])]
    """Whether a longer header was shortened to 1,024 characters."""
    capture: Annotated[Capture, Meta(examples=["vendor_api"])]
    process: Process | None
    """How it was made; null with `vendor_api`."""
    accepted_at: Timestamp
    test_clock: Timestamp | UnsetType = UNSET
    """The account's test clock; present only if it was ahead."""
    clearance_id: ClearanceId | None
    """The newest clearance granted with this acknowledgment."""
    evidence: Evidence
    erased_at: Timestamp | None
    unreadable: bool | UnsetType = UNSET
    """Present and true only in a list: the stored personal fields are damaged, and they
    are null here. Reading this one alone is refused as `evidence_damaged`."""


class AcknowledgmentsQuery(
    Listing[Annotated[str, cursor("the id of that page's last acknowledgment", ACK_ID)]],
    NamesOrder,
    frozen=True,
    kw_only=True,
):
    """Which acknowledgments to list.

    `accepted_before` is exclusive, so that neighbouring ranges neither overlap nor leave a gap.
    """

    session_id: GivenSession | None = None
    """Only items with this checkout session."""
    cbid: GivenBuyer | None = None
    """Only items with this buyer identifier."""
    order_reference: OrderReference | None = None
    """Only items with this order reference."""
    notice_id: GivenNotice | None = None
    """Only acknowledgments of this notice."""
    accepted_after: Timestamp | None = None
    """Only acknowledgments accepted at or after this time."""
    accepted_before: Timestamp | None = None
    """Only acknowledgments accepted before this time."""
