"""The states of an identity check, and what may follow on each."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from countersign.base.values import Reason
from countersign.core.buyers.identity_check import (
    FOLLOWED,
    UNDECIDED,
    CheckState,
    IdentityCheck,
    state_of,
)
from countersign.core.buyers.model import BuyerStatus

S = BuyerStatus
RESERVED = IdentityCheck(attempt=1, provider="stripe", browser="a")
OPEN = replace(RESERVED, url="https://provider.example")
DROPPED = replace(RESERVED, provider="")
ASKS = Reason.IDENTITY_REQUIRES_INPUT


def outcome(status: S, *reasons: Reason, attempt: int = 1, cbid: str = "cb_1") -> IdentityCheck:
    """The outcome of a check."""
    return IdentityCheck(attempt=attempt, status=status, reasons=reasons, cbid=cbid)


@pytest.mark.parametrize(
    ("status", "reasons", "state", "asked_again"),
    [
        (None, (), "open", True),
        (S.REQUIRES_INPUT, (ASKS, Reason.DOCUMENT_EXPIRED), "open", True),
        (S.PENDING, (), "pending", True),
        (S.REQUIRES_INPUT, (Reason.SESSION_CANCELED,), "ended", False),
        (S.REQUIRES_INPUT, (Reason.VERIFICATION_WITHDRAWN,), "ended", False),
        (S.FAILED, (Reason.AGE_BELOW_MINIMUM,), "refused", False),
        (S.EXPIRED, (), "refused", False),
        (S.VERIFIED, (), "verified", False),
        (S.REVOKED, (), "revoked", False),
    ],
)
def test_a_decision_has_one_state(
    status: S | None, reasons: tuple[Reason, ...], state: str, *, asked_again: bool
) -> None:
    """The state determines whether the provider is polled again."""
    found = state_of(status, reasons)
    assert found.value == state
    assert (found in FOLLOWED) == asked_again
    assert (found in UNDECIDED) == (asked_again or found is CheckState.ENDED)


def test_a_reserved_check_is_opened_or_dropped() -> None:
    assert [RESERVED.state, OPEN.state, DROPPED.state] == ["reserved", "open", "dropped"]
    for after in (OPEN, DROPPED):
        assert RESERVED.becoming(after) is after
    assert OPEN.becoming(renewed := replace(OPEN, url="https://provider.example/2")) is renewed


@pytest.mark.parametrize(
    ("before", "after"),
    [(DROPPED, OPEN), (DROPPED, RESERVED), (OPEN, RESERVED), (OPEN, DROPPED)],
)
def test_a_number_is_used_once(before: IdentityCheck, after: IdentityCheck) -> None:
    """A finished check does not begin again under the same number."""
    with pytest.raises(ValueError, match="cannot become"):
        before.becoming(after)


@pytest.mark.parametrize("status", S)
def test_only_the_revocation_of_its_buyer_replaces_a_positive_outcome(status: S) -> None:
    verified, later = outcome(S.VERIFIED), outcome(status, attempt=2)
    assert verified.gives_way_to(later) == (status is S.REVOKED)
    assert not verified.gives_way_to(replace(later, cbid="cb_2"))


@pytest.mark.parametrize("before", [S.FAILED, S.PENDING, S.REQUIRES_INPUT, S.REVOKED, S.EXPIRED])
def test_an_older_check_counts_only_with_what_may_count(before: S) -> None:
    """A negative result for its buyer does not contradict a newer check."""
    known = outcome(before, attempt=2)
    for status in S:
        counts = status in {S.VERIFIED, S.PENDING}
        assert known.gives_way_to(outcome(status, attempt=1)) == counts
        assert known.gives_way_to(outcome(status, attempt=2))
