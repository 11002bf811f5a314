"""The sandbox: verification outcomes by session id, deterministic and simulated.

A session id listed in SCRIPT plays its part; any other, and none at all, is verified.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from countersign.buyers.model import VALIDITY, Attempt, BuyerStatus
from countersign.errors import ProviderSessionNotFound, ProviderUnavailable
from countersign.evidence.canonical import canonical_json
from countersign.ids import SANDBOX_BUYER, base32
from countersign.reason import Reason

_RETRY_AFTER_SECONDS: Final = 5
_SINCE_EXPIRED: Final = timedelta(days=1)


class Sandbox:
    """See `ports.Sandbox`."""

    name: Final = "sandbox"

    def play(self, session_id: str | None, now: datetime) -> tuple[Attempt, ...]:
        """What the session comes to at its first call; two attempts where there is a history."""
        return SCRIPT.get(session_id or "", _verified)(now)

    def cbid(self, account_id: str, session_id: str | None, shipping_zip: str | None) -> str:
        """A function of account, session id and ZIP, and of nothing else."""
        seed = canonical_json(["countersign sandbox buyer", account_id, session_id, shipping_zip])
        return f"{SANDBOX_BUYER}_{base32(int.from_bytes(sha256(seed).digest()[:16], 'big'))}"


def _verified(now: datetime) -> tuple[Attempt, ...]:
    return (Attempt(status=BuyerStatus.VERIFIED, at=now, expires_at=now + VALIDITY),)


def _ends_as(status: BuyerStatus, *reasons: Reason) -> Callable[[datetime], tuple[Attempt, ...]]:
    return lambda now: (Attempt(status=status, at=now, reasons=reasons),)


def _expired(now: datetime) -> tuple[Attempt, ...]:
    return _verified(now - VALIDITY - _SINCE_EXPIRED)


def _revoked(now: datetime) -> tuple[Attempt, ...]:
    return (*_verified(now), Attempt(status=BuyerStatus.REVOKED, at=now))


def _not_found(_: datetime) -> tuple[Attempt, ...]:
    raise ProviderSessionNotFound


def _unavailable(_: datetime) -> tuple[Attempt, ...]:
    raise ProviderUnavailable(retry_after=_RETRY_AFTER_SECONDS)


SCRIPT: Final[dict[str, Callable[[datetime], tuple[Attempt, ...]]]] = {
    "test_pending": _ends_as(BuyerStatus.PENDING),
    "test_requires_input": _ends_as(BuyerStatus.REQUIRES_INPUT, Reason.IDENTITY_REQUIRES_INPUT),
    "test_failed": _ends_as(BuyerStatus.FAILED, Reason.IDENTITY_FAILED),
    "test_underage": _ends_as(BuyerStatus.FAILED, Reason.AGE_BELOW_MINIMUM),
    "test_zip_mismatch": _ends_as(BuyerStatus.FAILED, Reason.ZIP_MISMATCH),
    "test_expired": _expired,
    "test_revoked": _revoked,
    "test_session_not_found": _not_found,
    "test_provider_unavailable": _unavailable,
}
"""The parts that can be played, by session id."""
