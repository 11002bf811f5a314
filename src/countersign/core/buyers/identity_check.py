"""One check of a buyer's identity, from its number to its outcome: its states and transitions.

It is started for one checkout session at one provider, belongs to one browser, and is decided by
the provider's result. docs/architecture.md draws the states.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from countersign.base.values import Reason
from countersign.core.buyers.model import BuyerStatus
from countersign_evidence.process import Binding

WRONG_SET_UP: Final = frozenset(
    {
        Reason.VERIFICATION_MISCONFIGURED,
        Reason.VERIFICATION_NOT_CONFIGURED,
        Reason.PROVIDER_SESSION_NOT_FOUND,
        Reason.SESSION_NOT_BOUND,
    }
)
"""Why a decision cannot be applied, if waiting does not help: the vendor has to act."""


class CheckState(StrEnum):
    """The state of a check, of its decision, and of the buyer."""

    RESERVED = "reserved"
    """Number, provider and browser are stored before the request to the provider, so that
    concurrent requests, or a retry after a crash, get one check and not two."""
    DROPPED = "dropped"
    """Its number was used, and the buyer continued an older check."""
    OPEN = "open"
    """It is the buyer's turn, at the provider's page. Its address lets anybody continue the check,
    so only the browser that it belongs to is given it."""
    PENDING = "pending"
    """The provider decides."""
    ENDED = "ended"
    """Nothing was decided, and the provider is not polled again."""
    REFUSED = "refused"
    VERIFIED = "verified"
    REVOKED = "revoked"


FOLLOWED: Final = frozenset({CheckState.OPEN, CheckState.PENDING})
"""The provider is polled again."""
UNDECIDED: Final = FOLLOWED | {CheckState.ENDED}
_COUNTING: Final = frozenset({CheckState.PENDING, CheckState.VERIFIED})
"""Something was submitted that may count: such an outcome takes precedence over later checks."""
_STARTED: Final = frozenset(CheckState) - {CheckState.RESERVED, CheckState.DROPPED}
NEXT: Final[Mapping[CheckState, frozenset[CheckState]]] = {
    CheckState.RESERVED: frozenset({CheckState.OPEN, CheckState.DROPPED}),
    CheckState.DROPPED: frozenset(),
    # A page of the provider lets its buyer try again after a no.
    **dict.fromkeys(_STARTED, _STARTED),
    # Only a revocation, or the account's own rules (`checks.lose`), take a positive outcome away.
    CheckState.VERIFIED: frozenset({CheckState.REVOKED}),
}
"""The possible next states after a new result of a provider or an operator."""
_STATES: Final[Mapping[BuyerStatus | None, CheckState]] = {
    None: CheckState.OPEN,
    BuyerStatus.PENDING: CheckState.PENDING,
    BuyerStatus.REQUIRES_INPUT: CheckState.ENDED,
    BuyerStatus.VERIFIED: CheckState.VERIFIED,
    BuyerStatus.REVOKED: CheckState.REVOKED,
}


def state_of(status: BuyerStatus | None, reasons: Collection[str]) -> CheckState:
    """The state of a check that has been started, by the newest decision; None: there is none."""
    if status is BuyerStatus.REQUIRES_INPUT and Reason.IDENTITY_REQUIRES_INPUT in reasons:
        return CheckState.OPEN
    return _STATES.get(status, CheckState.REFUSED)


class IdentityCheck(Struct, frozen=True, kw_only=True):
    """The facts about one check; each state has those of the states before it.

    A session stores its checks in the order of their numbers, and next to them the outcome that
    counts: a verified one before a pending one, and that before the newest. A buyer who was
    remembered has an outcome without a check, with the number 0.
    """

    attempt: int
    """Counted from 1 in its session. No number is used twice: the provider takes it for a
    repetition, and a return address names it."""
    provider: str = ""
    """"": another check was requested before this one could be started."""
    browser: str = ""
    """The browser that began it, among those with the link."""
    provider_session: str = ""
    url: str = ""
    """Of the provider's page; "" while the check is reserved."""
    expires_at: datetime | None = None
    """When the provider gives it up; None if unknown."""
    opens_once: bool = False
    """Whether `url` opens the page only once: to continue the check, request a new one."""
    leads_back: bool = True
    """Whether the provider leads the buyer back in the end."""
    played: bool = False
    """Whether the sandbox plays the provider."""
    is_back: bool | None = None
    """Whether only the check's own browser has returned from a decision that may count;
    None: not yet. A passkey is offered to that browser alone, since someone else may sit at another
        browser with the link."""
    back_at: datetime | None = None
    """When it returned last, if `is_back`."""
    cbid: str | None = None
    """None: the buyer has not submitted anything."""
    status: BuyerStatus | None = None
    """None: nothing is decided."""
    reasons: tuple[str, ...] = ()
    verification: str | None = None
    """The identifier of the newest record about it."""
    binding: Binding = Binding.IDENTITY_SESSION
    """How it is known that it is this buyer."""

    def __repr__(self) -> str:
        return f"<IdentityCheck {self.attempt}: hidden>"

    @property
    def state(self) -> CheckState:
        """Of a check as its session has it, or of an outcome."""
        if self.status is None and not self.is_open:
            return CheckState.RESERVED if self.provider else CheckState.DROPPED
        return state_of(self.status, self.reasons)

    @property
    def verified(self) -> bool:
        return self.status is BuyerStatus.VERIFIED and self.cbid is not None

    @property
    def is_open(self) -> bool:
        """Whether the provider has given it an address."""
        return bool(self.url)

    @property
    def counts(self) -> bool:
        """Whether something was submitted that may count."""
        return self.state in _COUNTING

    def becoming(self, after: IdentityCheck) -> IdentityCheck:
        """The same check later.

        Raises:
            ValueError: this one cannot become that.
        """
        if after.state is not self.state and after.state not in NEXT[self.state]:
            raise ValueError(f"an identity check that is {self.state} cannot become {after.state}")
        return after

    def gives_way_to(self, later: IdentityCheck) -> bool:
        """Whether a later outcome replaces this one.

        A revocation must be of the same buyer. A negative outcome of an older check does not
        replace a newer check.
        """
        if later.state not in NEXT[self.state]:
            return False
        if self.verified:
            return later.cbid == self.cbid
        return later.attempt >= self.attempt or later.counts


class Trouble(Struct, frozen=True, kw_only=True):
    """The last attempt to apply the decision about the newest check failed."""

    attempt: int
    reason: str
    """The code of the error, or of the reason that it stands for."""
    is_back: bool
    """Whether the provider has led the buyer back from this check."""
