"""Buyers: the states of a verification, how they move, and who may rely on them.

Only three ways lead out of `verified`: time, revocation, and a new verification that succeeds.
A failed attempt never takes it away: the answer to *verify* tells of the attempt, the answer to
*status* of the buyer.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from countersign.domain.mode import Mode

VALIDITY: Final = timedelta(days=365)
"""How long a verification lasts; no statute was found to set it (at most 12 months, by choice)."""

ZIPS_PER_DAY: Final = 5
"""Different ZIP codes that one account may try for one buyer within 24 hours."""
ZIP_WINDOW: Final = timedelta(hours=24)


class BuyerStatus(StrEnum):
    """The verification status of a buyer."""

    PENDING = "pending"
    REQUIRES_INPUT = "requires_input"
    FAILED = "failed"
    VERIFIED = "verified"
    EXPIRED = "expired"
    REVOKED = "revoked"


class Reason(StrEnum):
    """Why a buyer is not verified: stable codes, never a value."""

    IDENTITY_FAILED = "identity_failed"
    IDENTITY_REQUIRES_INPUT = "identity_requires_input"
    AGE_BELOW_MINIMUM = "age_below_minimum"
    ZIP_MISMATCH = "zip_mismatch"
    SIMULATED_ELSEWHERE = "simulated_elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one verification came to. `status` is never `expired`: that is a matter of time."""

    status: BuyerStatus
    at: datetime
    expires_at: datetime | None = None
    reasons: tuple[Reason, ...] = ()


class Buyer(Struct, frozen=True, kw_only=True):
    """A buyer as stored. `account_id` is the account whose verification counts for it."""

    cbid: str
    account_id: str
    mode: Mode
    status: BuyerStatus
    reasons: tuple[Reason, ...]
    verified_at: datetime | None
    expires_at: datetime | None
    simulated: bool


class Standing(Struct, frozen=True, kw_only=True):
    """What an account is told about a buyer at one time."""

    status: BuyerStatus
    verified_at: datetime | None
    expires_at: datetime | None
    reasons: tuple[Reason, ...]


def first_verification(
    *, cbid: str, account_id: str, mode: Mode, simulated: bool, attempt: Attempt
) -> Buyer:
    """A new buyer from its first attempt."""
    blank = Buyer(
        cbid=cbid,
        account_id=account_id,
        mode=mode,
        status=BuyerStatus.PENDING,
        reasons=(),
        verified_at=None,
        expires_at=None,
        simulated=simulated,
    )
    return after_attempt(blank, attempt)


def after_attempt(buyer: Buyer, attempt: Attempt) -> Buyer:
    """The buyer after one more attempt.

    A revoked buyer stays revoked. A verified one (also one that has expired since) stays as it is
    unless the attempt succeeds; an attempt that revokes keeps what was verified before.
    """
    if buyer.status is BuyerStatus.REVOKED:
        return buyer
    if attempt.status is BuyerStatus.VERIFIED:
        return replace(
            buyer,
            status=BuyerStatus.VERIFIED,
            reasons=(),
            verified_at=attempt.at,
            expires_at=attempt.expires_at,
        )
    if attempt.status is BuyerStatus.REVOKED:
        return replace(buyer, status=BuyerStatus.REVOKED, reasons=())
    if buyer.status is BuyerStatus.VERIFIED:
        return buyer
    return replace(buyer, status=attempt.status, reasons=attempt.reasons)


def status_at(buyer: Buyer, now: datetime) -> BuyerStatus:
    """The status at this time: `verified` becomes `expired` when `expires_at` is reached."""
    if buyer.status is BuyerStatus.VERIFIED and (
        buyer.expires_at is None or now >= buyer.expires_at
    ):
        return BuyerStatus.EXPIRED
    return buyer.status


def standing(buyer: Buyer, asking_account_id: str, now: datetime) -> Standing:
    """What the asking account is told.

    A simulated verification never counts outside its own account: others are told that the
    buyer has to verify, and why.
    """
    if buyer.simulated and buyer.account_id != asking_account_id:
        return Standing(
            status=BuyerStatus.REQUIRES_INPUT,
            verified_at=None,
            expires_at=None,
            reasons=(Reason.SIMULATED_ELSEWHERE,),
        )
    return Standing(
        status=status_at(buyer, now),
        verified_at=buyer.verified_at,
        expires_at=buyer.expires_at,
        reasons=(),
    )
