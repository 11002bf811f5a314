"""Schemas that several nouns share: the types that validate are the types that are documented."""

from datetime import datetime
from typing import Annotated, Final

from msgspec import Meta, Struct

from countersign.ids import OPAQUE_LENGTH_MAX

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
