"""What test keys may do to their sandbox: move buyers, and let the identity provider fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from countersign.access.idempotency import IdempotencyEntry
from countersign.access.test_clock import REAL_TIME, TestClock
from countersign.buyers.model import VALIDITY, Buyer, BuyerStatus, after_revocation, status_at
from countersign.errors import InvalidRequest
from countersign.identity.model import Outcome
from countersign.log.record import NewRecord
from countersign.reason import Reason

_DEFAULT_REASONS: Final = {
    BuyerStatus.FAILED: (Reason.IDENTITY_FAILED,),
    BuyerStatus.REQUIRES_INPUT: (Reason.IDENTITY_REQUIRES_INPUT,),
}
_BEFORE: Final = timedelta(days=1)
NO_BUYER: Final = "The buyer identifier was not found in the sandbox of this account."


class Fault(StrEnum):
    """A failure of an identity provider, or of the access to it."""

    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    UNINTELLIGIBLE = "unintelligible"
    SESSION_NOT_FOUND = "session_not_found"
    SESSION_NOT_BOUND = "session_not_bound"
    MISCONFIGURED = "misconfigured"


OUTCOMES: Final = {
    Fault.TIMEOUT: Outcome.PROVIDER_UNAVAILABLE,
    Fault.RATE_LIMITED: Outcome.PROVIDER_UNAVAILABLE,
    Fault.SERVER_ERROR: Outcome.PROVIDER_UNAVAILABLE,
    Fault.UNINTELLIGIBLE: Outcome.INVALID_RESPONSE,
    Fault.SESSION_NOT_FOUND: Outcome.NOT_FOUND,
    Fault.MISCONFIGURED: Outcome.PROVIDER_REJECTED,
}
"""What an adapter makes of each; a session that is not bound is found out after that."""

PROVIDER_RETRY_SECONDS: Final = {Fault.RATE_LIMITED: 30}
"""When a provider that fails so says to come back; the others say nothing."""

CALLS_MAX: Final = 1000
DELAY_MAX: Final = timedelta(seconds=15)
"""The longest that a planned fault takes: longer than any live call to a provider may."""


class FaultPlan(Struct, frozen=True, kw_only=True):
    """What the next verifications in an account's sandbox meet in place of their outcome."""

    fault: Fault
    calls: int | None
    """How many calls are left that meet it; None: all, until it is cleared."""
    delay: timedelta = timedelta(0)
    """How long each of them takes to answer."""


class SandboxState(Struct, frozen=True, kw_only=True):
    """What servers keep in mind of all sandboxes."""

    clocks: Mapping[str, TestClock]
    """By account; only those that are ahead."""
    failing: frozenset[str]
    """The accounts for which a fault is planned."""

    def clock(self, account_id: str) -> TestClock:
        """The test clock of an account."""
        return self.clocks.get(account_id, REAL_TIME)


class NewMove(Struct, frozen=True, kw_only=True):
    """A sandbox buyer to be put in another state, in one transaction."""

    account_id: str
    cbid: str
    provider: str
    decide: Callable[[Buyer], Buyer]
    """The buyer in that state; pure."""
    record: NewRecord
    """What is written down of it, if it changes the buyer; it has the real time."""
    judged_at: datetime
    """By the test clock."""
    remember: Callable[[Buyer], IdempotencyEntry] | None


def reasons_for(status: BuyerStatus, given: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """The reasons that a buyer in this state has: those given, or the usual one.

    Raises:
        InvalidRequest: there are reasons, and none belong to this state.
    """
    usual = _DEFAULT_REASONS.get(status)
    if usual is None and given:
        msg = f"Only the states {' and '.join(_DEFAULT_REASONS)} have reasons - at `$.reasons`."
        raise InvalidRequest(msg)
    return given or usual or ()


def moved(buyer: Buyer, status: BuyerStatus, reasons: tuple[Reason, ...], now: datetime) -> Buyer:
    """A sandbox buyer in another state, whatever the way there would be; `now` by the test clock.

    Unchanged where it is in that state already, so that asking twice does no more than once; but
    `verified` begins anew, as with a new verification.
    """
    match status:
        case BuyerStatus.VERIFIED:
            return replace(
                buyer, status=status, reasons=(), verified_at=now, expires_at=now + VALIDITY
            )
        case BuyerStatus.EXPIRED:
            if status_at(buyer, now) is status:
                return buyer
            began = now - VALIDITY - _BEFORE
            verified_at = began if buyer.verified_at is None else min(buyer.verified_at, now)
            return replace(
                buyer,
                status=BuyerStatus.VERIFIED,
                reasons=(),
                verified_at=verified_at,
                expires_at=now,
            )
        case BuyerStatus.REVOKED:
            return after_revocation(buyer)
        case _:
            return replace(buyer, status=status, reasons=reasons, verified_at=None, expires_at=None)
