"""Schemas that several nouns share: the types that validate are the types that are documented."""

import unicodedata
from datetime import datetime
from typing import Annotated, Final, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from countersign.base.errors import InvalidRequest
from countersign.base.ids import OPAQUE_LENGTH_MAX
from countersign.base.values import Mode
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
        # A composed character comes of four at most; what is longer takes long to compose.
        short = len(given) <= 4 * ORDER_REFERENCE_MAX
        composed = unicodedata.normalize("NFC", given) if short else given
        if len(composed) > ORDER_REFERENCE_MAX:
            raise InvalidRequest(
                f"Expected at most {ORDER_REFERENCE_MAX} characters - at `$.{REFERENCE_FIELD}`."
            )
        force_setattr(self, REFERENCE_FIELD, composed)


def view(kind: type[V], *sources: object, **members: object) -> V:
    """What is returned of something: its members of the same names, times to the second.

    `members` are what has another name or form. `livemode` is read off a `mode`.
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
        str,
        Meta(
            description="`pending` until the log contains the record, usually within a second.",
            extra_json_schema={"enum": ["pending", "sealed"]},
            examples=["pending"],
        ),
    ]
    log: Annotated[str | None, Meta(description="Origin of the log.")]
    index: Annotated[int | None, Meta(description="The number of the entry, counted from 0.")]


class ErrorDetail(Struct, frozen=True, kw_only=True):
    """What went wrong: a stable code for programs, a message for people."""

    code: str
    message: str


class ErrorBody(Struct, frozen=True, kw_only=True):
    """The body of every failure."""

    error: ErrorDetail
