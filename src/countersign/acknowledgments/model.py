"""Acknowledgments: append-only, each bound to the exact words that were shown."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from countersign.access.idempotency import IdempotencyEntry
from countersign.log.record import NewRecord, Sealed
from countersign.mode import Mode

PERSONAL_FIELDS: Final = ("initials_per_line", "session_id", "cbid", "ip", "user_agent")
"""The names of the disclosures of an acknowledgment's record, in the order they are kept in."""


NO_FIELD: Final = "none"
"""In the place of names of fields: not one of them."""


class Capture(StrEnum):
    """How the initials were captured, which determines what the record can prove.

    With `vendor_api` the vendor asserts what the buyer did; with `hosted` the buyer's browser sent
    the initials directly to this service.
    """

    VENDOR_API = "vendor_api"
    HOSTED = "hosted"


class VersionSource(StrEnum):
    """Whether the caller named the version that was shown, or the version in force was assumed."""

    ASSERTED = "asserted"
    ASSUMED = "assumed"


class Receipt(msgspec.Struct, frozen=True):
    """What the caller of *acknowledge* gets."""

    ack_id: str
    notice_id: str
    notice_version: str


class NewAcknowledgment(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one acknowledgment writes, in one transaction."""

    receipt: Receipt
    record: NewRecord
    remember: Callable[[Receipt], IdempotencyEntry] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAcknowledgment:
    """An acknowledgment as read back.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgmentQuery:
    """Which acknowledgments of one account and mode to list, newest first."""

    account_id: str
    mode: Mode
    session_index: bytes | None
    cbid_index: bytes | None
    notice_id: str | None
    accepted_after: datetime | None
    """Inclusive."""
    accepted_before: datetime | None
    """Exclusive, so that neighbouring ranges neither overlap nor leave a gap."""
    older_than: str | None
    """The `ack_id` after which to go on."""
    limit: int
