"""Schemas that several nouns share, their examples, and pages of lists."""

import unicodedata
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Final, Generic, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from countersign.base.errors import InvalidRequest
from countersign.base.generics import T
from countersign.base.values import OPAQUE_LENGTH_MAX, Mode, id_pattern
from countersign_evidence.record import REFERENCE_FIELD

V = TypeVar("V", bound=Struct)

ORDER_REFERENCE_MAX: Final = 64
"""Characters (Unicode code points) of the vendor's reference of an order, in NFC."""

NO_NUL: Final = r"^[^\u0000]*$"
"""Any text but U+0000, as a JSON Schema (ECMA 262) pattern."""

# Reading a request refuses U+0000 everywhere; the schemas only document it.
STORABLE: Final = {"pattern": NO_NUL}


def in_full(pattern: str) -> str:
    """A JSON Schema pattern for `Meta`: in Python, `$` would let a final line break through."""
    return pattern.removesuffix("$") + r"\Z"


Opaque = Annotated[str, Meta(max_length=OPAQUE_LENGTH_MAX, extra_json_schema=STORABLE)]
Reference = Annotated[Opaque, Meta(min_length=1)]
ZIP_PATTERN: Final = r"^[0-9]{5}(-[0-9]{4})?$"
"""Five ASCII digits, or ZIP+4, as a JSON Schema (ECMA 262) pattern."""
ZipCode = Annotated[
    str, Meta(pattern=in_full(ZIP_PATTERN), max_length=10, examples=["94105", "94105-1234"])
]
Timestamp = Annotated[
    datetime,
    Meta(description="RFC 3339, UTC, to the second.", examples=["2026-11-20T21:31:00Z"], tz=True),
]


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of request bodies and queries: unknown fields and parameters are refused."""


class NamesOrder(Request, frozen=True, kw_only=True):
    """The base of those with an `order_reference`: the same text is the same characters."""

    def __post_init__(self) -> None:
        """Compose its characters (NFC).

        Raises:
            InvalidRequest: it has too many.
        """
        given: str | None = getattr(self, REFERENCE_FIELD)
        if given is None or (given.isascii() and len(given) <= ORDER_REFERENCE_MAX):
            return
        # A composed character has at most four code points; longer text is slow to compose.
        short = len(given) <= 4 * ORDER_REFERENCE_MAX
        composed = unicodedata.normalize("NFC", given) if short else given
        if len(composed) > ORDER_REFERENCE_MAX:
            raise InvalidRequest(
                f"Expected at most {ORDER_REFERENCE_MAX} characters - at `$.{REFERENCE_FIELD}`."
            )
        force_setattr(self, REFERENCE_FIELD, composed)


def view(kind: type[V], *sources: object, **members: object) -> V:
    """Build a response type from the sources' members of the same names, with times cut to seconds.

    `members` are values with another name or form. `livemode` comes from a `mode`.
    """
    for source in sources:
        for name in kind.__struct_fields__:
            if name == "livemode" and hasattr(source, "mode"):
                members.setdefault(name, source.mode is Mode.LIVE)
            elif hasattr(source, name):
                members.setdefault(name, getattr(source, name))
    cut = {n: v.replace(microsecond=0) for n, v in members.items() if isinstance(v, datetime)}
    return kind(**members | cut)


class Evidence(Struct, frozen=True, kw_only=True):
    """The position of the record in the transparency log."""

    status: Annotated[
        str, Meta(extra_json_schema={"enum": ["pending", "sealed"]}, examples=["pending"])
    ]
    """`pending` until the log contains the record, usually within a second."""
    log: str | None
    """Origin of the log."""
    index: int | None
    """The number of the entry, counted from 0."""


class ErrorDetail(Struct, frozen=True, kw_only=True):
    """What went wrong: a stable code for programs, a message for people."""

    code: str
    message: str


class ErrorBody(Struct, frozen=True, kw_only=True):
    """The body of every failure."""

    error: ErrorDetail


ACCOUNT_ID: Final = "acct_01km9wtz3tfs8v8j2c7n5k9m0c"
CLEARANCE_ID: Final = "clr_01km9x4zq2e6t9m0r5c7v3w8xa"
ACK_ID: Final = "ack_01km9x4v8gen3rr1p6q1s2t3v4"
CBID: Final = "cbid_test_5d0kz9mq3v7w1xj2r8t4y6n0pa"
SESSION: Final = "cs_8f14e45f"
ORDER: Final = "100042"
EVENT_ID: Final = "evt_01km9x4vab7wqrr1p6q1s2t3v5"
ENDPOINT_ID: Final = "whe_01km9wzt3hfs8v8j2c7n5k9m0d"
CHECKOUT_SESSION_ID: Final = "chk_01km9x4v8gen3rr1p6q1s2t3v6"
RECEIPT: Final = """\
evidence.example.com/receipt/v1
record UNhY4JhezH9gQYqvDMWrWH9CwlcKiECVqejMrND2VFw=
index 0

evidence.example.com/receipt/v1
evidence.example.com/v1/log/test/1
1
HquBULd52pMW0uW2N11k7pGo4SxQ/Hc4anzyLnkLR98=
sealed-by 2026-11-21T21:31:00.000Z

\u2014 evidence.example.com/v1/log/test/1 \
i6denVROSMkOe4IWj7YfxyBeC9rnHo2nx7SICBuNKDTxIOShd/QAHnahieK+3wvFtUYdqg6IDRajbZ+sNBBQmV1d+QM=
"""

# What is returned.
AccountId = Annotated[str, Meta(description="The account.", examples=[ACCOUNT_ID])]
AckId = Annotated[str, Meta(examples=[ACK_ID])]
BuyerId = Annotated[str, Meta(examples=[CBID])]
ClearanceId = Annotated[str, Meta(examples=[CLEARANCE_ID])]
CheckoutSessionId = Annotated[str, Meta(examples=[CHECKOUT_SESSION_ID])]
EndpointId = Annotated[str, Meta(examples=[ENDPOINT_ID])]
NoticeId = Annotated[str, Meta(examples=["ab1263"])]
Receipt = Annotated[str, Meta(examples=[RECEIPT])]
SessionId = Annotated[str, Meta(examples=[SESSION])]

# Types of requests have limits: any text, or text that is not empty.
GivenAck = Annotated[Opaque, Meta(examples=[ACK_ID])]
GivenBuyer = Annotated[Opaque, Meta(examples=[CBID])]
GivenNotice = Annotated[Opaque, Meta(examples=["ab1263"])]
GivenSession = Annotated[Opaque, Meta(examples=[SESSION])]
AckReference = Annotated[Reference, Meta(examples=[ACK_ID])]
BuyerReference = Annotated[Reference, Meta(examples=[CBID])]
SessionReference = Annotated[Reference, Meta(examples=[SESSION])]
OrderReference = Annotated[
    str,
    Meta(
        min_length=1,
        # Counted by `NamesOrder`, when they are composed.
        extra_json_schema={**STORABLE, "maxLength": ORDER_REFERENCE_MAX},
        examples=[ORDER],
    ),
]
YOUR_REFERENCE: Final = (
    "What you call the order, such as its number: no name and no e-mail address. At most "
    f"{ORDER_REFERENCE_MAX} characters, which are composed (Unicode NFC)."
)


After = TypeVar("After", bound=str)
"""The `after` of one list: `Annotated[str, cursor(…)]`."""

LIMIT_MAX: Final = 100
LIMIT_DEFAULT: Final = 20
Limit = Annotated[
    int,
    Meta(ge=1, le=LIMIT_MAX, description="The maximum number of items.", examples=[LIMIT_DEFAULT]),
]


class Page(Struct, Generic[T], frozen=True, kw_only=True):
    """A page of a list. Send `next_cursor` as `after` for the next page; null: the last page."""

    data: list[T]
    next_cursor: str | None


class Listing(Request, Generic[After], frozen=True, kw_only=True):
    """The query of a list; a subclass adds what selects its items."""

    limit: Limit = LIMIT_DEFAULT
    after: After | None = None


def cursor(what: str, example: str) -> Meta:
    """The `after` of a list: an identifier with the prefix of the example, or any text."""
    prefix, is_id, _ = example.rpartition("_")
    return Meta(
        description=f"The `next_cursor` of the previous page: {what}.",
        examples=[example],
        pattern=in_full(id_pattern(prefix)) if is_id else None,
        extra_json_schema=STORABLE,
    )


def page_of(rows: Sequence[T], limit: int, cursor_of: Callable[[T], str]) -> Page[T]:
    """The first `limit` of these rows, and the cursor of the last one if there are more."""
    page = list(rows[:limit])
    return Page(data=page, next_cursor=cursor_of(page[-1]) if len(rows) > limit else None)
