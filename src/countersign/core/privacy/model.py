"""Erasing: plans, holds, and due data."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from countersign.base.values import Mode
from countersign.core.access.reach import Reach, reach_of
from countersign.core.log.record import NewRecord


class ErasureReason(StrEnum):
    """Why something was erased, as its record says."""

    REQUEST = "request"
    RETENTION = "retention"
    COURT_ORDER = "court_order"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasable:
    """A record whose disclosures can be destroyed; `erased_at`: they already were."""

    record_id: str
    account_id: str
    mode: Mode
    at: datetime
    body: bytes
    erased_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasableBuyer:
    """A buyer with all its identifiers, the current one first, and its data in reach."""

    cbids: tuple[str, ...]
    owner: tuple[str, Mode]
    """The account and mode in whose name it is erased."""
    accounts: frozenset[tuple[str, Mode]]
    """Accounts and modes that have something of the buyer."""
    verifications: Sequence[Erasable]
    sessions: tuple[str, ...]
    """Its checkout sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan to erase a subject."""

    subject: str
    reach: Reach
    """Its extent: an account's plan contains nothing of another account or mode."""
    buyer: ErasableBuyer | None
    """If the subject is one."""
    records: tuple[Erasable, ...]
    kept_until: datetime | None
    """The end of the longest retention period that the records have, if it is yet to come."""

    @property
    def ids(self) -> list[str]:
        """Objects that a hold can keep: records, and the checkout sessions of a buyer."""
        sessions = self.buyer.sessions if self.buyer else ()
        return [*(record.record_id for record in self.records), *sessions]


class Outdated(NamedTuple):
    """Nothing was erased: data was written since the plan, or others erased some."""

    found: Sequence[Erasable]
    """Its new records; none for a check that has only begun."""
    sessions: tuple[str, ...]
    """The checkout sessions of the buyer as they are now."""
    gone: Collection[str] = ()
    """The records of the plan that are erased."""


class RecordErasure(NamedTuple):
    """Records of one account and mode whose disclosures go, and the record that states it."""

    record_ids: Sequence[str]
    erasure: NewRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A legal hold on a record of an order, a buyer or a whole account."""

    id: str
    subject: str
    reason: str
    placed_at: datetime
    released_at: datetime | None = None
    matter_id: str | None = None
    """The matter, which can hold several orders."""
    account_id: str = ""
    """The account of the hold; empty: the deployment, for everyone in both modes."""
    mode: Mode | None = None

    @property
    def owner(self) -> Reach:
        """The reach of the hold, and of its release."""
        return reach_of(self.account_id, self.mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matter:
    """A legal matter, which can hold several orders; `account_id` is empty: of the deployment."""

    id: str
    account_id: str
    mode: Mode
    name: str
    opened_at: datetime
    closed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A record whose retention period has ended; a hold with this id still keeps it."""

    record_id: str
    account_id: str
    retention_ended_at: datetime
    hold: str | None


def years_after(instant: datetime, years: int) -> datetime:
    """The same day `years` later; 29 February becomes 1 March in a common year."""
    try:
        return instant.replace(year=instant.year + years)
    except ValueError:
        return instant.replace(year=instant.year + years, month=3, day=1)
