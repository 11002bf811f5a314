"""One identity check of a session: where it was started, by whom, and what came of it."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from countersign.buyers.model import BuyerStatus
from countersign.reason import Reason
from countersign_evidence.process import Binding

WRONG_SET_UP: Final = frozenset(
    {
        Reason.VERIFICATION_MISCONFIGURED,
        Reason.VERIFICATION_NOT_CONFIGURED,
        Reason.PROVIDER_SESSION_NOT_FOUND,
        Reason.SESSION_NOT_BOUND,
    }
)
"""Why a decision cannot be taken over, where waiting does not help: the vendor has to act."""


class StartedCheck(Struct, frozen=True, kw_only=True):
    """The newest identity check that was started in a session."""

    provider: str
    provider_session: str
    url: str
    """Of the provider's page. It lets anybody continue the check."""
    attempt: int
    """Counted from 1."""
    started_at: datetime
    expires_at: datetime | None = None
    """When the provider gives it up; None if it does not say."""
    opens_once: bool = False
    """Whether `url` opens the page only once."""
    leads_back: bool = True
    """Whether the provider leads the buyer back in the end."""
    played: bool = False
    """Whether the sandbox plays the provider."""


class Begun(Struct, frozen=True, kw_only=True):
    """The browser that an identity check belongs to: no other one is given its address."""

    attempt: int
    browser: str
    """Which of those with the link; "" if it was another one."""
    is_back: bool | None = None
    """Whether the provider led it back from the decision, and no other one; None: not yet."""
    back_at: datetime | None = None
    """When it was led back last, if `is_back`."""


class IdentityCheck(Struct, frozen=True, kw_only=True):
    """The best outcome of the identity checks in a session, or a buyer that was known before."""

    cbid: str | None
    """None where the buyer submitted nothing."""
    status: BuyerStatus
    reasons: tuple[str, ...]
    verification: str | None
    """The record of it."""
    binding: Binding
    """How it is known that it is this buyer."""
    attempt: int
    """Which of the checks that were started; 0: none, the buyer was remembered."""

    @property
    def verified(self) -> bool:
        return self.status is BuyerStatus.VERIFIED and self.cbid is not None


class Trouble(Struct, frozen=True, kw_only=True):
    """The decision about the newest check could not be taken over when it was asked for last."""

    attempt: int
    reason: str
    """The code of the error, or of the reason that it stands for."""
    is_back: bool
    """Whether the provider has led the buyer back from this check."""
