"""Fulfilments: what a vendor reports as done for an order that was cleared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from countersign.access.idempotency import IdempotencyEntry
from countersign.log.record import NewRecord, Sealed
from countersign.mode import Mode
from countersign.notices.obligations import ADULT_SIGNATURE


class Fulfilment(Struct, frozen=True, kw_only=True):
    """One report; what is None was not reported."""

    carrier: str | None
    tracking_number: str | None
    shipped_at: datetime | None
    delivered_at: datetime | None
    adult_signature_obtained: bool | None


class FulfilmentReceipt(Struct, frozen=True, kw_only=True):
    """What whoever reported is told."""

    fulfilment_id: str
    clearance_id: str
    closed_at: datetime | None
    """When the order was closed; None: something is still to be reported."""


class StoredRecord(Struct, frozen=True, kw_only=True):
    """A record as stored; without payload and shred key, its disclosures are erased."""

    id: str
    at: datetime
    body: bytes
    payload: bytes | None
    shred_key: bytes | None
    sealed: Sealed | None
    erased_at: datetime | None


class StoredClearance(Struct, frozen=True, kw_only=True):
    """A clearance as read back."""

    account_id: str
    mode: Mode
    record: StoredRecord
    ack_id: str | None
    kid: str | None
    expires_at: datetime | None
    fulfilments: Sequence[StoredRecord]
    """Of its order, whichever of its clearances they were reported for; oldest first."""
    closed_at: datetime | None


class ClearanceQuery(Struct, frozen=True, kw_only=True):
    """Which clearances of an account to list; None is no limit."""

    account_id: str
    mode: Mode
    ack_id: str | None
    session_index: bytes | None
    cbid_index: bytes | None
    older_than: str | None
    limit: int


class NewFulfilment(Struct, frozen=True, kw_only=True):
    """What a report writes, in one transaction."""

    record: NewRecord
    account_id: str
    mode: Mode
    clearance_id: str
    ack_id: str
    adult_signature: bool
    obligations: Sequence[Mapping[str, Any]]
    at: datetime
    remember: Callable[[FulfilmentReceipt], IdempotencyEntry] | None


def is_complete(obligations: Sequence[Mapping[str, Any]], *, adult_signature: bool) -> bool:
    """Whether all is reported that the order asks for, after at least one report.

    `adult_signature`: whether one of the reports says that it was obtained.
    """
    due = any(obligation.get("type") == ADULT_SIGNATURE for obligation in obligations)
    return adult_signature or not due
