"""Acknowledgments: append-only, each bound to the exact words that were shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from countersign.base.values import Mode
from countersign.core.acknowledgments.origin import Origin
from countersign.core.log.record import Sealed
from countersign_evidence.process import PROCESS
from countersign_evidence.record import REFERENCE_FIELD

INITIALS_LENGTH_MAX: Final = 32
"""Characters (Unicode code points) in the initials of one line."""
HOSTED_CREDENTIAL: Final = "checkout_session"
"""The credential named in the record of a hosted acknowledgment."""
NO_FIELD: Final = "none"
"""In the place of names of fields: not one of them."""


class Capture(StrEnum):
    """How the initials were captured, which determines what the record can prove.

    With `vendor_api` the vendor asserts what the buyer did; with `hosted` a client that had the
    session's token sent the initials directly to this service.
    """

    VENDOR_API = "vendor_api"
    HOSTED = "hosted"


class VersionSource(StrEnum):
    """Whether the caller named the version that was shown, or the version in force was assumed."""

    ASSERTED = "asserted"
    ASSUMED = "assumed"


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A caller's submission for one notice."""

    initials_per_line: Sequence[str]
    session_id: str | None
    cbid: str | None
    notice_version: str | None
    origin: Origin
    order_reference: str | None = None


AS_SUBMITTED: Final = tuple(
    name
    for name in Submission.__struct_fields__
    if name not in {"notice_version", "origin", REFERENCE_FIELD}
)
"""The personal members, each of which is a disclosure of its own and can be erased.

The order's reference is another, but only where there is one.
"""
PERSONAL_FIELDS: Final = (*AS_SUBMITTED, "ip", "user_agent")
"""The names of the disclosures of an acknowledgment's record, in the order they are kept in."""
ALL_FIELDS: Final = (*PERSONAL_FIELDS, PROCESS, REFERENCE_FIELD)
"""With those that only some records have: a hosted one, and one whose order has a reference."""


class Receipt(NamedTuple):
    """The response of *acknowledge*."""

    ack_id: str
    receipt: str | None
    """The signed promise that the log will have its record (evidence.receipt)."""
    body: bytes
    """The response as JSON, which is also kept for a repeated request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAcknowledgment:
    """An acknowledgment as the database has it.

    `payload` and `shred_key` are None once its disclosures are erased; `sealed` is None while its
    entry in the log is pending.
    """

    ack_id: str
    account_id: str
    mode: Mode
    accepted_at: datetime
    record: bytes
    payload: bytes | None
    shred_key: bytes | None
    sealed: Sealed | None
    erased_at: datetime | None
    clearance_id: str | None
    """The newest clearance that was granted with it."""


class RecordView(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a record that are read back."""

    notice_id: str
    notice_version: str
    notice_digest: str
    notice_version_source: VersionSource
    capture: Capture
    test_clock: datetime | msgspec.UnsetType = msgspec.UNSET
    """The time on the account's test clock, if it was ahead."""
