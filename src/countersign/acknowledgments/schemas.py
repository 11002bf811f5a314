"""Bodies of acknowledgments, with examples."""

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from countersign.acknowledgments.model import INITIALS_LENGTH_MAX, Capture, VersionSource
from countersign.acknowledgments.origin import USER_AGENT_LENGTH_MAX, Source
from countersign.http.examples import ACK_ID, CBID, CLEARANCE_ID, SESSION
from countersign.http.examples import RECEIPT as EXAMPLE_RECEIPT
from countersign.http.paging import Listing, cursor
from countersign.http.schemas import STORABLE, Evidence, Opaque, Request, Timestamp
from countersign.ids import OPAQUE_LENGTH_MAX
from countersign.notices.schemas import CONTENT, DIGEST
from countersign_evidence.process import Process

_ADDRESS: Final = {
    "anyOf": [{"type": "string", "format": "ipv4"}, {"type": "string", "format": "ipv6"}]
}


class AcknowledgmentRequest(Request, frozen=True, kw_only=True):
    """The buyer's initials on every line of a notice."""

    initials_per_line: Annotated[
        list[Annotated[str, Meta(max_length=INITIALS_LENGTH_MAX, extra_json_schema=STORABLE)]],
        Meta(description="One element per bullet of the notice, in order; none may be blank."),
    ]
    session_id: Annotated[
        Opaque | None, Meta(description="Your checkout session: random, not an order number.")
    ] = None
    cbid: Annotated[Opaque | None, Meta(description="The buyer identifier.")] = None
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
                extra_json_schema=STORABLE,
            ),
        ]
        | None
    ) = None
    notice_version: Annotated[
        Opaque | None,
        Meta(description="The version that was shown; refused unless it is in force now."),
    ] = None


class AcknowledgmentReceipt(Struct, frozen=True, kw_only=True):
    """The stored acknowledgment's identifier, and what was acknowledged."""

    ack_id: str
    notice_id: str
    notice_version: str
    receipt: Annotated[
        str | None,
        Meta(
            description="A signed promise: the record whose SHA-256 it names will be in the log "
            "by the time that it states. Keep it: if the record is not there then, it proves so. "
            "Null if none of the log's keys can be used at the moment."
        ),
    ]


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
    process: Annotated[Process | None, Meta(description="How it was made; null with `vendor_api`.")]
    accepted_at: Timestamp
    test_clock: (
        Annotated[
            Timestamp, Meta(description="The account's test clock; present only if it was ahead.")
        ]
        | UnsetType
    ) = UNSET
    clearance_id: Annotated[
        str | None, Meta(description="The newest clearance granted with this acknowledgment.")
    ]
    evidence: Evidence
    erased_at: Timestamp | None
    unreadable: (
        Annotated[
            bool,
            Meta(
                description="Present and true only in a list: what is stored of the personal "
                "fields is damaged, and they are null here. Reading this one alone is refused as "
                "`evidence_damaged`."
            ),
        ]
        | UnsetType
    ) = UNSET


class AcknowledgmentsQuery(
    Listing[Annotated[str, cursor("the id of that page's last acknowledgment", ACK_ID)]],
    frozen=True,
    kw_only=True,
):
    """Which acknowledgments to list.

    `accepted_before` is exclusive, so that neighbouring ranges neither overlap nor leave a gap.
    """

    session_id: Annotated[
        Opaque | None,
        Meta(description="Only items with this checkout session.", examples=[SESSION]),
    ] = None
    cbid: Annotated[
        Opaque | None, Meta(description="Only items with this buyer identifier.", examples=[CBID])
    ] = None
    notice_id: Annotated[
        Opaque | None, Meta(description="Only acknowledgments of this notice.", examples=["ab1263"])
    ] = None
    accepted_after: Annotated[
        Timestamp | None, Meta(description="Only acknowledgments accepted at or after this time.")
    ] = None
    accepted_before: Annotated[
        Timestamp | None, Meta(description="Only acknowledgments accepted before this time.")
    ] = None


_agent: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
_initials: Final = ["JD" for _ in CONTENT.bullets]

ACKNOWLEDGMENT: Final[dict[str, Any]] = {
    "ack_id": ACK_ID,
    "livemode": False,
    "notice_id": CONTENT.id,
    "notice_version": CONTENT.version,
    "notice_version_source": "asserted",
    "notice_digest": DIGEST,
    "initials_per_line": _initials,
    "session_id": SESSION,
    "cbid": CBID,
    "ip": "203.0.113.7",
    "ip_source": "body",
    "peer_ip": "198.51.100.20",
    "user_agent": _agent,
    "user_agent_source": "body",
    "user_agent_truncated": False,
    "capture": "vendor_api",
    "process": None,
    "accepted_at": "2026-11-20T21:31:00Z",
    "clearance_id": CLEARANCE_ID,
    "evidence": {"status": "pending", "log": None, "index": None},
    "erased_at": None,
}
ACKNOWLEDGE: Final = {
    name: ACKNOWLEDGMENT[name] for name in AcknowledgmentRequest.__struct_fields__
}
ACKNOWLEDGE_MIN: Final[dict[str, Any]] = {"initials_per_line": _initials}
RECEIPT: Final = {
    **{name: ACKNOWLEDGMENT[name] for name in ("ack_id", "notice_id", "notice_version")},
    "receipt": EXAMPLE_RECEIPT,
}
ACKNOWLEDGMENTS: Final[dict[str, Any]] = {"data": [ACKNOWLEDGMENT], "next_cursor": None}
