"""Records: facts written once, whose digests become entries of the log of their mode."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import msgspec

from countersign.base.values import Mode


class RecordType(StrEnum):
    """The type of a record."""

    ACKNOWLEDGMENT = "acknowledgment"
    VERIFICATION = "verification"
    CLEARANCE = "clearance"
    FULFILMENT = "fulfilment"
    ERASURE = "erasure"
    NOTICE_EVENT = "notice_event"
    KEY_ROTATION = "key_rotation"
    APPROVERS = "approvers"
    EPOCH = "epoch"
    RECOVERY = "recovery"
    OPERATOR = "operator"
    ACCOUNT = "account"
    CAPTURE_PROCESS = "capture_process"
    AUDIT_HEAD = "audit_head"


class SealedDisclosures(msgspec.Struct, frozen=True, kw_only=True):
    """The disclosures of a record, encrypted, and what is erased together with them.

    The blind indexes are keyed hashes by which a record can be found.
    """

    payload: bytes
    shred_key: bytes
    session_index: bytes | None
    cbid_index: bytes | None
    reference_index: bytes | None = None
    """Blind index of the vendor's order reference."""


class NewRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record to write. Without an account it is a fact of the deployment itself."""

    id: str
    account_id: str | None
    mode: Mode
    type: RecordType
    notice_id: str | None
    at: datetime
    body: bytes
    digest: bytes
    disclosures: SealedDisclosures | None


@dataclass(frozen=True, slots=True)
class Sealed:
    """The place of a record in the log."""

    origin: str
    index: int
